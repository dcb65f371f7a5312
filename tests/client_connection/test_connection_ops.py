"""What is done once per message: a delivery off the wire, a publish onto it."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from support.scripted_server import INFO, conversation, finish

import headwater
from headwater.client_connection.awaitables import Later
from headwater.errors import HeaderError, LocalProtocolError, PayloadTooLarge, SubjectError


async def delivered(op: bytes) -> headwater.Message:
    """The message that comes out when the server says `op` to sid 1."""
    async with conversation() as (client, peer):
        subscription = await client.subscribe(">")
        peer.send(op)
        return await subscription.next()


def test_a_message_has_all_its_parts() -> None:
    message = finish(delivered(b"HMSG a.b 1 r.1 24 26\r\nNATS/1.0\r\nA: 1\r\nA: 2\r\n\r\nhi\r\n"))
    assert (message.subject, message.reply, message.data) == ("a.b", "r.1", b"hi")
    assert message.header_block == b"NATS/1.0\r\nA: 1\r\nA: 2\r\n\r\n"
    assert message.headers.get_all("A") == ["1", "2"]
    assert message.status is None


def test_an_empty_message_is_empty() -> None:
    message = finish(delivered(b"MSG a 1 0\r\n\r\n"))
    assert (message.subject, message.reply, message.data, message.header_block) == ("a", "", b"", b"")
    assert len(message.headers) == 0


def test_bytes_that_are_no_text_survive_in_subject_and_reply() -> None:
    message = finish(delivered(b"MSG a.\xff 1 \xfe 1\r\nx\r\n"))
    assert message.subject.encode("utf-8", "surrogateescape") == b"a.\xff"
    assert message.reply.encode("utf-8", "surrogateescape") == b"\xfe"


def test_a_malformed_header_block_is_delivered_and_raises_when_it_is_read() -> None:
    block = b"NATS/1.0\r\nno colon\r\n\r\n"

    async def main() -> None:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            peer.send(b"HMSG a 1 %d %d\r\n%sxy\r\nMSG a 1 1\r\nz\r\n" % (len(block), len(block) + 2, block))
            bad, good = await subscription.next(), await subscription.next()
            assert (bad.data, bad.header_block, good.data) == (b"xy", block, b"z")
            for _ in range(2):
                with pytest.raises(HeaderError, match="without colon"):
                    _ = bad.headers
            assert client.is_connected

    finish(main())


def test_a_message_for_a_sid_that_nobody_knows_is_passed_over() -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            peer.send(b"MSG a 99 1\r\n1\r\nMSG a 1 1\r\n2\r\n")
            return (await subscription.next()).data

    assert finish(main()) == b"2"


async def published(*calls: dict[str, Any], info: bytes = INFO) -> bytes:
    """The bytes that reach the server for these calls of `publish`."""
    async with conversation(info) as (client, peer):
        for call in calls:
            await client.publish(**call)
        client._connection._flush_soon()
        closing = asyncio.create_task(client.close())
        output = await peer.receive_end()
        peer.hang_up()
        await closing
        return output


def test_pub_and_hpub_on_the_wire() -> None:
    calls: Iterable[dict[str, Any]] = [
        {"subject": "a"},
        {"subject": "a", "data": b"x\r\n", "reply": "r"},
        {"subject": "b", "data": b"hi", "headers": {"K": ["1", "2"]}},
        {"subject": "b", "data": b"", "headers": [("K", "1")], "reply": "r"},
    ]
    assert finish(published(*calls)) == (
        b"PUB a 0\r\n\r\nPUB a r 3\r\nx\r\n\r\n"
        b"HPUB b 24 26\r\nNATS/1.0\r\nK: 1\r\nK: 2\r\n\r\nhi\r\n"
        b"HPUB b r 18 18\r\nNATS/1.0\r\nK: 1\r\n\r\n\r\n"
    )


@pytest.mark.parametrize("headers", [None, {}, [], iter(()), headwater.Headers()])
def test_no_headers_of_any_kind_send_a_plain_pub(headers: Any) -> None:
    assert finish(published({"subject": "a", "data": b"1", "headers": headers})) == b"PUB a 1\r\n1\r\n"


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc"), memoryview(b"xabcx")[1:4]])
def test_anything_bytes_like_is_a_payload(data: Any) -> None:
    assert finish(published({"subject": "a", "data": data})) == b"PUB a 3\r\nabc\r\n"


REFUSED: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"subject": ""}, SubjectError),
    ({"subject": "a b"}, SubjectError),
    ({"subject": "a\r\nPUB b 0"}, SubjectError),
    ({"subject": "a..b"}, SubjectError),
    ({"subject": "a.*"}, SubjectError),
    ({"subject": "\ud800"}, SubjectError),
    ({"subject": "a", "reply": "r r"}, SubjectError),
    ({"subject": "a", "reply": "\udc20"}, SubjectError),
    ({"subject": "a", "headers": {"K": "1\r\nX: 2"}}, HeaderError),
    ({"subject": "a", "headers": {"K: v\r\nX": "2"}}, HeaderError),
    ({"subject": "a", "headers": {"": "2"}}, HeaderError),
    ({"subject": "a", "data": bytes(1048577)}, PayloadTooLarge),
    ({"subject": "a", "data": bytes(1048576 - 10), "headers": {"K": "1"}}, PayloadTooLarge),
    ({"subject": "a", "data": "text"}, TypeError),
    ({"subject": "a", "data": 7}, TypeError),
    ({"subject": "a", "data": None}, TypeError),
    ({"subject": b"a"}, TypeError),
]


@pytest.mark.parametrize(("call", "kind"), REFUSED)
def test_a_refused_publish_sends_no_byte_and_the_next_one_is_whole(call: dict[str, Any], kind: type[Exception]) -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):
            with pytest.raises(kind):
                client.publish(**call)
            client.publish("good", b"1")
            return await peer.receive_line()

    assert finish(main()) == b"PUB good 1"


def test_a_payload_of_exactly_the_maximum_is_sent() -> None:
    info = b'INFO {"max_payload":4,"headers":true}\r\n'
    assert finish(published({"subject": "a", "data": b"1234"}, info=info)) == b"PUB a 4\r\n1234\r\n"


def test_a_payload_that_is_too_large_says_by_how_much() -> None:
    with pytest.raises(PayloadTooLarge, match="5 bytes for 'a', the server takes 4") as caught:
        finish(published({"subject": "a", "data": b"12345"}, info=b'INFO {"max_payload":4}\r\n'))
    assert (caught.value.value, caught.value.limit) == (5, 4)


def test_headers_to_a_server_without_headers_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="does not support headers"):
        finish(published({"subject": "a", "headers": {"K": "1"}}, info=b'INFO {"max_payload":99}\r\n'))


def test_many_publishes_of_one_turn_are_one_write() -> None:
    async def main() -> int:
        async with conversation() as (client, peer):
            link = client._connection.link
            assert link is not None
            for number in range(100):
                client.publish("a", b"%d" % number)
            assert link.sent == link._handed
            handed = link._handed
            await asyncio.sleep(0)
            assert link._handed > handed
            return len(await peer.receive(link._handed - handed))

    assert finish(main()) == 10 * len(b"PUB a 1\r\n1\r\n") + 90 * len(b"PUB a 2\r\n10\r\n")


def test_awaiting_publishes_gives_the_loop_a_turn_once_in_a_mebibyte() -> None:
    async def main() -> int:
        async with conversation() as (client, peer):
            reading = asyncio.create_task(peer.receive(3 << 20))
            waits = 0
            for _ in range(3 * 1024 + 16):
                sent = client.publish("a", bytes(1024))
                waits += isinstance(sent, Later)
                await sent
            await reading
            return waits

    assert finish(main()) == 3


def test_publishes_to_a_server_that_is_behind_try_to_write_once_in_128_kib() -> None:
    """They tried with each message, which was half of the CPU of a client that is faster than its server."""

    async def main() -> int:
        async with conversation() as (client, peer):
            peer.stop_reading()
            link = client._connection.link
            assert link is not None
            while not link._blocked:
                client.publish("a", bytes(1000))
            tries = 0
            flush = link.flush

            def count() -> None:
                nonlocal tries
                tries += 1
                flush()

            link.flush = count  # type: ignore[method-assign]
            for _ in range(1 << 10):
                client.publish("a", bytes(1000))
            return tries

    assert 7 <= finish(main()) <= 9


def test_a_publish_asks_for_a_turn_only_where_it_would_wait() -> None:
    """Part of the output is written: what is left, and not the buffer's size, is what the turn waits for. Turns that wait
    for nothing were taken with each message, until the server read on."""

    async def main() -> None:
        async with conversation() as (client, peer):
            peer.stop_reading()
            connection = client._connection
            link = connection.link
            assert link is not None
            while not link._blocked:
                client.publish("a", bytes(1000))
            for _ in range(2 << 10):
                connection.begin_turn()
                wants_turn = isinstance(client.publish("a", bytes(1000)), Later)
                waiting = link.draining()
                assert wants_turn == (waiting is not None)
                if waiting is not None:
                    waiting.cancel()

    finish(main())


def test_a_program_that_only_publishes_still_answers_pings() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):

            async def publish_for_ever() -> None:
                while True:
                    await client.publish("a", bytes(512))

            publishing = asyncio.create_task(publish_for_ever())
            peer.send(b"PING\r\n")
            while await peer.receive_line() != b"PONG":
                pass
            publishing.cancel()

    finish(main())
