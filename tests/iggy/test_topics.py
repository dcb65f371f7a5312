"""A topic at work: where a send goes, what is committed, and when that is on disk."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import xxhash
from support.recording_files import RecordingFiles

from headwater.errors import IggyError
from headwater.group_commit.writers import Writers
from headwater.iggy import topics
from headwater.iggy.catalog import TopicEntry
from headwater.iggy.partition import Partition
from headwater.iggy.store import Offsets, Store
from headwater.iggy.topics import OffsetSaver, Topic, key_of
from headwater.iggy_wire.identifiers import Consumer, Partitioning
from headwater.streams.options import LogOptions


async def direct(work: Callable[[], Any]) -> Any:
    return work()


def with_topic(work: Callable[[Topic, Store, RecordingFiles], Awaitable[None]], partitions: int = 3) -> None:
    async def main() -> None:
        files = RecordingFiles()
        store = Store(files, "iggy")
        writers = Writers(1, "test")
        try:
            logs = [store.open_log(uid, LogOptions(preallocate_bytes=0), 1) for uid in range(partitions)]
            made = [Partition(uid, uid, 1, log, writers) for uid, log in enumerate(logs)]
            entry = TopicEntry(0, 9, "t", 1, list(range(partitions)))
            async with asyncio.timeout(20):
                await work(Topic(entry, made, Offsets()), store, files)
        finally:
            writers.shutdown()

    asyncio.run(main())


def test_a_send_goes_where_its_partitioning_says() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        turns = [topic.for_send(Partitioning.balanced(), 0).index for _ in range(4)]
        assert turns == [0, 1, 2, 0]
        assert topic.for_send(Partitioning.partition(1), 0).index == 1
        assert topic.for_send(Partitioning.partition(1), 1).index == 0
        keyed = {topic.for_send(Partitioning.key(b"customer 5"), era).index for era in (0, 1) for _ in range(3)}
        assert keyed == {xxhash.xxh32_intdigest(b"customer 5") % 3}, "the same for clients of every era"
        spread = {topic.for_send(Partitioning.key(number), 0).index for number in range(50)}
        assert spread == {0, 1, 2}
        for number, first in ((3, 0), (0, 1), (4, 1)):
            with pytest.raises(IggyError) as caught:
                topic.for_send(Partitioning.partition(number), first)
            assert caught.value.name == "partition_not_found"

    with_topic(work)


def test_a_topic_without_partitions_takes_nothing() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        with pytest.raises(IggyError) as caught:
            topic.for_send(Partitioning.balanced(), 0)
        assert caught.value.name == "no_partitions"

    with_topic(work, partitions=0)


def test_a_number_and_a_name_are_different_consumers_and_a_group_is_its_id() -> None:
    assert len({key_of(Consumer.single(1), None), key_of(Consumer.single("1"), None)}) == 2
    assert key_of(Consumer.group("g"), 7) == key_of(Consumer.group(7), 7) == "g:7"


def test_what_was_stored_can_be_forgotten_once() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        topic.commit(1, "c:1", 5)
        assert (topic.committed(1, "c:1"), topic.committed(0, "c:1"), topic.committed(1, "c:2")) == (5, None, None)
        topic.uncommit(1, "c:1")
        with pytest.raises(IggyError) as caught:
            topic.uncommit(1, "c:1")
        assert caught.value.number == 3021

    with_topic(work)


def test_an_offset_that_is_asked_for_is_on_disk_and_others_soon_are() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        saver = OffsetSaver(store, direct)
        topic.commit(0, "c:1", 5)
        await saver.saved(topic)
        assert store.load_offsets(9).stored == {0: {"c:1": 5}}
        topic.commit(0, "c:1", 6)
        saver.note(topic)
        await saver.stop()
        assert store.load_offsets(9).stored == {0: {"c:1": 6}}

    with_topic(work)


def test_a_disk_that_refuses_is_told_to_who_waits() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        saver = OffsetSaver(store, direct)
        topic.commit(0, "c:1", 5)
        files.faults = dict.fromkeys(range(files.attempts, files.attempts + 20), errno.EIO)
        with pytest.raises(IggyError) as caught:
            await saver.saved(topic)
        assert caught.value.name == "io_error"
        await saver.stop()

    with_topic(work)


def test_an_automatic_commit_that_the_disk_refuses_is_reported_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(topics, "SAVE_INTERVAL", 0.001)

    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        reported: list[dict[str, object]] = []
        rounds: asyncio.Queue[None] = asyncio.Queue()

        async def counted(save: Callable[[], Any]) -> None:
            rounds.put_nowait(None)
            await direct(save)

        saver = OffsetSaver(store, counted, lambda kind, **fields: reported.append({"kind": kind, **fields}))
        topic.commit(0, "c:1", 5)
        for failures in (1, 2):
            files.faults = dict.fromkeys(range(files.attempts, files.attempts + 1000), errno.ENOSPC)
            saver.note(topic)
            for _ in range(5):
                await rounds.get()
            assert [one["kind"] for one in reported] == ["write_refused"] * failures
            assert reported[-1]["topic"] == "t" and "offsets not saved: " in str(reported[-1]["reason"])
            files.faults = {}  # there is room again
            await saver.saved(topic)
            assert caplog.messages == ["offsets_saved_again topics=t"] * failures
        monkeypatch.setattr(topics, "BETWEEN_NOTES", 0.0)
        files.faults = dict.fromkeys(range(files.attempts, files.attempts + 1000), errno.ENOSPC)
        saver.note(topic)
        while len(reported) < 4:
            await rounds.get()
        files.faults = {}
        await saver.stop()
        assert store.load_offsets(9).stored == {0: {"c:1": 5}}

    with_topic(work)


def test_offsets_that_the_disk_refuses_do_not_keep_a_server_from_stopping() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        saver = OffsetSaver(store, direct)
        topic.commit(0, "c:1", 5)
        files.faults = dict.fromkeys(range(files.attempts, files.attempts + 1000), errno.ENOSPC)
        saver.note(topic)
        await saver.stop()
        files.faults = {}
        assert store.load_offsets(9).stored == {}

    with_topic(work)


def test_a_deleted_topic_is_not_tried_again() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        async def refuse(save: Callable[[], Any]) -> None:
            saver.forget(topic)  # it was deleted meanwhile
            raise OSError(errno.ENOSPC, "no room")

        saver = OffsetSaver(store, refuse)
        saver.note(topic)
        with pytest.raises(IggyError):
            await saver.saved(topic)
        await saver.stop()
        assert store.load_offsets(9).stored == {}

    with_topic(work)


def test_a_topic_that_is_gone_is_not_saved() -> None:
    async def work(topic: Topic, store: Store, files: RecordingFiles) -> None:
        saver = OffsetSaver(store, direct)
        topic.commit(0, "c:1", 5)
        saver.note(topic)
        saver.forget(topic)
        await saver.stop()
        assert store.load_offsets(9).stored == {}

    with_topic(work)
