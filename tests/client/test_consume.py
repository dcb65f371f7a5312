"""Consuming without end, against a server that says what a test wants: every status, silence, and a new connection."""

import asyncio

import pytest
from support.scripted_server import Peer, ScriptedServer, conversation, finish, until

import headwater
from headwater.client.consume import ConsumerGone, Consumption
from headwater.client.pull import PullConsumer

ACK = b"$JS.ACK.S.C.1.%d.%d.1700000000000000000.0"


async def receive_request(peer: Peer) -> bytes:
    """The inbox of a pull request, whose subject and form are checked."""
    control = (await peer.receive_line()).split()
    assert control[:2] == [b"PUB", b"$JS.API.CONSUMER.MSG.NEXT.S.C"]
    body = await peer.receive(int(control[-1]) + 2)
    assert b'"idle_heartbeat"' in body
    return control[2]


def send_status(peer: Peer, inbox: bytes, status: bytes) -> None:
    block = b"NATS/1.0 " + status + b"\r\n\r\n"
    peer.send(b"HMSG %s 1 %d %d\r\n%s\r\n" % (inbox, len(block), len(block), block))


def send_message(peer: Peer, number: int) -> None:
    peer.send(b"MSG events.a 1 %s 1\r\nx\r\n" % (ACK % (number, number)))


async def first_of(messages: Consumption) -> int:
    return (await anext(aiter(messages))).metadata.stream_seq


@pytest.mark.parametrize(
    "status",
    [
        b"404 No Messages",
        b"408 Request Timeout",
        b"408 Request Timeout\r\nNats-Pending-Messages: 10\r\nNats-Pending-Bytes: 0",
        b"409 Batch Completed",
        b"409 Message Size Exceeds MaxBytes",
        b"409 Leadership Change",
        b"409 Server Shutdown",
    ],
)
def test_a_status_that_ends_a_request_has_the_next_one_sent(status: bytes) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with PullConsumer(client, "S", "C").consume(10) as messages:
                reading = asyncio.create_task(first_of(messages))
                await peer.receive_line()
                first = await receive_request(peer)
                send_status(peer, first, b"100 Idle Heartbeat")
                send_status(peer, first, status)
                assert await receive_request(peer) != first
                send_message(peer, 7)
                assert await reading == 7

    finish(main())


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (b"400 Bad Request", 400),
        (b"409 Consumer Deleted", 409),
        (b"409 Consumer is push based", 409),
        (b"409 Exceeded MaxRequestBatch of 5", 409),
        (b"503", 503),
    ],
)
def test_a_status_that_ends_the_consumer_raises(status: bytes, code: int) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with PullConsumer(client, "S", "C").consume(10) as messages:
                reading = asyncio.create_task(first_of(messages))
                await peer.receive_line()
                send_status(peer, await receive_request(peer), status)
                with pytest.raises(ConsumerGone) as caught:
                    await reading
                assert caught.value.code == code

    finish(main())


def test_a_status_that_lost_its_headers_on_the_way_is_a_sign_of_life() -> None:
    """A route of the first cluster protocol carries none: a heartbeat comes as an empty message."""

    async def main() -> None:
        async with conversation() as (client, peer):
            async with PullConsumer(client, "S", "C").consume(10) as messages:
                reading = asyncio.create_task(first_of(messages))
                await peer.receive_line()
                first = await receive_request(peer)
                peer.send(b"MSG %s 1 0\r\n\r\n" % first)
                send_message(peer, 7)
                assert await reading == 7

    finish(main())


def test_silence_has_the_question_asked_again_and_then_is_an_end() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with PullConsumer(client, "S", "C").consume(10, expires=0.04, heartbeat=0.01) as messages:
                reading = asyncio.create_task(first_of(messages))
                await peer.receive_line()
                for _ in range(3):
                    await receive_request(peer)
                with pytest.raises(ConsumerGone, match="does not answer"):
                    await reading

    finish(main())


def test_a_new_connection_has_the_question_asked_again_at_once() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            connecting = asyncio.create_task(
                headwater.connect(server.url, reconnect_wait=0.0, reconnect_jitter=0.0, error_callback=lambda _: None)
            )
            peer = await server.accept()
            await peer.welcome()
            client = await connecting
            async with PullConsumer(client, "S", "C").consume(10, expires=600, heartbeat=300) as messages:
                reading = asyncio.create_task(first_of(messages))
                await peer.receive_line()
                await receive_request(peer)
                peer.cut()
                peer = await server.accept()
                await peer.welcome()
                assert (await peer.receive_line()).startswith(b"SUB ")
                await receive_request(peer)
                send_message(peer, 3)
                assert await reading == 3
            await until(lambda: not client._connection.queues)
            peer.hang_up()
            await client.close()

    finish(main())


def test_a_malformed_block_is_a_message_that_raises_when_it_is_looked_at() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            async with PullConsumer(client, "S", "C").consume(10) as messages:
                reader = aiter(messages)
                reading = asyncio.ensure_future(anext(reader))
                await peer.receive_line()
                inbox = await receive_request(peer)
                peer.send(b"HMSG %s 1 %s 8 8\r\ngarbage!\r\n" % (inbox, ACK % (1, 1)))
                send_message(peer, 2)
                broken = await reading
                with pytest.raises(headwater.errors.HeaderError):
                    _ = broken.headers
                assert (await anext(reader)).metadata.stream_seq == 2

    finish(main())
