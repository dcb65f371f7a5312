"""Clusters with streams at one node, for tests that read them from every node: of ours, of real nats-servers, and of both.

`STREAM_AT` is a tag of the node that the streams are on; real nats-servers place a stream by it, ours takes note of it.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import Placement, StreamConfig
from nats.js.errors import APIError, NoStreamResponseError
from support.embedded_broker import EmbeddedBroker
from support.nats_server import NatsServer, start_nats_server

from headwater.cluster.mesh import Protocol
from headwater.options.broker import BrokerOptions
from headwater.options.cluster import ClusterOptions
from headwater.testing.ports import free_port

STREAM_AT = "the-streams-node"
PLACEMENT = Placement(tags=[STREAM_AT])
PATIENCE = 20.0  # seconds until a cluster stands; a meta leader of real servers takes two or three


class StreamCluster(NamedTuple):
    """`urls`: a node each, the one with the streams first. `shared`: so many nodes share the one port there is."""

    urls: list[str]
    shared: int = 0

    @asynccontextmanager
    async def clients(self) -> AsyncIterator[list[Client]]:
        """One client at each node, in the order of `urls`; behind a shared port in any order but for the first."""
        found: list[Client] = []
        try:
            if not self.shared:
                found += [await nats.connect(url, allow_reconnect=False) for url in self.urls]
                yield found
                return
            by_node: dict[str, Client] = {}
            for _ in range(200):
                client = await nats.connect(self.urls[0], allow_reconnect=False)
                found.append(client)
                by_node.setdefault(str(client._server_info["server_name"]), client)
                if len(by_node) == self.shared:
                    break
            assert len(by_node) == self.shared
            yield [by_node[name] for name in sorted(by_node)]  # the workers' names end in their numbers
        finally:
            for client in found:
                await client.close()


def _route(port: int) -> str:
    return f"nats-route://127.0.0.1:{port}"


async def _answers(url: str) -> None:
    """Wait until JetStream answers a client of this node."""
    async with asyncio.timeout(PATIENCE):
        async with await nats.connect(url) as client:
            while True:
                try:
                    await client.jetstream(timeout=1).account_info()
                    return
                except (NatsError, TimeoutError):
                    await asyncio.sleep(0.02)


def await_jetstream(urls: list[str]) -> None:
    """Wait until JetStream answers clients of all these nodes."""

    async def all_answer() -> None:
        await asyncio.gather(*[_answers(url) for url in urls])

    asyncio.run(all_answer())


async def begin_stream(jetstream: JetStreamContext, config: StreamConfig, subject: str, data: bytes = b"") -> None:
    """Add a stream with one message, as soon as there are enough servers for its replicas and one of them leads."""
    for _ in range(200):
        try:
            await jetstream.add_stream(config)
            await jetstream.publish(subject, data)
            return
        except (APIError, NoStreamResponseError, TimeoutError) as error:  # no answer: right after an election
            refused = error
            await asyncio.sleep(0.1)
    raise refused


def _ready(cluster: StreamCluster) -> StreamCluster:
    await_jetstream(cluster.urls)
    return cluster


def start_ours(
    stack: ExitStack, name: str, port: int, seeds: list[int], store: Path | None, protocol: Protocol = "v2"
) -> EmbeddedBroker:
    """One of our brokers; `store`: it has streams, there."""
    routes = tuple(_route(seed) for seed in seeds)
    cluster = ClusterOptions(name="hw", host="127.0.0.1", port=port, routes=routes, protocol=protocol)
    options = BrokerOptions(server_name=name, host="127.0.0.1", port=0, cluster=cluster)
    if store is not None:
        options = options.replace(jetstream=True, store_dir=store)
    return stack.enter_context(EmbeddedBroker(options))


def start_real(
    stack: ExitStack,
    directory: Path,
    name: str,
    port: int,
    seeds: list[int],
    *,
    streams: bool,
    tag: str = "",
    more: str = "",
) -> NatsServer:
    """One nats-server; `more` stands beside the cluster in its configuration."""
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "server.conf"
    routes = ", ".join(f'"{_route(seed)}"' for seed in seeds)
    config.write_text(
        f"server_name: {name}\nserver_tags: [{tag or name}]\n"
        f'cluster {{ name: hw, listen: "127.0.0.1:{port}", routes: [{routes}] }}\n{more}'
    )
    return stack.enter_context(start_nats_server(directory, "-c", str(config), jetstream=streams))


def real_streams(stack: ExitStack, directory: Path) -> tuple[list[NatsServer], list[int]]:
    """Three nats-servers with JetStream, r0 to r2, and the ports of their routes."""
    ports = [free_port() for _ in range(3)]
    servers = [
        start_real(stack, directory / f"r{at}", f"r{at}", port, ports, streams=True, tag=tag)
        for at, (port, tag) in enumerate(zip(ports, [STREAM_AT, "", ""], strict=True))
    ]
    return servers, ports


@contextmanager
def three_nats_servers(directory: Path) -> Iterator[StreamCluster]:
    with ExitStack() as stack:
        servers, _ = real_streams(stack, directory)
        yield _ready(StreamCluster([server.url for server in servers]))


@contextmanager
def three_of_ours(directory: Path, protocol: Protocol = "v2") -> Iterator[StreamCluster]:
    with ExitStack() as stack:
        ports = [free_port() for _ in range(3)]
        nodes = [
            start_ours(stack, f"n{at}", port, ports[:1] if at else [], None if at else directory / "js", protocol)
            for at, port in enumerate(ports)
        ]
        yield _ready(StreamCluster([node.url for node in nodes]))


@contextmanager
def workers(directory: Path, more: Sequence[str] = ()) -> Iterator[StreamCluster]:
    """`serve --workers 2 -js`: the first of them has the streams, or with `--spread_streams` each has some."""
    flags = ["-a", "127.0.0.1", "-p", "-1", "-n", "w", "--workers", "2", "-js", "-sd", str(directory / "js"), *more]
    command = [sys.executable, "-m", "headwater", "serve", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = 0
            for line in process.stderr:
                if "Listening for client connections on 127.0.0.1:" in line:
                    port = int(line.rpartition(":")[2])
                if line.endswith("Server is ready\n"):
                    break
            yield _ready(StreamCluster([f"nats://127.0.0.1:{port}"], shared=2))
        finally:
            process.terminate()


@contextmanager
def ours_behind_real_ones(directory: Path) -> Iterator[StreamCluster]:
    """The streams are at ours; two nats-servers without JetStream."""
    with ExitStack() as stack:
        port = free_port()
        ours = start_ours(stack, "n0", port, [], directory / "js")
        real = [
            start_real(stack, directory / f"r{at}", f"r{at}", free_port(), [port], streams=False) for at in range(2)
        ]
        yield _ready(StreamCluster([ours.url, *[server.url for server in real]]))


@contextmanager
def ours_before_real_ones(directory: Path) -> Iterator[StreamCluster]:
    """The streams are at one of three nats-servers; ours has none."""
    with ExitStack() as stack:
        servers, ports = real_streams(stack, directory)
        ours = start_ours(stack, "n0", free_port(), ports, None)
        yield _ready(StreamCluster([servers[0].url, ours.url]))
