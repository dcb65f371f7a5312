"""A reload that lowers `max_connections` sends as many clients away as are too many."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.configured_servers import KINDS
from support.embedded_broker import EmbeddedBroker, options_of
from support.nats_server import start_nats_server
from support.raw_wire import RawLink, dial

from headwater.server.room import make_room

CONFIG = """
listen: 127.0.0.1:-1
max_connections: {server}
no_auth_user: a
accounts {{
    A {{ users: [{{user: a, password: p}}], limits {{ max_connections: {account} }} }}
    B {{ users: [{{user: b, password: p}}] }}
}}
"""
ATTEMPTS = 5000
LOWERED = [
    ({"server": 3, "account": -1}, 3, "maximum connections exceeded"),
    ({"server": 100, "account": 1}, 2, "maximum account active connections exceeded"),
]


@contextmanager
def reloadable(kind: str, directory: Path) -> Iterator[tuple[int, Callable[[dict[str, int]], object]]]:
    """The port of a server, and a function that makes it load other limits."""
    file = directory / "server.conf"
    file.write_text(CONFIG.format(server=100, account=-1))
    if kind == "headwater":
        with EmbeddedBroker(options_of(file)) as ours:

            async def read_again(limits: dict[str, int]) -> None:
                file.write_text(CONFIG.format(**limits))
                ours.broker.reload(options_of(file))

            yield ours.port, lambda limits: ours.run(lambda: read_again(limits))
    else:
        with start_nats_server(directory, "-c", str(file), jetstream=False) as real:

            def signal_it(limits: dict[str, int]) -> None:
                file.write_text(CONFIG.format(**limits))
                os.kill(real.pid, signal.SIGHUP)

            yield real.port, signal_it


def farewell(link: RawLink) -> str:
    """The last words of the server, "" if the link still works."""
    try:
        link.settle()
    except EOFError as error:
        return str(error)
    return ""


def test_of_too_many_clients_at_several_workers_each_sends_away_its_share(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text(CONFIG.format(server=100, account=4))
    with EmbeddedBroker(options_of(file)) as ours:
        links = [dial(ours.port, user="a", **{"pass": "p"}) for _ in range(4)]

        async def find_three_elsewhere() -> None:
            assert ours.broker.accounts is not None and ours.broker.sessions is not None
            ours.broker.accounts.count_with(lambda account: 3 if account == "A" else 0)
            make_room(ours.broker.accounts, ours.broker.sessions)

        ours.run(find_three_elsewhere)
        assert ["maximum account" in farewell(link) for link in links] == [False, False, True, True]
        for link in links:
            link.close()


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("limits", "leave", "text"), LOWERED)
def test_those_who_are_too_many_are_sent_away(
    kind: str, limits: dict[str, int], leave: int, text: str, tmp_path: Path
) -> None:
    with reloadable(kind, tmp_path) as (port, reload):
        users = "aabbba" if limits["server"] == 3 else "abaab"
        links = [dial(port, user=user, **{"pass": "p"}) for user in users]
        reload(limits)
        for _ in range(ATTEMPTS):
            errors = [farewell(link) for link in links]
            if any(errors):
                break
        errors = [before or farewell(link) for before, link in zip(errors, links, strict=True)]
        assert sum(text in each for each in errors) == leave, errors
        assert errors.count("") == len(links) - leave
        if kind == "headwater":  # the newest leave
            of_account = [
                each for each, user in zip(errors, users, strict=True) if limits["server"] == 3 or user == "a"
            ]
            assert not any(of_account[:-leave])
        for link in links:
            link.close()


def test_each_of_several_processes_with_one_port_ends_its_share(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text(CONFIG.format(server=100, account=-1))
    with EmbeddedBroker(options_of(file)) as ours:
        links = [dial(ours.port, user="a", **{"pass": "p"}) for _ in range(4)]

        async def lower() -> None:
            assert ours.broker.sessions is not None
            ours.broker.sessions.watch.elsewhere = lambda: 8
            file.write_text(CONFIG.format(server=6, account=-1))
            ours.broker.reload(options_of(file))

        ours.run(lower)
        assert [bool(farewell(link)) for link in links] == [False, False, True, True]
        for link in links:
            link.close()
