"""A subscription in a program's hands: the ways to read it, its limits, its ends."""

import asyncio
import secrets
import sys
from typing import Any

import pytest
from support.both_servers import Serve
from support.scripted_server import Peer, conversation, finish, until

import headwater
import headwater.client_connection.arrow  # here, for its import may take longer than a handshake on a machine that is busy
from headwater.client.client import Client
from headwater.client_connection.events import CallbackFailed, Event
from headwater.client_connection.subscription import BATCH_BYTES, WhenFull
from headwater.errors import ConnectionClosed, HeadwaterError, LocalProtocolError, RequestTimeout, SubjectError


def send_messages(peer: Peer, *payloads: bytes, sid: int = 1) -> None:
    peer.send(b"".join(b"MSG a %d %d\r\n%s\r\n" % (sid, len(payload), payload) for payload in payloads))


async def settle(client: Client, peer: Peer) -> None:
    """Until the client has read all that the peer sent."""
    peer.send(b"PONG\r\n")
    await client._connection.flushes.add()


def test_sub_and_unsub_on_the_wire() -> None:
    async def main() -> list[bytes]:
        async with conversation() as (client, peer):
            plain = await client.subscribe("a.*")
            await client.subscribe("b", queue="workers", max_messages=3)
            plain.unsubscribe(5)
            plain.unsubscribe()
            plain.unsubscribe()
            return [await peer.receive_line() for _ in range(5)]

    assert finish(main()) == [b"SUB a.* 1", b"SUB b workers 2", b"UNSUB 2 3", b"UNSUB 1 5", b"UNSUB 1"]


@pytest.mark.parametrize(
    ("subject", "queue"), [("", ""), ("a b", ""), ("a.>.b", ""), ("a", "q q"), ("a", "q\r\n"), ("\udc20", "")]
)
def test_a_subject_or_queue_group_that_is_none_is_refused_before_a_byte(subject: str, queue: str) -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):
            with pytest.raises(SubjectError):
                await client.subscribe(subject, queue=queue)
            await client.subscribe("good")
            return await peer.receive_line()

    assert finish(main()).startswith(b"SUB good ")


def test_iteration_gives_messages_in_order_and_ends_at_the_maximum() -> None:
    async def main() -> list[bytes]:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a", max_messages=3)
            send_messages(peer, b"1", b"2", b"3", b"4")
            return [message.data async for message in subscription]

    assert finish(main()) == [b"1", b"2", b"3"]


def test_batches_are_bounded_and_one_read_is_one_batch() -> None:
    async def main() -> list[list[bytes]]:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a", max_messages=5)
            send_messages(peer, b"1", b"2", b"3", b"4", b"5")
            return [[message.data for message in batch] async for batch in subscription.batches(2)]

    assert finish(main()) == [[b"1", b"2"], [b"3", b"4"], [b"5"]]


def test_a_batch_of_nothing_is_refused() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            subscription = await client.subscribe("a")
            with pytest.raises(LocalProtocolError):
                async for _batch in subscription.batches(0):
                    raise AssertionError("a batch came")

    finish(main())


def test_leaving_an_iteration_loses_no_message() -> None:
    async def main() -> list[bytes]:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            send_messages(peer, b"1", b"2", b"3")
            read: list[bytes] = []
            async for message in subscription:
                read.append(message.data)
                break
            read.append((await subscription.next()).data)
            read.append((await anext(aiter(subscription))).data)
            return read

    assert finish(main()) == [b"1", b"2", b"3"]


def test_next_times_out_with_the_subject_and_loses_nothing() -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            with pytest.raises(RequestTimeout, match=r"'a' within 0\.01 s"):
                await subscription.next(0.01)
            send_messages(peer, b"1")
            return (await subscription.next(5)).data

    assert finish(main()) == b"1"


def test_two_readers_share_the_messages_and_nobody_starves() -> None:
    async def main() -> list[bytes]:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            readers = [asyncio.create_task(subscription.next()) for _ in range(3)]
            await peer.receive_line()
            for payload in (b"1", b"2", b"3"):
                send_messages(peer, payload)
            return sorted(message.data for message in await asyncio.gather(*readers))

    assert finish(main()) == [b"1", b"2", b"3"]


def test_unsubscribe_ends_it_at_once_and_what_waits_can_be_read() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            send_messages(peer, b"1", b"2")
            await settle(client, peer)
            subscription.unsubscribe()
            send_messages(peer, b"too late")
            await settle(client, peer)
            assert [message.data async for message in subscription] == [b"1", b"2"]
            with pytest.raises(ConnectionClosed, match="has ended"):
                await subscription.next()

    finish(main())


def test_a_maximum_counts_from_the_subscription_and_may_lie_in_the_past() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            send_messages(peer, b"1", b"2")
            await settle(client, peer)
            subscription.unsubscribe(3)
            assert not subscription.ended
            subscription.unsubscribe(2)
            assert subscription.ended
            assert subscription.received == 2

    finish(main())


def test_a_maximum_can_be_raised_before_it_is_reached() -> None:
    async def main() -> list[bytes]:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a", max_messages=1)
            subscription.unsubscribe(2)
            send_messages(peer, b"1", b"2", b"3")
            return [message.data async for message in subscription]

    assert finish(main()) == [b"1", b"2"]


def test_a_slow_reader_loses_the_newest_and_the_program_hears_of_it_once() -> None:
    async def main() -> list[BaseException]:
        delivered: list[BaseException] = []
        async with conversation(error_callback=delivered.append) as (client, peer):
            slow, other = await client.subscribe("a"), await client.subscribe("a")
            slow.max_pending = 2
            send_messages(peer, b"1", b"2", b"3", b"4")
            send_messages(peer, b"1", b"2", b"3", b"4", sid=2)
            await settle(client, peer)
            assert (slow.received, slow.dropped, slow.pending) == (4, 2, 2)
            assert (other.received, other.dropped, other.pending) == (4, 0, 4)
            assert [(await slow.next()).data, (await slow.next()).data] == [b"1", b"2"]
            assert client.is_connected
        return delivered

    (error,) = finish(main())
    assert isinstance(error, LocalProtocolError)
    assert "'a' is full" in str(error)


def test_what_came_before_the_connection_was_lost_is_read_before_the_error() -> None:
    async def main() -> list[bytes]:
        read: list[bytes] = []
        async with conversation(error_callback=lambda _: None) as (client, peer):
            subscription = await client.subscribe("a")
            send_messages(peer, b"1", b"2")
            peer.hang_up()
            await client.wait_closed()
            with pytest.raises(HeadwaterError, match="lost"):
                async for message in subscription:
                    read.append(message.data)  # noqa: PERF401 - what was read before the error is the point
        return read

    assert finish(main()) == [b"1", b"2"]


# ── callbacks ──


async def received_by(callback: Any, *payloads: bytes) -> list[BaseException]:
    """What is reported when `callback` gets these payloads."""
    reported: list[BaseException] = []
    async with conversation(error_callback=reported.append) as (client, peer):
        await client.subscribe("a", callback=callback)
        send_messages(peer, *payloads)
        await settle(client, peer)
        draining = asyncio.create_task(client.drain())
        for line in (b"SUB a 1", b"UNSUB 1"):
            assert await peer.receive_line() == line
        await peer.answer_ping()
        await peer.answer_ping()
        peer.hang_up()
        await draining
    return reported


def test_a_plain_callback_hears_every_message_in_order() -> None:
    delivered: list[bytes] = []
    assert finish(received_by(lambda message: delivered.append(message.data), b"1", b"2", b"3")) == []
    assert delivered == [b"1", b"2", b"3"]


def test_a_coroutine_callback_is_awaited_before_the_next_message() -> None:
    delivered: list[bytes] = []

    async def callback(message: headwater.Message) -> None:
        delivered.append(b"begin " + message.data)
        await asyncio.sleep(0)
        delivered.append(b"end " + message.data)

    assert finish(received_by(callback, b"1", b"2")) == []
    assert delivered == [b"begin 1", b"end 1", b"begin 2", b"end 2"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("failure", [ValueError("mine"), asyncio.CancelledError()])
def test_a_callback_that_raises_is_reported_and_hears_the_next_message(
    asynchronous: bool, failure: BaseException
) -> None:
    delivered: list[bytes] = []

    def plain(message: headwater.Message) -> None:
        delivered.append(message.data)
        if message.data == b"1":
            raise failure

    async def coroutine(message: headwater.Message) -> None:
        plain(message)

    (error,) = finish(received_by(coroutine if asynchronous else plain, b"1", b"2"))
    assert type(error) is type(failure)
    assert delivered == [b"1", b"2"]


def test_what_a_callback_raises_is_logged_with_its_traceback_and_names_the_subscription(
    caplog: pytest.LogCaptureFixture,
) -> None:
    happened: list[Event] = []

    def failing(message: headwater.Message) -> None:
        raise ValueError  # says nothing but its kind

    async def main() -> None:
        async with conversation(event_callback=happened.append) as (client, peer):
            await client.subscribe("orders.*", queue="w", callback=failing)
            peer.send(b"MSG orders.eu 1 0\r\n\r\n" * 2)
            await until(lambda: len(happened) == 2)

    finish(main())
    failed = happened[0]
    assert isinstance(failed, CallbackFailed)
    assert (type(failed.error), failed.subject, failed.sid, failed.queue) == (ValueError, "orders.*", 1, "w")
    assert failed.error.__notes__ == ["in the callback of the subscription 1 to 'orders.*' in the queue group 'w'"]
    record = next(each for each in caplog.records if "callback_failed" in each.getMessage())
    assert "subject=orders.* sid=1 error=ValueError()" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is failed.error
    assert "raise ValueError  # says nothing" in caplog.text
    assert "in the callback of the subscription 1" in caplog.text


def test_the_error_callback_gets_the_exception_with_its_note(caplog: pytest.LogCaptureFixture) -> None:
    raised = ValueError("mine")

    async def failing(message: headwater.Message) -> None:
        raise raised

    assert finish(received_by(failing, b"1", b"2")) == [raised, raised]
    assert raised.__notes__ == ["in the callback of the subscription 1 to 'a'"]  # once, though it was raised twice
    assert "raise raised" in caplog.text


def test_a_callback_may_end_its_own_subscription_and_hears_nothing_more() -> None:
    async def main() -> list[bytes]:
        delivered: list[bytes] = []
        async with conversation() as (client, peer):

            def callback(message: headwater.Message) -> None:
                delivered.append(message.data)
                subscription.unsubscribe()

            subscription = await client.subscribe("a", callback=callback)
            send_messages(peer, b"1", b"2", b"3")
            assert subscription.task is not None
            await subscription.task
        return delivered

    assert finish(main()) == [b"1"]


def test_a_callback_may_drain_its_own_subscription() -> None:
    async def main() -> list[bytes]:
        delivered: list[bytes] = []
        async with conversation() as (client, peer):

            async def callback(message: headwater.Message) -> None:
                delivered.append(message.data)
                if message.data == b"1":
                    await subscription.drain()

            subscription = await client.subscribe("a", callback=callback)
            send_messages(peer, b"1", b"2")
            for line in (b"SUB a 1", b"UNSUB 1"):
                assert await peer.receive_line() == line
            send_messages(peer, b"3")
            await peer.answer_ping()
            assert subscription.task is not None
            await subscription.task
        return delivered

    assert finish(main()) == [b"1", b"2", b"3"]


def test_a_slow_callback_is_held_to_the_same_limits() -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None) as (client, peer):
            go = asyncio.Event()

            async def callback(message: headwater.Message) -> None:
                await go.wait()

            subscription = await client.subscribe("a", callback=callback)
            subscription.max_pending = 2
            send_messages(peer, b"1")
            await settle(client, peer)
            await until(lambda: subscription.pending == 0)
            send_messages(peer, b"2", b"3", b"4")
            await settle(client, peer)
            assert (subscription.received, subscription.dropped) == (4, 1)
            go.set()

    finish(main())


def test_a_lost_connection_ends_the_callbacks_task_quietly() -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None) as (client, peer):
            subscription = await client.subscribe("a", callback=lambda _: None)
            peer.hang_up()
            assert subscription.task is not None
            await subscription.task

    finish(main())


def test_a_full_queue_may_drop_the_oldest_instead() -> None:
    async def main() -> None:
        delivered: list[BaseException] = []
        async with conversation(error_callback=delivered.append) as (client, peer):
            subscription = await client.subscribe("a", max_pending=3, when_full="drop_oldest")
            peer.send(b"".join(b"MSG a 1 1\r\n%d\r\n" % n for n in range(8)))
            await until(lambda: subscription.received == 8)
            assert [message.data for message in subscription.take(10)] == [b"5", b"6", b"7"]
            assert subscription.dropped == 5
            assert "the oldest messages are dropped" in str(delivered[0])
            with pytest.raises(LocalProtocolError):
                await client.subscribe("b", max_pending=0)
            with pytest.raises(LocalProtocolError):
                await client.subscribe("b", when_full="explode")  # type: ignore[arg-type]

    finish(main())


def test_record_batches_hold_what_waited_what_comes_and_nothing_twice() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a.*", max_messages=6)
            peer.send(b"MSG a.1 1 1\r\n1\r\n")
            await until(lambda: subscription.received == 1)
            batches = subscription.record_batches(rows=4)
            first = await anext(batches)
            assert first.to_pylist() == [{"subject": "a.1", "reply": None, "header_block": None, "data": b"1"}]
            peer.send(
                b"MSG a.2 1 re 1\r\n2\r\nHMSG a.3 1 18 19\r\nNATS/1.0\r\nK: v\r\n\r\n3\r\n"
                b"MSG a.\xff 1 0\r\n\r\nMSG a.5 1 0\r\n\r\nMSG a.6 1 0\r\n\r\n"
            )
            rest = [batch async for batch in batches]
            for batch in rest:
                batch.validate(full=True)
            assert [row for batch in rest for row in batch.to_pylist()] == [
                {"subject": "a.2", "reply": "re", "header_block": None, "data": b"2"},
                {"subject": "a.3", "reply": None, "header_block": b"NATS/1.0\r\nK: v\r\n\r\n", "data": b"3"},
                {"subject": "a.\ufffd", "reply": None, "header_block": None, "data": b""},
                {"subject": "a.5", "reply": None, "header_block": None, "data": b""},
                {"subject": "a.6", "reply": None, "header_block": None, "data": b""},
            ]
            assert max(batch.num_rows for batch in rest) == 4

    finish(main())


@pytest.mark.parametrize(
    ("limits", "half"), [({}, BATCH_BYTES // 2), ({"max_pending": 4}, 1), ({"max_pending_bytes": 2000}, 500)]
)
def test_a_reader_of_record_batches_lingers_until_there_is_enough(limits: dict[str, Any], half: int) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a", **limits)
            batches = subscription.record_batches(linger=3600.0)
            waiting = asyncio.ensure_future(anext(batches))
            send_messages(peer, b"x" * half)
            await settle(client, peer)
            assert not waiting.done()
            send_messages(peer, b"x" * half)
            assert (await waiting).num_rows == 2

    finish(main())


def test_columns_are_bounded_as_messages_are() -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None) as (client, peer):
            subscription = await client.subscribe("a", max_pending=3, max_messages=8)
            batches = subscription.record_batches()
            waiting = asyncio.ensure_future(anext(batches))
            await asyncio.sleep(0)
            peer.send(b"".join(b"MSG a 1 1\r\n%d\r\n" % n for n in range(8)))
            rows = (await waiting).num_rows + sum([batch.num_rows async for batch in batches])
            assert rows == 8 - subscription.dropped
            assert subscription.dropped > 0

    finish(main())


@pytest.mark.parametrize("when_full", ["drop_newest", "drop_oldest"])
def test_a_flood_that_nobody_reads_is_bounded_and_counted(serve: Serve, when_full: WhenFull) -> None:
    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        delivered: list[BaseException] = []
        async with serve() as url, await headwater.connect(url, error_callback=delivered.append) as client:
            by_count = await client.subscribe(subject, max_pending=100, when_full=when_full)
            by_size = await client.subscribe(subject, max_pending_bytes=10_000, when_full=when_full)
            columns = await client.subscribe(subject, max_pending=100)
            batches = columns.record_batches()
            beginning = asyncio.ensure_future(anext(batches))
            async with await headwater.connect(url) as other:
                await client.flush()
                for number in range(5_000):
                    await other.publish(subject, b"%0128d" % number)
                await other.flush()
            await client.flush()
            await until(lambda: by_count.received == 5_000)
            assert (by_count.pending, by_count.dropped, by_count.pending_bytes) == (100, 4_900, 12_800)
            assert (by_size.pending, by_size.dropped, by_size.pending_bytes) == (78, 4_922, 78 * 128)
            assert columns.pending <= 100
            rows = (await beginning).num_rows + columns.pending
            assert columns.dropped == 5_000 - rows
            first, last = by_count.take(100)[::99]
            wanted = (0, 99) if when_full == "drop_newest" else (4_900, 4_999)
            assert (int(first.data), int(last.data)) == wanted
            assert by_count.pending_bytes == 0
            assert 3 <= len(delivered) <= 4, "once per overrun; the columns were read once, and may have two"
            columns.unsubscribe()
            await batches.aclose()  # type: ignore[attr-defined] # it is a generator

    finish(main(), 40)


def test_a_message_is_gone_with_its_last_reference() -> None:
    """Messages are no part of garbage collection (`no_gc`): nothing that one holds may lead back to it."""

    async def main() -> None:
        async with conversation() as (client, peer):
            data, channel = bytes(1000), client._connection
            before = (sys.getrefcount(data), sys.getrefcount(channel))
            for _ in range(100):
                message = headwater.Message("a", data, "r", b"NATS/1.0\r\nK: v\r\n\r\n", channel)
                assert message.headers["K"] == "v"
                assert message.status is None
            subscription = await client.subscribe("a")
            send_messages(peer, *[b"x"] * 100)
            await until(lambda: subscription.pending == 100)
            for message in subscription.take(100):
                message.header_block = b""
                assert not message.headers
            subscription.unsubscribe()
            del message
            assert (sys.getrefcount(data), sys.getrefcount(channel)) <= (before[0], before[1] + 1)

    finish(main())
