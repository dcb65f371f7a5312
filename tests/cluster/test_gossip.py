"""Servers that know one seed find each other by gossip: ours and real ones, with a password on the routes."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.clusters import cluster_of, connect, heard_by_all, meshed, run, start_node
from support.nats_server import gnatsd_binaries, start_nats_server

from headwater import Broker
from headwater.cluster.mesh import Protocol
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
    """A real server shows its password to a gossiped address only where the gossip says `auth_required`."""
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
        await heard_by_all(clients, clients)

    run(test)
