"""Consumers against our server: every mode of auto-commit, groups that change, and where reading begins."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from headwater.errors import IggyError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.auto_commit import AutoCommit, Moment
from headwater.iggy_client.background import Background
from headwater.iggy_client.client import Client, connect
from headwater.iggy_client.consumer import ConsumerOptions, TopicConsumer
from headwater.iggy_client.producer import Direct, ProducerOptions
from headwater.iggy_client.session import Session
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Consumer, PollingStrategy
from headwater.iggy_wire.message_codec import ReceivedMessage


def with_topic(tmp_path: Path, work: Callable[[Client, str], Awaitable[None]], partitions: int = 1) -> None:
    """Six messages in each partition."""

    async def main() -> None:
        async with asyncio.timeout(60), Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            url = f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}"
            async with await connect(url, heartbeat=0) as client:
                await client.create_stream("s")
                await client.create_topic("s", "t", partitions)
                for partition in range(partitions):
                    await client.send("s", "t", [Message(b"%d" % number) for number in range(6)], partition)
                await work(client, url)

    asyncio.run(main())


async def take(consumer: TopicConsumer, count: int) -> list[ReceivedMessage]:
    """So many; the program is done with all but the last."""
    found: list[ReceivedMessage] = []
    async for message in consumer:
        found.append(message)
        if len(found) == count:
            break
    return found


async def stored(client: Client, owner: Consumer) -> int | None:
    view = await client.offset("s", "t", 0, owner)
    return None if view is None else view.stored_offset


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (AutoCommit(), None),
        (AutoCommit(at=Moment.POLLED), 3),  # the polls are of two messages
        (AutoCommit(at=Moment.EACH), 2),
        (AutoCommit(at=Moment.EACH, after=True), 1),
        (AutoCommit(at=Moment.EVERY, every=2, after=True), 1),
        (AutoCommit(at=Moment.EVERY, every=3), 2),
        (AutoCommit(at=Moment.ALL, after=True), 1),
        (AutoCommit(interval=1e-9), 1),
        (AutoCommit(interval=3600.0), None),
        (AutoCommit(interval=3600.0, at=Moment.EACH), 2),
    ],
)
def test_the_stored_offset_is_where_the_rule_says(tmp_path: Path, rule: AutoCommit, expected: int | None) -> None:
    async def work(client: Client, url: str) -> None:
        options = ConsumerOptions(auto_commit=rule, batch=2)
        consumer = client.consumer("s", "t", name="me", options=options)
        assert [message.payload for message in await take(consumer, 3)] == [b"0", b"1", b"2"]
        assert await stored(client, Consumer.single("me")) == expected
        assert consumer.last_stored_offset(0) == expected
        assert (consumer.last_consumed_offset(0), consumer.partition, consumer.name) == (1, 0, "me")
        await consumer.close()
        assert await stored(client, Consumer.single("me")) == (1 if rule.interval and not rule.at else expected)

    with_topic(tmp_path, work)


def test_another_run_goes_on_behind_what_was_stored_and_this_one_behind_what_it_was_given(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        options = ConsumerOptions(auto_commit=AutoCommit(at=Moment.EACH, after=True), start=PollingStrategy.first())
        consumer = client.consumer("s", "t", group="g", options=options)
        await take(consumer, 3)
        assert [message.offset for message in await take(consumer, 2)] == [3, 4]
        await consumer.close()
        again = client.consumer("s", "t", group="g", options=options)
        assert [message.offset for message in await take(again, 2)] == [4, 5]
        await again.close()
        replaying = client.consumer(
            "s", "t", group="g", options=ConsumerOptions(start=PollingStrategy.first(), allow_replay=True)
        )
        assert [message.offset for message in await take(replaying, 1)] == [0]

    with_topic(tmp_path, work)


def test_offsets_are_stored_and_deleted_by_hand(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        consumer = client.consumer("s", "t", name=7)
        await take(consumer, 4)
        await consumer.store_offset(2)
        assert (await stored(client, Consumer.single(7)), consumer.last_stored_offset(0)) == (2, 2)
        await consumer.delete_offset()
        assert (await stored(client, Consumer.single(7)), consumer.last_stored_offset(0)) == (None, None)
        assert (await take(consumer, 1))[0].offset == 0

    with_topic(tmp_path, work)


def test_a_callback_gets_every_message_until_the_event_is_set(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        over, got = asyncio.Event(), []

        async def callback(message: ReceivedMessage) -> None:
            got.append(message.offset)
            if len(got) == 4:
                over.set()

        options = ConsumerOptions(auto_commit=AutoCommit(interval=3600.0))
        await client.consumer("s", "t", group="g", options=options).consume(callback, over)
        assert (got, await stored(client, Consumer.group("g"))) == ([0, 1, 2, 3], 3)

        async def failing(message: ReceivedMessage) -> None:
            raise ValueError(message.offset)

        second = client.consumer(
            "s", "t", group="g", options=ConsumerOptions(auto_commit=AutoCommit(at=Moment.EACH, after=True))
        )
        with pytest.raises(ValueError, match="4"):
            await second.consume(failing)
        assert await stored(client, Consumer.group("g")) == 3

    with_topic(tmp_path, work)


def test_partitions_move_between_members_and_nothing_is_left_out(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        options = ConsumerOptions(auto_commit=AutoCommit(at=Moment.EACH, after=True), batch=2, sync_interval=0.01)
        got: set[tuple[int, int]] = set()

        async def read(reader: Client, until: asyncio.Event) -> None:
            async def note(message: ReceivedMessage) -> None:
                got.add((message.partition, message.offset))

            consumer = reader.consumer("s", "t", group="g", options=options)
            await consumer.consume(note, until)
            await consumer.close()

        async def reached(count: int) -> None:
            while len(got) < count:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.002)

        first_over, second_over = asyncio.Event(), asyncio.Event()
        first = asyncio.ensure_future(read(client, first_over))
        await reached(24)
        async with await connect(url, heartbeat=0) as other:
            second = asyncio.ensure_future(read(other, second_over))
            for partition in range(4):
                await client.send("s", "t", [Message(b"more")] * 3, partition)
            await reached(36)
            first_over.set()
            await first
            for partition in range(4):
                await other.send("s", "t", [Message(b"last")] * 3, partition)
            await reached(48)
            second_over.set()
            await second

    with_topic(tmp_path, work, partitions=4)


def test_a_purged_topic_is_read_from_its_new_beginning(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        consumer = client.consumer("s", "t", name=1)
        await take(consumer, 6)
        await client.purge_topic("s", "t")
        assert await consumer.next_batch(0.01) == []
        await client.send("s", "t", [Message(b"new")], 0)
        assert [message.payload for message in await take(consumer, 1)] == [b"new"]

    with_topic(tmp_path, work)


def test_what_is_not_there_is_refused_after_so_many_attempts(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        with pytest.raises(IggyError):
            await client.consumer("s", "none", group="g").next_batch()
        with pytest.raises(IggyError):
            await client.consumer("s", "t", group="none", options=ConsumerOptions(create_group=False)).next_batch()
        patient = client.consumer("s", "later", group="g", options=ConsumerOptions(init_attempts=1000, retry_wait=0.01))
        waiting = asyncio.ensure_future(patient.next_batch())
        await asyncio.sleep(0)
        await client.create_topic("s", "later")
        await client.send("s", "later", [Message(b"x")], 0)
        assert [message.payload for message in await waiting] == [b"x"]

    with_topic(tmp_path, work)


def test_every_wait_may_be_a_timedelta(tmp_path: Path) -> None:
    short = timedelta(milliseconds=1)

    async def work(client: Client, url: str) -> None:
        other = await connect(url, timeout=timedelta(seconds=30), reconnect_wait=short, heartbeat=timedelta(seconds=5))
        async with other:
            for mode in (Direct(linger=short), Background(linger=short, wait_for_room=short)):
                options = ProducerOptions(
                    mode=mode, retry_wait=short, create_stream=False, create_topic=False, partitioning=0
                )
                async with other.producer("s", "t", options=options) as producer:
                    await producer.send([Message(b"more")])
            rule = AutoCommit(interval=short)
            options_of_it = ConsumerOptions(
                auto_commit=rule, poll_interval=short, idle=short, retry_wait=short, sync_interval=short
            )
            consumer = other.consumer("s", "t", group="g", options=options_of_it)
            assert len(await consumer.next_batch(timedelta(seconds=30))) == 8
            await other.create_topic("s", "empty", 1)
            assert await other.consumer("s", "empty", group="g").next_batch(short) == []

    with_topic(tmp_path, work)


@pytest.mark.parametrize("given", [timedelta(milliseconds=1500), 1.5])
def test_the_options_of_a_connection_are_in_seconds(given: timedelta | float, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Session] = []

    async def start(session: Session, log_in: bool) -> None:
        seen.append(session)

    monkeypatch.setattr(Session, "start", start)
    asyncio.run(connect("iggy://127.0.0.1:1", timeout=given, reconnect_wait=given, heartbeat=given))
    (session,) = seen
    assert (session.options.timeout, session.options.reconnect_wait, session.options.heartbeat) == (1.5, 1.5, 1.5)
