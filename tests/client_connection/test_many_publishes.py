"""`publish_many`: what an iterable gives is published in order, waits as publishes do, and says where it stopped."""

import asyncio
import secrets
from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from typing import Any

import pytest
from support.both_servers import Serve
from support.scripted_server import INFO, ScriptedServer, conversation, finish, until
from support.unruly_proxy import UnrulyProxy

import headwater
from headwater.client.client import Client
from headwater.client_connection import many_publishes
from headwater.errors import (
    AuthorizationError,
    BufferFull,
    ConnectionClosed,
    HeaderError,
    LocalProtocolError,
    PayloadTooLarge,
    SubjectError,
)

AT_ONCE: dict[str, Any] = {"reconnect_wait": 0.0, "reconnect_jitter": 0.0}


def quiet(_: BaseException) -> None:
    """An error callback for tests in which the connection is lost on purpose."""


async def published(messages: Iterable[Any], info: bytes = INFO) -> tuple[int, bytes]:
    """How many were published, and the bytes that reached the server."""
    async with conversation(info) as (client, peer):
        sent = await client.publish_many(messages)
        closing = asyncio.create_task(client.close())
        output = await peer.receive_end()
        peer.hang_up()
        await closing
        return sent, output


def test_messages_with_and_without_headers_are_on_the_wire_in_their_order() -> None:
    messages = [
        ("a", b"1"),
        ("a", bytearray(b"2")),
        ("b", memoryview(b"34"), None),
        ("a", b"5", {"K": ["1", "2"]}),
        ("a", b"", headwater.Headers()),
    ]
    assert finish(published(messages)) == (
        5,
        b"PUB a 1\r\n1\r\nPUB a 1\r\n2\r\nPUB b 2\r\n34\r\n"
        b"HPUB a 24 25\r\nNATS/1.0\r\nK: 1\r\nK: 2\r\n\r\n5\r\nPUB a 0\r\n\r\n",
    )


@pytest.mark.parametrize(
    "messages",
    [
        [("a", b"1"), ("a", b"2")],
        (("a", data) for data in (b"1", b"2")),
        zip(repeat("a"), [b"1", b"2"]),
        {("a", b"1"): None, ("a", b"2"): None},
    ],
    ids=["list", "generator", "zip", "dict"],
)
def test_anything_that_can_be_iterated_over_will_do(messages: Iterable[Any]) -> None:
    assert finish(published(messages)) == (2, b"PUB a 1\r\n1\r\nPUB a 1\r\n2\r\n")


def test_nothing_is_published_for_an_empty_iterable() -> None:
    assert finish(published(())) == (0, b"")


REFUSED: list[tuple[Any, type[Exception]]] = [
    (("a b", b""), SubjectError),
    (("", b""), SubjectError),
    (("a.*", b""), SubjectError),
    (("a", bytes(1048577)), PayloadTooLarge),
    (("a", bytes(1048570), {"K": "1"}), PayloadTooLarge),
    (("a", b"", {"K": "1\r\nX: 2"}), HeaderError),
    (("a", "text"), TypeError),
    (("a", None), TypeError),
    ((None, b""), TypeError),
    ((b"a", b""), TypeError),
    (("a",), TypeError),
    (("a", b"", None, ""), TypeError),
    (["a", b""], TypeError),
    ("ab", TypeError),
    (None, TypeError),
]


@pytest.mark.parametrize(("wrong", "kind"), REFUSED)
def test_a_refused_message_is_named_and_the_iterator_goes_on_behind_it(wrong: Any, kind: type[Exception]) -> None:
    async def main() -> tuple[BaseException, bytes]:
        async with conversation() as (client, peer):
            messages = iter([("a", b"1"), ("a", b"2"), wrong, ("a", b"3")])
            with pytest.raises(kind) as refused:
                await client.publish_many(messages)
            assert await client.publish_many(messages) == 1
            return refused.value, await peer.receive(3 * len(b"PUB a 1\r\n1\r\n"))

    error, output = finish(main())
    assert output == b"PUB a 1\r\n1\r\nPUB a 1\r\n2\r\nPUB a 1\r\n3\r\n"
    assert error.__notes__ == [
        "publish_many: message 3, counted from 1; those before it are buffered, those after it were not read"
    ]


def test_headers_to_a_server_without_headers_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="does not support headers"):
        finish(published([("a", b"", {"K": "1"})], info=b'INFO {"max_payload":99}\r\n'))


def test_an_error_of_the_iterable_is_passed_on_as_it_is_and_what_it_gave_is_sent() -> None:
    def failing() -> Iterator[tuple[str, bytes]]:
        yield "a", b"1"
        raise OSError("the disk is gone")

    async def main() -> bytes:
        async with conversation() as (client, peer):
            with pytest.raises(OSError, match="the disk is gone") as failed:
                await client.publish_many(failing())
            assert not hasattr(failed.value, "__notes__")
            return await peer.receive(len(b"PUB a 1\r\n1\r\n"))

    assert finish(main()) == b"PUB a 1\r\n1\r\n"


def test_the_loop_has_a_turn_once_in_a_mebibyte() -> None:
    async def main() -> int:
        async with conversation() as (client, peer):
            reading = asyncio.create_task(peer.receive(4 << 20))
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.create_task(count())
            await client.publish_many(repeat(("a", bytes(1 << 18)), 17))
            counting.cancel()
            await reading
            return turns

    assert finish(main()) >= 4


def test_a_slow_iterable_leaves_the_loop_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that stands at the end of every slice, each look at it gives way: message 1, and so on."""
    clock = iter(range(1, 1000))
    monkeypatch.setattr(many_publishes, "monotonic", lambda: float(next(clock)))

    async def main() -> list[int]:
        async with conversation() as (client, _):
            read: list[int] = []
            seen: list[int] = []

            def messages() -> Iterator[tuple[str, bytes]]:
                for number in range(4):
                    read.append(number)
                    yield "a", b""

            async def look() -> None:
                while True:
                    seen.append(len(read))
                    await asyncio.sleep(0)

            looking = asyncio.create_task(look())
            await client.publish_many(messages())
            looking.cancel()
            return seen

    assert {1, 2, 3} <= set(finish(main()))


def test_a_server_that_reads_nothing_is_waited_for() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            peer.stop_reading()
            given = 0

            def messages() -> Iterator[tuple[str, bytes]]:
                nonlocal given
                while given < 1000:
                    given += 1
                    yield "a", bytes(1 << 20)

            publishing = asyncio.create_task(client.publish_many(messages()))
            link = client._connection.link
            assert link is not None
            await until(lambda: link.pending > 1 << 20)
            for _ in range(100):
                await asyncio.sleep(0)
            assert given < 1000
            assert link.pending < 4 << 20
            publishing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await publishing

    finish(main())


async def _lose_the_server(server: ScriptedServer) -> Client:
    connecting = asyncio.create_task(
        headwater.connect(server.url, error_callback=quiet, reconnect_buffer=3 << 20, **AT_ONCE)
    )
    peer = await server.accept()
    await peer.welcome()
    client = await connecting
    peer.cut()
    await until(lambda: not client.is_connected)
    return client


def test_without_a_server_messages_are_kept_and_wait_from_a_mebibyte_on() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client = await _lose_the_server(server)
            messages = repeat(("a", bytes(1 << 18)), 9)
            publishing = asyncio.create_task(client.publish_many(messages))
            peer = await server.accept()
            for _ in range(10):
                await asyncio.sleep(0)
            assert not publishing.done()
            assert len(client._connection.writer.output) < 2 << 20
            await peer.welcome()
            line = b"PUB a %d\r\n" % (1 << 18)
            await peer.receive(9 * (len(line) + (1 << 18) + 2))
            assert await publishing == 9
            peer.hang_up()
            await client.close()

    finish(main())


def test_a_full_buffer_refuses_the_message_and_says_which() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client = await _lose_the_server(server)

            def messages() -> Iterator[tuple[str, bytes]]:
                yield "a", bytes(100)
                for _ in range(3):
                    client.publish("b", bytes((1 << 20) - 100))
                yield "a", bytes(1000)

            with pytest.raises(BufferFull) as full:
                await client.publish_many(messages())
            assert "message 2" in full.value.__notes__[0]
            await client.close()

    finish(main())


def test_a_connection_that_closes_in_the_middle_says_so() -> None:
    async def main() -> None:
        async with conversation() as (client, _):

            def messages() -> Iterator[tuple[str, bytes]]:
                yield "a", b"1"
                client._connection.refuse_publishes()
                yield "a", b"2"

            with pytest.raises(ConnectionClosed) as closed:
                await client.publish_many(messages())
            assert "message 2" in closed.value.__notes__[0]

    finish(main())


def test_an_iterable_may_itself_publish() -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):

            def messages() -> Iterator[tuple[str, bytes]]:
                client.publish("b", b"1")
                yield "a", b"2"
                client.publish("b", b"3")

            assert await client.publish_many(messages()) == 1
            return await peer.receive(3 * len(b"PUB a 1\r\n1\r\n"))

    assert finish(main()) == b"PUB b 1\r\n1\r\nPUB a 1\r\n2\r\nPUB b 1\r\n3\r\n"


def test_all_of_them_come_whole_and_in_order_on_both_servers(serve: Serve) -> None:
    async def main() -> None:
        subject, count = f"test.{secrets.token_hex(4)}", 20_000
        async with serve() as url, await headwater.connect(url) as one, await headwater.connect(url) as other:
            subscription = await other.subscribe(subject, max_messages=count)
            await other.flush()
            many = ((subject, b"%d" % number + bytes(number % 300)) for number in range(count))
            publishing = asyncio.create_task(one.publish_many(many))
            number = 0
            async for batch in subscription.batches():
                for message in batch:
                    assert message.data == b"%d" % number + bytes(number % 300)
                    number += 1
            assert (number, await publishing) == (count, count)

    finish(main(), 30)


def test_a_reconnect_in_the_middle_leaves_no_half_message_and_goes_on(serve: Serve) -> None:
    """What was on its way may be lost, as with any publish; what comes is whole and in order, and the end comes."""

    async def main() -> None:
        subject, count = f"test.{secrets.token_hex(4)}", 3000
        async with serve() as url, UnrulyProxy(url) as proxy, await headwater.connect(url) as other:
            subscription = await other.subscribe(subject)
            await other.flush()
            client = await headwater.connect(proxy.url, error_callback=quiet, **AT_ONCE)

            def messages() -> Iterator[tuple[str, bytes]]:
                for number in range(count):
                    if number == count // 2:
                        proxy.cut_all()
                    yield subject, b"%d." % number + bytes(1000)

            assert await client.publish_many(messages()) == count
            await until(lambda: client.reconnects == 1)
            await client.publish(subject, b"end.")
            await client.flush()
            numbers: list[int] = []
            async for message in subscription:
                head, _, rest = message.data.partition(b".")
                if head == b"end":
                    break
                assert rest == bytes(1000)
                numbers.append(int(head))
            assert numbers == sorted(set(numbers))
            await client.close()

    finish(main(), 30)


def test_a_missing_permission_is_raised_by_the_next_flush() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            await client.publish_many([("secret", b"1"), ("a", b"2")])
            await peer.receive(len(b"PUB secret 1\r\n1\r\nPUB a 1\r\n2\r\n"))
            peer.send(b"-ERR 'Permissions Violation for Publish to \"secret\"'\r\n")
            flushing = asyncio.create_task(client.flush())
            await peer.answer_ping()
            with pytest.raises(AuthorizationError, match="secret"):
                await flushing

    finish(main())


def test_islice_publishes_a_part() -> None:
    endless = (("a", b"%d" % number) for number in range(10**9))
    assert finish(published(islice(endless, 2))) == (2, b"PUB a 1\r\n0\r\nPUB a 1\r\n1\r\n")
    assert next(endless) == ("a", b"2")
