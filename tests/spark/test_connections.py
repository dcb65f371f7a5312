"""Streams that are not under `$JS.API` where Spark connects: in a domain behind a leaf node, and in another account."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from support.embedded_broker import EmbeddedBroker, options_of
from support.stream_filling import fill, numbered

from headwater.errors import EnvironmentProblem
from headwater.spark.connections import take
from headwater.spark.offsets import StreamState
from headwater.spark.options import parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.spark.server_options import ServerOptions

COUNT = 50


@contextmanager
def behind_a_leaf_node(directory: Path) -> Iterator[tuple[str, str]]:
    """Where to fill a stream, and where it is read."""
    here, there = directory / "hub.conf", directory / "spoke.conf"
    here.write_text(f'jetstream {{ store_dir: "{directory}/js", domain: hub }}\nleafnodes {{ listen: "127.0.0.1:-1" }}')
    with EmbeddedBroker(options_of(here)) as hub:
        leafs = hub.broker.leafnodes
        assert leafs is not None
        there.write_text(f'leafnodes {{ remotes: [ {{ url: "nats-leaf://127.0.0.1:{leafs.port}" }} ] }}')
        with EmbeddedBroker(options_of(there)) as spoke:
            joined = spoke.broker.leafnodes
            assert joined is not None
            spoke.run(lambda: asyncio.wait_for(joined.wait_for(1), 20))
            yield hub.url, spoke.url


@contextmanager
def in_another_account(directory: Path) -> Iterator[tuple[str, str]]:
    config = directory / "server.conf"
    config.write_text(
        f'jetstream {{ store_dir: "{directory}/js" }}\n'
        "accounts {\n"
        "  A { jetstream: enabled, users: [ {user: a, password: a} ]\n"
        "      exports: [ {service: '$JS.API.>', response: stream} ] }\n"
        "  B { users: [ {user: b, password: b} ]\n"
        "      imports: [ {service: {account: A, subject: '$JS.API.>'}, to: 'there.>'} ] }\n"
        "}"
    )
    with EmbeddedBroker(options_of(config)) as broker:
        yield f"nats://a:a@127.0.0.1:{broker.port}", f"nats://127.0.0.1:{broker.port}"


def state_of(server: ServerOptions) -> StreamState:
    """Of the stream; a hub's interest reaches its leaf node a moment after that has joined."""
    client = take(server, 5.0)
    try:
        for _ in range(2000):
            try:
                return stream_state(client, "FAR")
            except EnvironmentProblem:
                time.sleep(0.01)
        raise AssertionError("nobody answers for the stream")
    finally:
        client.close()


@pytest.mark.parametrize("transport", ["auto", "consumer"])
@pytest.mark.parametrize(("place", "api"), [(behind_a_leaf_node, "$JS.hub.API"), (in_another_account, "there")])
def test_a_stream_is_read_under_the_prefix_of_its_api(
    place: Callable[[Path], AbstractContextManager[tuple[str, str]]],
    api: str,
    transport: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("WORD", "b")
    login = {"user": "b", "password": "env:WORD"} if api == "there" else {}
    with place(tmp_path) as (filled, read):
        fill(filled, "FAR", ["far.*"], numbered("far", COUNT))
        options = parse_options({"servers": read, "stream": "FAR", "jsApi": api, "transport": transport, **login})
        state = state_of(options.server)
        wanted = Range("FAR", state.created, 1, COUNT + 1)
        with caplog.at_level(logging.WARNING, "headwater.spark"):
            assert sum(columns.rows for columns in read_range(wanted, options)) == COUNT
    assert [line for line in caplog.messages if line.startswith("read_through_consumer")] == []
