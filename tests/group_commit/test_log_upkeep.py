"""Upkeep between writes: deletions become durable soon, checkpoints are made, errors cost nothing."""

import asyncio
import errno

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import DiskFull
from headwater.group_commit import log_upkeep
from headwater.group_commit.committer import Committer
from headwater.streams import log as log_module
from headwater.streams.log import Log, LogOptions
from headwater.streams.upkeep import Upkeep
from headwater.streams.writer import CHECKPOINT_FILE


class Bench:
    """A log in memory with its committer, written in the loop."""

    def __init__(self, count: int = 3) -> None:
        self.files = RecordingFiles()
        self.log = Log.open(self.files, "log", LogOptions(preallocate_bytes=0), 1)
        self.committer = Committer(self.log, None, lambda items: None, lambda items, error: None)
        self.publish(count)

    def publish(self, count: int = 1, size: int = 100) -> None:
        for _ in range(count):
            self.log.stage(b"s", b"", bytes(size), 1)
            self.committer.add(object(), size)


def test_a_deletion_is_written_without_a_publish_and_not_after_the_end() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.committer.flush()
        bench.log.discard(1)
        bench.committer.note_deletions()
        async with asyncio.timeout(15):
            while bench.log.has_deletions:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.01)
        bench.log.discard(2)
        bench.committer.note_deletions()
        bench.committer.close()
        assert bench.committer.upkeep._delayed is None
        assert bench.log.has_deletions

    asyncio.run(main())


def test_a_checkpoint_is_made_where_a_document_is_given_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(log_module, "CHECKPOINT_BYTES", 1)
        bench = Bench()
        await bench.committer.flush()
        assert CHECKPOINT_FILE not in bench.files.listdir("log")
        bench.committer.upkeep.document = lambda: b"what the face knows"
        bench.publish()
        await bench.committer.flush()
        assert CHECKPOINT_FILE in bench.files.listdir("log")

    asyncio.run(main())


def test_upkeep_that_fails_is_given_up_and_writes_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(log_module, "CHECKPOINT_BYTES", 1)
        bench = Bench()
        await bench.committer.flush()

        def document() -> bytes:
            first = bench.files.attempts
            bench.files.faults = dict.fromkeys(range(first, first + 9), errno.EIO)
            return b""

        bench.committer.upkeep.document = document
        bench.publish()
        await bench.committer.flush()
        assert bench.log.failure is None
        bench.files.faults = {}
        bench.committer.upkeep.document = None
        bench.publish()
        await bench.committer.flush()
        assert bench.log.end_offset == 5

    asyncio.run(main())


def test_what_is_to_be_kept_of_records_is_saved_before_they_leave_the_disk_and_else_they_stay() -> None:
    async def main() -> None:
        bench = Bench(0)
        bench.log.stage(b"s", b"", b"the record in question", 1)
        bench.committer.add(object(), 100)
        bench.publish(2)
        await bench.committer.flush()
        fault, seen = errno.ENOSPC, list[bool]()

        def is_on_disk() -> bool:
            names = (f"log/{name}" for name in bench.files.listdir("log") if name.endswith(".log"))
            return any(b"the record in question" in bench.files.content(name) for name in names)

        def save() -> None:
            seen.append(is_on_disk())
            if fault:
                raise OSError(fault, "no room")

        bench.committer.upkeep.before_loss = lambda: save
        bench.log.discard(0)
        bench.committer.erase(0)
        await bench.committer.barrier()
        assert seen == [True] and is_on_disk()
        fault = 0
        bench.committer.erase(0)
        await bench.committer.barrier()
        assert seen == [True, True] and not is_on_disk()

    asyncio.run(main())


def test_deletions_that_a_full_disk_refused_give_their_room_back_when_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_upkeep, "RETRY_DELAY", 0.02)

    async def main() -> None:
        bench = Bench(0)
        bench.publish(40, 1 << 16)
        await bench.committer.flush()
        size = bench.log.size_bytes

        used = bench.files.used
        bench.files.capacity = used
        bench.log.discard_range(0, 40)
        bench.committer.note_deletions()
        with pytest.raises(DiskFull):
            await bench.committer.barrier()
        assert bench.log.has_deletions
        bench.files.capacity = used + 1000  # the deletions find room, and a new segment none
        async with asyncio.timeout(15):
            while bench.log.has_deletions:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.01)
        assert bench.log.size_bytes >= size
        bench.files.capacity = used + (1 << 16)
        async with asyncio.timeout(15):
            while bench.log.size_bytes >= size:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await bench.committer.flush()
        assert bench.committer.upkeep._retry is None

    asyncio.run(main())


def test_upkeep_that_found_no_room_is_planned_anew_at_once_when_more_was_deleted_meanwhile() -> None:
    """A segment of which half is live cannot be compacted on a full disk; a moment later all of it is gone, and it goes."""

    async def main() -> None:
        bench = Bench(0)
        bench.publish(40, 1 << 16)
        await bench.committer.flush()
        size, refused = bench.log.size_bytes, list[object]()

        class Refusing:
            """The log, whose first upkeep finds no room."""

            def __getattr__(self, name: str) -> object:
                return getattr(bench.log, name)

            def maintain(self, upkeep: Upkeep) -> None:
                if refused:
                    return bench.log.maintain(upkeep)
                refused.append(upkeep)
                bench.log.discard_range(30, 40)  # while a thread was at work
                bench.committer.note_deletions()
                raise DiskFull("no room")

        bench.committer.upkeep._log = Refusing()  # type: ignore[assignment]
        bench.log.discard_range(0, 30)
        bench.committer.note_deletions()
        async with asyncio.timeout(15):  # RETRY_DELAY is twice as long
            while bench.log.size_bytes >= size:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.01)
        assert refused

    asyncio.run(main())
