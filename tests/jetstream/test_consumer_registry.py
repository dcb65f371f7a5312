"""The consumers of a server's streams: they come back where they were, but for those that are kept in memory."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.registries import Registries, registries

from headwater.jetstream.delivering import DeliveringConsumer
from headwater.jetstream.pull import PullConsumer
from headwater.jetstream.push import PushConsumer
from headwater.jetstream.stream import Stream
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.consumer import Consumer


def files(store: Path) -> list[str]:
    return sorted(path.name for path in store.glob("streams/*/consumers/C-*"))


async def add(made: Registries, stream: Stream, **settings: Any) -> DeliveringConsumer:
    given: dict[str, Any] = {"durable_name": "C", "max_ack_pending": -1, "ack_wait": 30_000_000_000} | settings
    config = ConsumerConfig(**given)
    return await made.consumers.add(stream, "C", Consumer(config, 1))


def test_a_durable_consumer_comes_back_with_its_acknowledgements_and_what_is_pending(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create()
            consumer = await add(made, stream)
            await made.publish(b"s", 5)
            for sequence in (1, 2, 3):
                consumer.state.deliver_new(sequence, 1)
            consumer.state.ack(1, 1)
        async with registries(tmp_path) as made:
            state = made.streams.stream("S").consumers["C"].state
            assert (state.position, state.floor_stream, sorted(state.unacked)) == (4, 1, [2, 3])
            assert state.num_pending == 2

    asyncio.run(main())


def test_an_ephemeral_consumer_comes_back_until_nobody_has_used_it_for_its_threshold(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create()
            consumer = await add(made, stream, durable_name="", inactive_threshold=600 * 10**9)
            assert files(tmp_path) == []
            await made.publish(b"s", 2)
            consumer.state.deliver_new(1, 1)
            consumer.state.ack(1, 1)
        async with registries(tmp_path) as made:
            consumer = made.streams.stream("S").consumers["C"]
            assert (consumer.state.position, consumer.state.num_pending) == (2, 1)
            assert files(tmp_path) == []  # after a kill it would be older than it is
            consumer.reconfigure(msgspec.structs.replace(consumer.config, inactive_threshold=1))
            while made.streams.stream("S").consumers:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0)
            await asyncio.gather(*made.tasks)
        async with registries(tmp_path) as made:
            assert made.streams.stream("S").consumers == {}

    asyncio.run(main())


@pytest.mark.parametrize("setting", ["mem_storage", "direct"])
def test_an_ephemeral_consumer_in_memory_has_no_file_and_does_not_come_back(tmp_path: Path, setting: str) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create()
            await add(made, stream, durable_name="", **{setting: True})
            assert list(stream.consumers) == ["C"]
            assert files(tmp_path) == []
        async with registries(tmp_path) as made:
            assert made.streams.stream("S").consumers == {}

    asyncio.run(main())


def test_a_deleted_consumer_is_gone_from_the_disk_and_stays_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create()
            consumer = await add(made, stream)
            assert len(files(tmp_path)) == 2
            await asyncio.gather(made.consumers.save(stream, consumer), made.consumers.delete(stream, consumer))
            assert files(tmp_path) == []
            assert stream.consumers == {}
        async with registries(tmp_path) as made:
            assert made.streams.stream("S").consumers == {}

    asyncio.run(main())


def test_what_a_deleted_consumer_was_the_last_to_need_leaves_the_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create(retention="interest")
            consumer = await add(made, stream)
            await made.publish(b"s", 3)
            assert stream.log.record_count == 3
            await made.consumers.delete(stream, consumer)
            assert stream.log.record_count == 0

    asyncio.run(main())


def test_a_deliver_subject_makes_it_a_push_consumer(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create()
            pull = await add(made, stream)
            assert isinstance(pull, PullConsumer)
            await made.consumers.delete(stream, pull)
            assert isinstance(await add(made, stream, deliver_subject="inbox"), PushConsumer)

    asyncio.run(main())


def test_a_consumer_of_a_stream_in_memory_is_not_stored(tmp_path: Path) -> None:
    async def main() -> None:
        async with registries(tmp_path) as made:
            stream = await made.create(storage="memory")
            consumer = await add(made, stream)
            await made.consumers.save(stream, consumer)
            assert files(tmp_path) == []

    asyncio.run(main())
