"""Gossip: servers that know one seed find each other, with a password on the routes; clients get their addresses."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.clusters import HELLO, cluster_of, connect, meshed, received_by_all, route_url, run, start_node
from support.nats_server import gnatsd_binaries, start_nats_server
from support.raw_wire import RawLink

from headwater import Broker
from headwater.cluster.mesh import Protocol
from headwater.net.interfaces import own_addresses
from headwater.options.cluster import ClusterOptions
from headwater.options.leaf import LeafOptions
from headwater.testing.ports import free_port

pytestmark = pytest.mark.interop


async def start_real_node(
    stack: AsyncExitStack, directory: Path, cluster: str, seed: str, binary: Path | None
) -> tuple[str, str]:
    """Start a nats-server or gnatsd; returns its URL for clients, and the one for routes.

    `cluster` is its `cluster` block without `listen` and `routes`.
    """
    route = f"127.0.0.1:{free_port()}"
    config = directory.with_suffix(".conf")
    routes = f'routes: ["{seed}"]' if seed else ""
    config.write_text(f'cluster {{ listen: "{route}"\n {cluster}\n {routes} }}\n')
    real = await asyncio.to_thread(
        start_nats_server, directory, "-c", str(config), jetstream=False, binary=binary, port=free_port()
    )
    stack.callback(real.stop)
    return real.url, f"nats-route://route:s3cret@{route}"


NO_GNATSD = pytest.mark.skipif(not gnatsd_binaries(), reason="HEADWATER_GNATSD names no gnatsd")


@pytest.mark.parametrize("seed", [0, 1, 2], ids=["ours is the seed", "a real one is", "the other real one is"])
@pytest.mark.parametrize("protocol", ["v2", pytest.param("v1", marks=NO_GNATSD)])
def test_one_of_ours_and_two_real_servers_with_a_route_password_find_each_other_by_any_seed(
    protocol: Protocol, seed: int, tmp_path: Path
) -> None:
    """A real server sends its password to a gossiped address only if the gossip has `auth_required`."""
    binary = gnatsd_binaries()[0] if protocol == "v1" else None
    block = "authorization { user: route, password: s3cret, timeout: 5 }" + ("" if binary else "\n name: hw")

    async def test(stack: AsyncExitStack) -> None:
        brokers: list[Broker] = []
        urls = ["", "", ""]

        async def start(at: int, seed_url: str) -> str:
            if at == 0:
                fields: dict[str, Any] = {"username": "route", "password": "s3cret", "protocol": protocol}
                brokers.append(await start_node(stack, "ours", [seed_url] if seed_url else [], **fields))
                urls[0] = brokers[0].url
                return f"nats-route://route:s3cret@127.0.0.1:{cluster_of(brokers[0]).port}"
            urls[at], url = await start_real_node(stack, tmp_path / f"real{at}", block, seed_url, binary)
            return url

        seed_url = await start(seed, "")
        for at in range(3):
            if at != seed:
                await start(at, seed_url)
        await meshed(brokers, 2)
        clients = [await connect(stack, url) for url in urls]
        await received_by_all(clients, clients)

    run(test)


def test_clients_of_a_broker_on_every_address_get_those_of_the_machine_as_from_nats_server(tmp_path: Path) -> None:
    async def test(stack: AsyncExitStack) -> None:
        ours = Broker("0.0.0.0", server_name="n0", cluster=ClusterOptions(name="hw", host="127.0.0.1"))
        await stack.enter_async_context(ours)
        flags = (
            "-a",
            "0.0.0.0",
            "--cluster",
            "nats://127.0.0.1:-1",
            "--cluster_name",
            "hw",
            "--routes",
            route_url(ours),
        )
        real = stack.enter_context(await asyncio.to_thread(start_nats_server, tmp_path, *flags, jetstream=False))
        await meshed([ours], 1)
        assert ours.sessions is not None
        urls = ours.sessions.greetings.info.connect_urls
        ours_at, real_at = (
            {url.removesuffix(f":{port}") for url in urls if url.endswith(f":{port}")}
            for port in (ours.port, real.port)
        )
        if own_addresses():  # otherwise there is only loopback, which each kind announces differently
            assert ours_at == real_at

    run(test)


@pytest.mark.parametrize("knows", [False, True])
def test_a_peer_that_cannot_serve_our_leaf_nodes_is_named_in_the_log(
    knows: bool, caplog: pytest.LogCaptureFixture
) -> None:
    hello = HELLO.replace(b'"server_name":"x"', b'"server_name":"x","lnoc":true') if knows else HELLO

    async def test(stack: AsyncExitStack) -> None:
        node = await start_node(stack, "n0", leafnodes=LeafOptions(host="127.0.0.1", port=0))

        def talk() -> None:
            with RawLink(cluster_of(node).port) as link:
                link.send(hello + b"PING\r\n")
                link.receive_until(b"PONG\r\n")

        await asyncio.to_thread(talk)
        warned = [line for line in caplog.messages if line.startswith("peer_without_leafs")]
        assert len(warned) == (0 if knows else 1)

    run(test)
