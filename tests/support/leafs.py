"""A hub and a leaf node of it, real or ours, for tests that hold for every pair; and what is waited for is bounded."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from nats.aio.client import Client
from nats.aio.msg import Msg
from support.embedded_broker import EmbeddedBroker, options_of
from support.nats_server import NatsServer, start_nats_server

REAL, OURS = "nats-server", "headwater"
PAIRS = [(REAL, REAL), (REAL, OURS), (OURS, REAL), (OURS, OURS)]
"""Kinds of hub and leaf node. The first pair proves what a test expects."""
PAIR_NAMES = [f"{hub} hub, {leaf} leaf" for hub, leaf in PAIRS]
PATIENCE = 20.0  # seconds; a leaf node is joined within some 10 ms, a machine under load has its own pace
_LEAF_PORT = re.compile(rb"Listening for leafnode connections on \S+:(\d+)")


class LeafServer(NamedTuple):
    """A server that runs. `leaf_port` is 0 where it accepts no leaf nodes."""

    kind: str
    port: int
    leaf_port: int
    process: NatsServer | None
    embedded: EmbeddedBroker | None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def leaf_url(self) -> str:
        return f"nats-leaf://127.0.0.1:{self.leaf_port}"

    def log(self) -> str:
        """Of a real one; of ours it is empty."""
        return self.process.log.read_text(errors="replace") if self.process is not None else ""


@contextmanager
def serve(kind: str, directory: Path, config: str, port: int = -1) -> Iterator[LeafServer]:
    """Runs a server of this kind until the end of the block."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "server.conf"
    file.write_text(config, encoding="utf-8")
    if kind == REAL:
        with start_nats_server(directory, "-c", str(file), jetstream=False, port=port) as real:
            found = _LEAF_PORT.search(real.log.read_bytes())
            yield LeafServer(kind, real.port, int(found[1]) if found else 0, real, None)
        return
    options = options_of(file, store_dir=directory / "store")
    with EmbeddedBroker(options.replace(port=max(0, port))) as ours:
        leafs = ours.broker.leafnodes
        yield LeafServer(kind, ours.port, leafs.port if leafs is not None else 0, None, ours)


def websocket_port(hub: LeafServer) -> int:
    """Of its WebSocket listener."""
    if hub.embedded is not None:
        return hub.embedded.websocket_port
    found = re.search(r"Listening for websocket clients on wss?://\S+:(\d+)", hub.log())
    assert found is not None
    return int(found[1])


HUB = 'server_name: H, leafnodes { listen: "127.0.0.1:-1", compression: off }'


def spoke_config(hub: LeafServer, remote: str = "", more: str = "") -> str:
    """A leaf node of `hub`; `remote` goes into its remote, `more` stands beside the block."""
    return (
        'server_name: L\nleafnodes { reconnect: "100ms", remotes: [ {\n'
        f'url: "{hub.leaf_url}", compression: off\n{remote}\n}} ] }}\n{more}'
    )


class Inbox:
    """What one subscription got."""

    def __init__(self) -> None:
        self.got: list[Msg] = []

    async def take(self, message: Msg) -> None:
        self.got.append(message)

    @property
    def data(self) -> list[bytes]:
        return [message.data for message in self.got]


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that no event tells of."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not condition():
        if loop.time() > deadline:
            raise AssertionError(f"not within {PATIENCE:g} s: {what}")
        await asyncio.sleep(0.005)


async def crosses(sender: Client, receiver: Client) -> None:
    """Return once what `receiver` has subscribed to is known at `sender`: interest goes over in the order it came."""
    probe = Inbox()
    subject = receiver.new_inbox()
    await receiver.subscribe(subject, cb=probe.take)
    await receiver.flush()
    async with asyncio.timeout(PATIENCE):
        while not probe.got:
            await sender.publish(subject, b"")
            await sender.flush()
            await asyncio.sleep(0.005)


async def both_cross(one: Client, other: Client) -> None:
    """Both directions are joined, and each knows what the other has subscribed to so far."""
    await crosses(one, other)
    await crosses(other, one)
