"""Room kept for deletions: on a full disk they are written, and give back more than they took."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest
from support.recording_files import RecordingFiles

from headwater.durable_files.files import File
from headwater.errors import DiskFull
from headwater.group_commit import reserve as reserve_module
from headwater.group_commit.committer import Committer
from headwater.group_commit.reserve import NAME, Reserve
from headwater.group_commit.writers import Writers
from headwater.streams.log import Log, LogOptions


class Bench:
    """A log on a disk that has `room` bytes more than it and a reserve take."""

    def __init__(self, count: int, size: int = 1 << 16) -> None:
        self.files = RecordingFiles()
        self.log = Log.open(self.files, "log", LogOptions(preallocate_bytes=0), 1)
        self.writers = Writers(1, "test")
        self.reserve = self.writers.reserve = Reserve(self.files, "log")
        assert self.reserve.keep()
        self.refused: list[object] = []
        self.committer = Committer(self.log, self.writers, lambda items: None, self._on_failed)
        self.publish(count, size)

    def _on_failed(self, items: list[object], error: BaseException) -> None:
        assert isinstance(error, DiskFull)
        self.refused += items

    def publish(self, count: int = 1, size: int = 1 << 16) -> None:
        for _ in range(count):
            self.log.stage(b"s", b"", bytes(size), 1)
            self.committer.add(object(), size)

    def fill_the_disk(self) -> None:
        self.files.capacity = self.files.used

    async def end(self) -> None:
        await self.committer.flush()
        self.writers.shutdown()
        assert all(not name.endswith(".new") for name in self.files.listdir("log"))


def test_what_is_deleted_on_a_full_disk_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve_module, "SIZE", 1 << 16)

    async def main() -> None:
        bench = Bench(40)
        await bench.committer.flush()
        bench.fill_the_disk()
        bench.publish()
        await bench.committer.flush()
        assert len(bench.refused) == 1
        bench.log.discard_range(0, 40)
        bench.committer.note_deletions()
        await bench.committer.barrier()
        await bench.committer.flush()
        bench.publish()
        await bench.committer.flush()
        assert len(bench.refused) == 1
        assert bench.reserve.whole
        await bench.end()

    asyncio.run(main())


def test_records_do_not_use_up_the_room_that_deletions_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve_module, "SIZE", 1 << 16)

    async def main() -> None:
        bench = Bench(3, 100)
        await bench.committer.flush()
        bench.fill_the_disk()
        bench.log.discard(0)
        await bench.committer.barrier()
        assert not bench.reserve.whole
        bench.publish(1, 100)
        await bench.committer.flush()
        assert len(bench.refused) == 1
        bench.log.discard(1)
        await bench.committer.barrier()
        bench.files.capacity = None
        bench.publish(1, 100)
        await bench.committer.flush()
        assert len(bench.refused) == 1
        await bench.end()

    asyncio.run(main())


def test_deletions_are_written_alone_when_the_records_beside_them_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve_module, "SIZE", 1 << 16)

    async def main() -> None:
        bench = Bench(3, 100)
        await bench.committer.flush()
        bench.fill_the_disk()
        bench.log.discard(1)
        bench.publish()
        await bench.committer.barrier()
        assert len(bench.refused) == 1
        assert not bench.log.has_deletions
        bench.files.capacity = None
        bench.publish(1, 100)
        await bench.end()
        bench.log.close()
        again = Log.open(bench.files, "log", LogOptions(), 1)
        assert [again.is_absent(offset) for offset in range(3)] == [False, True, False]
        again.close()

    asyncio.run(main())


def test_a_compaction_without_room_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve_module, "SIZE", 1 << 16)

    async def main() -> None:
        bench = Bench(40)
        await bench.committer.flush()
        bench.fill_the_disk()
        begun = len(bench.files.calls)
        bench.log.discard(7)
        bench.committer.erase(7)
        await bench.committer.barrier()
        await bench.end()
        # It is not even begun while the reserve is lent: what it would use up in vain may be needed for other deletions.
        assert not any(str(path).endswith("/00000000000000000000.log.new") for _, path, *_ in bench.files.calls[begun:])

    asyncio.run(main())


def test_it_is_taken_again_once_the_disk_has_room_and_given_back_at_the_end() -> None:
    files = RecordingFiles()
    files.capacity = 1000
    files.mkdir("store")
    reserve = Reserve(files, "store")
    assert not reserve.keep()
    files.capacity = None
    assert reserve.keep()
    assert files.listdir("store") == [NAME]
    reserve.release()
    reserve.release()
    assert reserve.keep()  # what a stopping server still has to write is written, and no room is taken for it
    assert files.listdir("store") == []


def test_another_error_is_not_answered_with_the_reserve() -> None:
    files = RecordingFiles()
    files.mkdir("store")
    reserve = Reserve(files, "store")
    reserve.keep()
    calls: list[int] = []

    def work(number: int) -> None:
        calls.append(number)
        raise ValueError

    with pytest.raises(ValueError):
        reserve.run(work, 1)
    assert calls == [1]
    assert reserve.whole


def test_a_write_waits_while_another_thread_takes_the_room() -> None:
    """The first records of two streams: neither is refused on a disk that has room."""
    taking, wanted, may_go_on = Event(), Event(), Event()

    class Slow(Reserve):
        def _fill(self, file: File) -> None:
            taking.set()
            assert may_go_on.wait(30)
            super()._fill(file)

    class Watched:
        """The lock of the reserve, which tells when the second thread wants it."""

        def __init__(self, lock: Lock) -> None:
            self.release = lock.release
            self._lock = lock

        def acquire(self, blocking: bool = True) -> bool:
            if taking.is_set():
                wanted.set()
            return self._lock.acquire(blocking)

    files = RecordingFiles()
    files.mkdir("store")
    reserve = Slow(files, "store")
    reserve._lock = Watched(reserve._lock)  # type: ignore[assignment]
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(reserve.keep)
        assert taking.wait(30)
        second = threads.submit(reserve.keep)
        assert wanted.wait(30)
        may_go_on.set()
        assert first.result(30) and second.result(30)
