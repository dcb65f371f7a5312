"""A broker that stops in a cluster: messages that peers sent it before are delivered, and its clients' messages have
arrived.
"""

import asyncio
import logging
import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.clusters import (
    HELLO,
    HELLO_V1,
    Inbox,
    cluster_of,
    connect,
    meshed,
    route_url,
    run,
    spread,
    start_node,
)
from support.nats_server import gnatsd_binaries, start_nats_server
from support.raw_wire import RawLink

from headwater.cluster import service
from headwater.cluster.mesh import Protocol
from headwater.testing.ports import free_port

PING = b"\r\nPING\r\n"  # after another line, because the last word of a subject may be PING


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_stopping_broker_withdraws_its_interest_and_delivers_what_peers_sent_before(
    protocol: Protocol,
) -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0", protocol=protocol)
        client, inbox = await connect(stack, broker.url), Inbox()
        await client.subscribe("work", queue="wkrs", cb=inbox.take)
        await client.flush()
        with await asyncio.to_thread(RawLink, cluster_of(broker).port) as peer:
            if protocol == "v2":
                peer.send(HELLO)
                await asyncio.to_thread(peer.receive_until, b"RS+ $G work wkrs 1\r\n")
                withdrawn, last = b"RS- $G work wkrs\r\n", b"RMSG $G work | wkrs 4\r\nlast\r\n"
            else:
                peer.send(HELLO_V1)
                await asyncio.to_thread(peer.receive_until, b"SUB work wkrs QRSID:1:1\r\n")
                withdrawn, last = b"UNSUB QRSID:1:1\r\n", b"MSG work QRSID:1:1 4\r\nlast\r\n"
            stopping = asyncio.ensure_future(broker.stop())
            assert withdrawn in await asyncio.to_thread(peer.receive_until, PING)
            await client.flush()  # clients are served until the peers have answered
            peer.send(last + b"PONG\r\n")
            await asyncio.to_thread(peer.receive_until, b"PING\r\n")
            peer.send(b"PONG\r\n")
            assert await asyncio.to_thread(peer.receive_end) == b""
        await stopping
        assert inbox.got == [("work", b"last")]

    run(test)


def test_messages_of_a_stopping_brokers_clients_are_read_by_the_peers_before_the_routes_end() -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0")
        left = asyncio.Event()

        async def leave() -> None:
            left.set()

        client = await connect(stack, broker.url, closed_cb=leave)
        with await asyncio.to_thread(RawLink, cluster_of(broker).port) as peer:
            peer.send(HELLO + b"RS+ $G out\r\nPING\r\n")
            await asyncio.to_thread(peer.receive_until, b"PONG\r\n")
            stopping = asyncio.ensure_future(broker.stop())
            await asyncio.to_thread(peer.receive_until, PING)
            await client.publish("out", b"said while it stops")
            await client.flush()
            assert not left.is_set()
            peer.send(b"PONG\r\n")
            await left.wait()
            received = await asyncio.to_thread(peer.receive_until, PING)
            assert b"RMSG $G out 19\r\nsaid while it stops\r\n" in received
            assert not stopping.done()
            peer.send(b"PONG\r\n")
            await stopping

    run(test)


def test_peer_that_does_not_answer_holds_up_the_end_for_a_bounded_time_and_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "SETTLE_SECONDS", 0.05)

    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0")
        with await asyncio.to_thread(RawLink, cluster_of(broker).port) as peer, caplog.at_level(logging.WARNING):
            peer.send(HELLO + b"PING\r\n")
            await asyncio.to_thread(peer.receive_until, b"PONG\r\n")
            await broker.stop()
        assert [record.getMessage().split()[0] for record in caplog.records] == ["route_not_drained"]

    run(test)


NUMBERS = re.compile(rb"MSG work 1 \d+\r\n(\d+)\r\n")


async def read_numbers(reader: asyncio.StreamReader) -> list[int]:
    """The messages that a member got until its server disconnected it, from the bytes on the wire."""
    return [int(number) for number in NUMBERS.findall(await reader.read())]


NO_GNATSD = pytest.mark.skipif(not gnatsd_binaries(), reason="HEADWATER_GNATSD names no gnatsd")


@pytest.mark.interop
@pytest.mark.parametrize("protocol", ["v2", pytest.param("v1", marks=NO_GNATSD)])
def test_no_queue_message_published_at_a_real_server_is_lost_when_the_broker_of_a_member_stops(
    protocol: Protocol, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(stack: AsyncExitStack) -> None:
        ours = await start_node(stack, "n0", protocol=protocol)
        flags = ["--cluster", f"nats://127.0.0.1:{free_port()}", "--routes", route_url(ours)]
        flags += ["--cluster_name", "hw"] if protocol == "v2" else []
        real = await asyncio.to_thread(
            start_nats_server,
            tmp_path,
            *flags,
            jetstream=False,
            binary=gnatsd_binaries()[0] if protocol == "v1" else None,
            port=free_port(),
        )
        stack.callback(real.stop)
        await meshed([ours], 1)
        publisher, inbox = await connect(stack, real.url), Inbox()
        await publisher.subscribe("work", queue="wkrs", cb=inbox.take)
        await publisher.flush()
        await spread({b"work"}, [ours], 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", ours.port)
        stack.callback(writer.close)
        writer.write(b'CONNECT {"verbose":false}\r\nSUB work wkrs 1\r\nSUB known 1\r\nPING\r\n')
        await reader.readuntil(b"PONG\r\n")
        member = asyncio.ensure_future(read_numbers(reader))
        sent = 0

        async def publish() -> None:
            nonlocal sent
            while not member.done() or sent < 300:
                sent += 1
                await publisher.publish("work", b"%d" % sent)
                if sent % 10 == 0:
                    await publisher.flush()
                if sent == 300:
                    stopping.append(asyncio.ensure_future(ours.stop()))

        stopping: list[asyncio.Future[None]] = []
        await publish()
        await stopping[0]
        await publisher.flush()
        got = [*member.result(), *(int(data) for _, data in inbox.got)]
        assert sorted(got) == list(range(1, sent + 1))
        assert len(member.result()) > 0
        assert "route_not_drained" not in caplog.text

    run(test)
