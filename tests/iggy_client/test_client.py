import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater import HeaderValue, TypedHeaders
from headwater.errors import ConfigError, ConnectionClosed, IggyError, TransportError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_client.consumer import ConsumerOptions
from headwater.iggy_wire.commands import NO_PARTITION, Message
from headwater.iggy_wire.identifiers import Consumer, Partitioning, PollingStrategy

TYPED = TypedHeaders([("Key 1", "value1"), ("n", HeaderValue.from_uint64(2**64 - 1))])


def with_client(tmp_path: Path, work: Callable[[Client, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            url = f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}"
            async with await connect(url) as client:
                await client.create_stream("s")
                await client.create_topic("s", "t", partitions=3)
                await work(client, url)

    asyncio.run(main())


def test_what_is_sent_is_polled_with_its_headers_typed(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        sent = await client.send("s", "t", [Message(b"a", TYPED, id=7), Message(b"b")], 1)
        assert (sent.stream, sent.topic, sent.partition, sent.base_offset) == (0, 0, 1, 0)
        found = await client.poll("s", "t", 1)
        assert [(m.payload, m.headers, m.id, m.offset) for m in found] == [(b"a", TYPED, 7, 0), (b"b", None, 0, 1)]
        assert found[0].timestamp >= found[0].origin_timestamp > 0
        assert await client.poll("s", "t", 0) == []

    with_client(tmp_path, work)


def test_messages_stay_what_they_are_whatever_is_polled_later(tmp_path: Path) -> None:
    """Those of a large answer lie in the array that it was received in."""
    sizes = [10, 90_000, 40_000, 3, 90_000, 200_000, 90_000]

    async def work(client: Client, url: str) -> None:
        for number, size in enumerate(sizes):
            payloads = (b"%d" % number * size, b"%d" % number)
            await client.send("s", "t", [Message(payload, TYPED, id=number) for payload in payloads], 0)
        kept = []
        for turn in range(3 * len(sizes)):
            number = turn % len(sizes)
            found = await client.poll("s", "t", strategy=PollingStrategy.offset(2 * number), count=2)
            if turn % 3 == 0:
                kept.append((number, found))
        assert {number for number, _ in kept} == set(range(len(sizes)))
        for number, (first, second) in kept:
            assert first.payload == b"%d" % number * sizes[number] and second.payload == b"%d" % number
            assert (first.headers, first.id, second.id) == (TYPED, number, number)
            assert (first.offset, second.offset) == (2 * number, 2 * number + 1)

    with_client(tmp_path, work)


def test_every_strategy_begins_where_it_says(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        for number in range(3):
            await client.send("s", "t", [Message(b"%d%d" % (number, part)) for part in range(4)], 0)

        async def polled(strategy: PollingStrategy, count: int) -> list[bytes]:
            return [message.payload for message in await client.poll("s", "t", strategy=strategy, count=count)]

        everything = [b"%d%d" % (number, part) for number in range(3) for part in range(4)]
        assert await polled(PollingStrategy.first(), 100) == everything
        for start in range(12):
            for count in (1, 2, 5, 12):
                assert await polled(PollingStrategy.offset(start), count) == everything[start : start + count]
        assert await polled(PollingStrategy.last(), 5) == everything[-5:]
        assert await polled(PollingStrategy.offset(12), 5) == []
        times = [message.timestamp for message in await client.poll("s", "t", strategy=PollingStrategy.first())]
        assert await polled(PollingStrategy.timestamp(times[4]), 100) == everything[4:]
        assert await polled(PollingStrategy.timestamp(times[-1] + 1), 100) == []

    with_client(tmp_path, work)


def test_next_goes_on_behind_what_is_committed(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        await client.send("s", "t", [Message(b"%d" % number) for number in range(6)], 0)
        assert await client.offset("s", "t", 0) is None
        assert [m.payload for m in await client.poll("s", "t", count=2, auto_commit=True)] == [b"0", b"1"]
        assert [m.payload for m in await client.poll("s", "t", count=2)] == [b"2", b"3"]
        await client.store_offset("s", "t", 0, 4)
        view = await client.offset("s", "t", 0)
        assert view is not None and (view.stored_offset, view.current_offset) == (4, 5)
        assert [m.payload for m in await client.poll("s", "t")] == [b"5"]
        assert len(await client.poll("s", "t", consumer=Consumer.single("another"))) == 6
        with pytest.raises(IggyError, match="invalid_offset"):
            await client.store_offset("s", "t", 0, 6)

    with_client(tmp_path, work)


def test_balanced_takes_turns_and_a_key_stays_with_its_partition(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        assert [(await client.send("s", "t", [Message(b"x")])).partition for _ in range(6)] == [0, 1, 2] * 2
        keyed = {(await client.send("s", "t", [Message(b"x")], Partitioning.key("k"))).partition for _ in range(4)}
        assert len(keyed) == 1

    with_client(tmp_path, work)


def test_requests_of_many_tasks_get_their_own_answers(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        sends = [client.send("s", "t", [Message(b"%d" % number)], 0) for number in range(100)]
        offsets = [sent.base_offset for sent in await asyncio.gather(*sends)]
        assert offsets == list(range(100))
        polls = await asyncio.gather(
            *(client.poll("s", "t", strategy=PollingStrategy.offset(n), count=1) for n in offsets)
        )
        assert [found[0].payload for found in polls] == [b"%d" % number for number in range(100)]

    with_client(tmp_path, work)


def test_members_of_a_group_share_the_partitions_and_take_over(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        await client.create_group("s", "t", "g")
        assert (await client.join_group("s", "t", "g")).partitions == [0, 1, 2]
        other = await connect(url)
        assert (await other.join_group("s", "t", "g")).partitions == [1]
        first = await client.sync_group("s", "t", "g")
        assert (first.generation, first.partitions) == (2, [0, 2])
        await client.send("s", "t", [Message(b"one")], 1)
        assert (await client.poll_as("s", "t", 1, Consumer.group("g"), None, 10, True)).partition == NO_PARTITION
        assert [m.payload for m in await other.poll("s", "t", 1, consumer=Consumer.group("g"), auto_commit=True)] == [
            b"one"
        ]
        await other.close()
        while len((await client.sync_group("s", "t", "g")).partitions) < 3:
            continue  # each request gives the server a turn
        assert await client.poll("s", "t", 1, consumer=Consumer.group("g")) == []
        await client.leave_group("s", "t", "g")
        with pytest.raises(IggyError, match="consumer_group_member_not_found"):
            await client.sync_group("s", "t", "g")

    with_client(tmp_path, work)


def test_a_group_consumes_everything_once(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        await client.create_group("s", "t", "g")
        for partition in range(3):
            await client.send("s", "t", [Message(b"%d-%d" % (partition, n)) for n in range(5)], partition)
        got = set()
        async for message in client.consumer("s", "t", group="g", options=ConsumerOptions(batch=2)):
            got.add((message.partition, message.payload))
            if len(got) == 15:
                break
        assert got == {(p, b"%d-%d" % (p, n)) for p in range(3) for n in range(5)}

    with_client(tmp_path, work)


def test_refusals_and_losses_are_told(tmp_path: Path) -> None:
    async def work(client: Client, url: str) -> None:
        with pytest.raises(IggyError, match="stream_name_already_exists 1012"):
            await client.create_stream("s")
        with pytest.raises(IggyError, match="resource_not_found"):
            await client.send("s", "t", [Message(b"x")], 9)
        with pytest.raises(IggyError, match="empty_message_payload"):
            await client.send("s", "t", [Message(b"")], 0)
        assert await client.stream("none") is None
        with pytest.raises(IggyError, match="invalid_credentials"):
            await connect(url.replace("iggy:iggy", "iggy:wrong"))
        await client.close()
        with pytest.raises(ConnectionClosed):
            await client.ping()
        with pytest.raises(ConfigError):
            await connect("nats://127.0.0.1")
        with pytest.raises(TransportError):
            await connect("iggy://127.0.0.1:1")

    with_client(tmp_path, work)
