"""A hub reached through WebSocket, each side real or ours: joined, cut, with TLS below, and with clients on the same
listener.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.certificates import make_certificates
from support.clusters import connect, run
from support.leafs import OURS, PAIR_NAMES, PAIRS, REAL, Inbox, LeafServer, both_cross, serve, until, websocket_port
from support.route_proxy import RouteProxy

import headwater
from headwater.testing.ports import free_port

pytestmark = pytest.mark.interop
pairs = pytest.mark.parametrize(("hub_kind", "leaf_kind"), PAIRS, ids=PAIR_NAMES)
LEAFS = 'leafnodes { listen: "127.0.0.1:-1", compression: off }'
HUB = f'server_name: H\nwebsocket {{ listen: "127.0.0.1:-1", no_tls: true }}\n{LEAFS}'


def spoke(url: str, more: str = "") -> str:
    return (
        f'server_name: L\nleafnodes {{ reconnect: "100ms", remotes: [ {{ url: "{url}", compression: off\n{more} }} ] }}'
    )


@pairs
@pytest.mark.parametrize("path", ["", "/behind/a/proxy"])
def test_a_hub_is_joined_by_websocket(tmp_path: Path, hub_kind: str, leaf_kind: str, path: str) -> None:
    with serve(hub_kind, tmp_path / "hub", HUB) as hub:
        url = f"ws://127.0.0.1:{websocket_port(hub)}{path}"
        with serve(leaf_kind, tmp_path / "leaf", spoke(url)) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                await both_cross(await connect(stack, hub.url), await connect(stack, leaf.url))

            run(test)


@pairs
def test_a_hub_is_joined_by_websocket_in_tls(tmp_path: Path, hub_kind: str, leaf_kind: str) -> None:
    made = make_certificates(tmp_path / "certificates")
    tls = f'tls {{ cert_file: "{made.server_cert}", key_file: "{made.server_key}" }}'
    config = f'server_name: H\nwebsocket {{ listen: "127.0.0.1:-1", {tls} }}\n{LEAFS}'
    with serve(hub_kind, tmp_path / "hub", config) as hub:
        remote = spoke(f"wss://127.0.0.1:{websocket_port(hub)}", f'tls {{ ca_file: "{made.ca}", timeout: 5 }}')
        with serve(leaf_kind, tmp_path / "leaf", remote) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                await both_cross(await connect(stack, hub.url), await connect(stack, leaf.url))

            run(test)


@pairs
def test_messages_of_any_size_come_once_and_in_order_and_again_after_a_cut(
    tmp_path: Path, hub_kind: str, leaf_kind: str
) -> None:
    proxy = RouteProxy(free_port())
    remote = spoke(f"ws://127.0.0.1:{proxy.port}", "ignore_discovered_servers: true")
    with serve(hub_kind, tmp_path / "hub", HUB) as hub, serve(leaf_kind, tmp_path / "leaf", remote) as leaf:
        proxy.target = websocket_port(hub)

        async def test(stack: AsyncExitStack) -> None:
            await stack.enter_async_context(proxy)
            clients = [await connect(stack, hub.url), await connect(stack, leaf.url)]
            inboxes = [Inbox(), Inbox()]
            for client, inbox in zip(clients, inboxes, strict=True):
                await client.subscribe("to.*", cb=inbox.take)
            await both_cross(*clients)
            sizes = (0, 1, 125, 126, 65_535, 65_536, 900_000)
            for turn in range(2):
                for client in clients:
                    for inbox in inboxes:
                        inbox.got.clear()
                    for number, size in enumerate(sizes):
                        await client.publish(f"to.{number}", bytes(size), headers={"n": str(number)})
                    await client.flush()
                    await until(lambda: all(len(inbox.got) >= len(sizes) for inbox in inboxes), "all of it")
                    for inbox in inboxes:
                        assert [len(message.data) for message in inbox.got] == list(sizes)
                        assert [message.headers for message in inbox.got] == [
                            {"n": str(at)} for at in range(len(sizes))
                        ]
                if not turn:
                    proxy.cut()
                    await both_cross(*clients)

        run(test)


def test_the_endpoint_is_there_only_with_a_port_for_leaf_nodes(tmp_path: Path) -> None:
    config = 'server_name: H\nwebsocket { listen: "127.0.0.1:-1", no_tls: true }'

    async def answer(server: LeafServer) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", websocket_port(server))
        writer.write(
            b"GET /leafnode HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        line = await asyncio.wait_for(reader.readline(), 20)
        writer.close()
        await writer.wait_closed()
        return line

    with serve(OURS, tmp_path / "without", config) as server:
        assert asyncio.run(answer(server)).startswith(b"HTTP/1.1 404")
    with serve(OURS, tmp_path / "with", HUB) as server:
        assert asyncio.run(answer(server)).startswith(b"HTTP/1.1 101")


def test_clients_and_leaf_nodes_share_the_port(tmp_path: Path) -> None:
    with serve(OURS, tmp_path / "hub", HUB) as hub:
        url = f"ws://127.0.0.1:{websocket_port(hub)}"
        with serve(REAL, tmp_path / "leaf", spoke(url)) as leaf:

            async def test(stack: AsyncExitStack) -> None:
                by_websocket = await stack.enter_async_context(await headwater.connect(url))
                requests = await by_websocket.subscribe("asked")
                await by_websocket.flush()
                there = await connect(stack, leaf.url)
                await both_cross(await connect(stack, hub.url), there)
                await there.publish("asked", b"1")
                assert (await requests.next_msg()).data == b"1"

            run(test)
