"""A stream on one side of a leaf node copied to the other, each side real or ours: across a domain, through cuts of the
connection; each message once, in order.
"""

import asyncio
import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError
from support.clusters import connect, run
from support.leafs import OURS, REAL, LeafServer, serve, spoke_config
from support.route_proxy import RouteProxy

from headwater.testing.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]
PAIRS = [(REAL, OURS), (OURS, REAL), (OURS, OURS)]
pairs = pytest.mark.parametrize(("hub_kind", "leaf_kind"), PAIRS)


@contextmanager
def line(directory: Path, hub_kind: str, leaf_kind: str) -> Iterator[tuple[RouteProxy, LeafServer, LeafServer]]:
    """A hub and a leaf node with streams in their own domains, and a proxy in between that is not started yet."""
    config = (
        f'server_name: H, jetstream {{ domain: hub, store_dir: "{directory}/hubjs" }}\n'
        'leafnodes { listen: "127.0.0.1:-1", compression: off, no_advertise: true }'
    )
    port = free_port()
    with serve(hub_kind, directory / "hub", config) as hub:
        proxy = RouteProxy(port)
        proxy.target = hub.leaf_port
        streams = f'jetstream {{ domain: leafy, store_dir: "{directory}/leafjs" }}'
        with serve(
            leaf_kind, directory / "leaf", spoke_config(hub, more=streams).replace(f":{hub.leaf_port}", f":{port}")
        ) as leaf:
            yield proxy, hub, leaf


async def ask(client: Client, subject: str, body: object = None) -> Any:
    """An answer of the API, retried until there is one: interest in a domain may still be in flight."""
    payload = b"" if body is None else json.dumps(body).encode()
    for _ in range(400):
        try:
            return json.loads((await client.request(subject, payload, timeout=20)).data)
        except NoRespondersError:
            await asyncio.sleep(0.02)
    raise AssertionError(f"no answer to {subject}")


async def create(client: Client, name: str, **config: Any) -> None:
    assert "error" not in await ask(client, f"$JS.API.STREAM.CREATE.{name}", {"name": name, **config})


async def holds(client: Client, name: str, count: int) -> Any:
    """INFO of a stream, once it has the given number of messages."""
    for _ in range(2000):
        info = await ask(client, f"$JS.API.STREAM.INFO.{name}")
        if info["state"]["messages"] >= count:
            return info
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name} has not got {count} messages: {info}")


async def data_of(client: Client, name: str) -> list[bytes]:
    """The payloads of a stream, in order."""
    last = (await ask(client, f"$JS.API.STREAM.INFO.{name}"))["state"]["last_seq"]
    found = []
    for sequence in range(1, last + 1):
        answer = await ask(client, f"$JS.API.STREAM.MSG.GET.{name}", {"seq": sequence})
        found.append(b64decode(answer["message"]["data"]))
    return found


@pairs
@pytest.mark.parametrize("copies_at", ["hub", "leaf"])
def test_a_mirror_and_a_source_across_a_leaf_node_go_on_after_a_cut(
    tmp_path: Path, hub_kind: str, leaf_kind: str, copies_at: str
) -> None:
    async def test(stack: AsyncExitStack) -> None:
        await stack.enter_async_context(proxy)
        clients = {"hub": await connect(stack, hub.url), "leaf": await connect(stack, leaf.url)}
        copying, origin = clients.pop(copies_at), next(iter(clients.values()))
        domain = "leafy" if copies_at == "hub" else "hub"
        external = {"api": f"$JS.{domain}.API", "deliver": ""}
        await create(origin, "ORD", subjects=["ord.>"])
        stream = origin.jetstream()
        numbers = iter(range(1000))

        async def publish(count: int) -> None:
            for number in [next(numbers) for _ in range(count)]:
                await stream.publish(f"ord.{number % 3}", b"%d" % number, timeout=20)

        await publish(50)
        await ask(copying, f"$JS.{domain}.API.INFO")
        await create(copying, "MIR", mirror={"name": "ORD", "external": external})
        await create(copying, "AGG", sources=[{"name": "ORD", "external": external}])
        for name in ("MIR", "AGG"):
            await holds(copying, name, 50)
        proxy.closed = True
        proxy.cut()
        await publish(50)
        proxy.closed = False
        for name in ("MIR", "AGG"):
            await holds(copying, name, 100)
        proxy.cut()
        await publish(20)
        for name in ("MIR", "AGG"):
            info = await holds(copying, name, 120)
            assert info["state"]["last_seq"] == 120
            assert await data_of(copying, name) == [b"%d" % number for number in range(120)]

    with line(tmp_path, hub_kind, leaf_kind) as (proxy, hub, leaf):
        run(test)
