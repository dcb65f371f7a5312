"""Rows taken ahead: all of them, in order, one at a time ahead, and what breaks the source breaks the task."""

import threading
from collections.abc import Iterator

import pytest

from headwater.spark_runtime.read_ahead import read_ahead

PATIENCE = 30.0  # seconds, only reached when the test fails


def test_everything_comes_in_order() -> None:
    assert list(read_ahead(range(1000))) == list(range(1000))
    assert list(read_ahead([])) == []


def test_the_next_is_taken_while_the_caller_has_one_and_no_more() -> None:
    taken = [threading.Event() for _ in range(4)]

    def source() -> Iterator[int]:
        for number, event in enumerate(taken):
            event.set()
            yield number

    ahead = read_ahead(source())
    assert next(ahead) == 0
    assert taken[1].wait(PATIENCE), "nothing is taken while the caller works"
    assert not taken[2].is_set(), "two are taken ahead"
    assert next(ahead) == 1
    assert taken[2].wait(PATIENCE)
    assert list(ahead) == [2, 3]


def test_what_breaks_the_source_is_raised_after_what_came_before_it() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise ConnectionResetError("the JVM is gone")

    ahead = read_ahead(source())
    assert next(ahead) == 1
    with pytest.raises(ConnectionResetError, match="the JVM is gone"):
        next(ahead)


def test_a_caller_that_fails_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    ahead = read_ahead(range(1000))
    assert next(ahead) == 0
    started = set(threading.enumerate()) - before
    assert started
    ahead.close()  # type: ignore[attr-defined]
    for thread in started:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_one_that_is_never_asked_takes_nothing() -> None:
    source = iter(range(5))
    ahead = read_ahead(source)
    del ahead
    assert list(source) == [0, 1, 2, 3, 4]
