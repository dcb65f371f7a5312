"""Producers against our server: batches, places, what is made at first use, and what happens without an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater.errors import IggyError, IncompleteSend
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy_client.background import Background
from headwater.iggy_client.client import Client, connect
from headwater.iggy_client.producer import Direct, ProducerOptions
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Partitioning, PollingStrategy


def with_client(tmp_path: Path, work: Callable[[Client], Awaitable[None]], unique: float = 0) -> None:
    async def main() -> None:
        options = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(unique_ids_seconds=unique))
        async with asyncio.timeout(60), Iggy(options, tmp_path) as iggy:
            url = f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}"
            async with await connect(url, heartbeat=0) as client:
                await work(client)

    asyncio.run(main())


def some(count: int, first: int = 0) -> list[Message]:
    return [Message(b"%d" % number) for number in range(first, first + count)]


async def payloads(client: Client, topic: str = "t", partition: int = 0) -> list[bytes]:
    polled = await client.poll("s", topic, partition, strategy=PollingStrategy.first())
    return [message.payload for message in polled]


def test_stream_and_topic_are_made_and_batches_are_of_the_size_that_was_said(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        options = ProducerOptions(mode=Direct(batch=4), partitions=2, partitioning=1)
        async with client.producer("s", "t", options) as producer:
            sent = await producer.send(some(10))
            assert [(one.partition, one.base_offset) for one in sent] == [(1, 0), (1, 4), (1, 8)]
            assert [one.partition for one in await producer.send(some(1), 0)] == [0]
            assert len(await producer.send_one(Message(b"x"), Partitioning.key("k"))) == 1
            assert await producer.send([]) == []
        polled = await client.poll("s", "t", 1, strategy=PollingStrategy.first())
        assert len({message.id for message in polled} - {0}) == len(polled) >= 10

    with_client(tmp_path, work)


def test_two_that_begin_together_both_find_the_topic_that_one_made(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        await asyncio.gather(*(client.producer("s", "t").send(some(1)) for _ in range(4)))
        assert len(await payloads(client)) == 4
        await client.create_topic("s", "other")
        await client.producer("s", "t").send_to("s", "other", some(2))
        assert await payloads(client, "other") == [b"0", b"1"]
        with pytest.raises(IggyError):
            await client.producer("none", "t", ProducerOptions(create_stream=False)).send(some(1))

    with_client(tmp_path, work)


def test_what_is_refused_comes_back_with_what_was_stored_before(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        producer = client.producer("s", "t", ProducerOptions(mode=Direct(batch=2)))
        batch = [*some(2), Message(b""), Message(b""), Message(b"5")]
        with pytest.raises(IncompleteSend, match="3 messages were not sent") as caught:
            await producer.send(batch)
        assert [message.payload for message in caught.value.failed] == [b"", b"", b"5"]
        assert [sent.base_offset for sent in caught.value.committed] == [0]
        assert isinstance(caught.value.cause, IggyError)

    with_client(tmp_path, work)


def test_a_send_without_an_answer_is_repeated_with_the_same_ids(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        producer = client.producer("s", "t", ProducerOptions(retry_wait=0.001))
        await producer.send(some(1))
        sending = asyncio.ensure_future(producer.send(some(3, 1)))
        for _ in range(2):
            await asyncio.sleep(0)
        connection = client._session._connection
        assert connection is not None
        connection.channel._link.flush()  # type: ignore[union-attr]  # it arrives, and its answer does not
        connection.channel._link.abort()  # type: ignore[union-attr]
        await sending
        assert client.reconnects == 1
        assert await payloads(client) == [b"0", b"1", b"2", b"3"]

    with_client(tmp_path, work, unique=60)


def test_in_the_background_sends_are_gathered_and_flush_waits(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        options = ProducerOptions(mode=Background(linger=30.0, batch=4), partitioning=0)
        async with client.producer("s", "t", options) as producer:
            for number in range(10):
                assert await producer.send(some(1, number)) == []
            await producer.flush()
            assert await payloads(client) == [b"%d" % number for number in range(10)]
            await producer.send(some(2, 10))
        assert len(await payloads(client)) == 12

    with_client(tmp_path, work)


def test_what_fails_in_the_background_is_raised_by_flush_and_told_at_once(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        reported: list[IncompleteSend] = []
        options = ProducerOptions(mode=Background(linger=0.0), partitioning=7, on_error=reported.append)
        producer = client.producer("s", "t", options)
        await producer.send(some(2))
        with pytest.raises(IncompleteSend, match="2 messages were not sent"):
            await producer.flush()
        assert [len(one.failed) for one in reported] == [2]
        await producer.send(some(1), 0)
        await producer.close()
        assert await payloads(client) == [b"0"]

    with_client(tmp_path, work)
