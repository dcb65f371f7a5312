"""Connections that are kept: which one is taken, and which are closed."""

import os

import pytest

from headwater.spark_runtime.idle import KEPT, IdleConnections


class Connection:
    closed = False

    def close(self) -> None:
        self.closed = True


def kept(*connections: Connection) -> IdleConnections[str, Connection]:
    idle: IdleConnections[str, Connection] = IdleConnections()
    for connection in connections:
        idle.give_back("a", connection)
    return idle


def test_the_newest_of_the_same_server_is_taken_and_only_once() -> None:
    old, new = Connection(), Connection()
    idle = kept(old, new)
    assert idle.take("b", fresh=False) is None
    assert [idle.take("a", fresh=False) for _ in range(3)] == [new, old, None]


def test_one_that_has_closed_meanwhile_is_passed_over() -> None:
    sound, broken = Connection(), Connection()
    idle = kept(sound, broken)
    broken.close()
    assert idle.take("a", fresh=False) is sound


def test_whoever_wants_a_fresh_one_closes_those_in_doubt() -> None:
    connections = [Connection(), Connection()]
    assert kept(*connections).take("a", fresh=True) is None
    assert all(connection.closed for connection in connections)


def test_one_that_another_thread_took_at_that_moment_is_not_waited_for() -> None:
    class Emptied(list[Connection]):
        def pop(self, *_: object) -> Connection:
            raise IndexError

    idle = kept()
    idle._idle[os.getpid(), "a"] = Emptied([Connection()])
    assert idle.take("a", fresh=True) is None


def test_one_too_many_is_closed_and_a_closed_one_not_kept() -> None:
    connections = [Connection() for _ in range(KEPT + 1)]
    idle = kept(*connections)
    assert [connection.closed for connection in connections] == [False] * KEPT + [True]
    idle.close()
    assert all(connection.closed for connection in connections)
    assert idle.take("a", fresh=False) is None


def test_a_forked_process_does_not_take_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = kept(Connection())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert idle.take("a", fresh=False) is None
