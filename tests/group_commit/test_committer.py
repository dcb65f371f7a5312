"""Group commit: one write for all who wait, in order; deletions and upkeep in between; errors to everybody concerned."""

import asyncio
import threading
from collections.abc import Callable
from typing import cast

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import StorageError, WriteFailed
from headwater.group_commit import committer
from headwater.group_commit.committer import INLINE_BYTES, LONE_BYTES, Committer
from headwater.group_commit.pace import PATIENCE
from headwater.group_commit.writers import Writers
from headwater.jetstream_state.items import Item
from headwater.streams.log import Log, LogOptions, refuse_writes
from headwater.streams.options import SMALLEST_SEGMENT, SyncPolicy
from headwater.streams.writer import StagedBatch


class Bench:
    """A committer on a log in memory, and what it reported."""

    def __init__(self, *, in_threads: bool = False, sync: SyncPolicy = "always") -> None:
        self.files = RecordingFiles()
        self.log = Log.open(self.files, "log", LogOptions(sync=sync, preallocate_bytes=0), 1)
        self.writers = Writers(1, "test") if in_threads else None
        self.durable: list[list[int]] = []
        self.failed: list[list[int]] = []
        self.then: Callable[[], None] = lambda: None
        self.committer = Committer(self.log, self.writers, self._on_durable, self._on_failed)

    def _on_durable(self, items: list[Item]) -> None:
        self.durable.append([item.sequence for item in items])
        self.then()

    def _on_failed(self, items: list[Item], error: StorageError) -> None:
        self.failed.append([item.sequence for item in items])

    def publish(self) -> int:
        sequence = self.log.stage(b"s", b"", b"payload", 1) + 1
        self.committer.add(Item(b"", b"", b"s", sequence, 8, b""), 8)
        return sequence

    @property
    def syncs(self) -> int:
        return sum(1 for verb, *_ in self.files.calls if verb == "sync")


@pytest.mark.parametrize("in_threads", [False, True])
def test_what_comes_in_one_turn_of_the_loop_shares_one_sync(in_threads: bool) -> None:
    async def main() -> None:
        bench = Bench(in_threads=in_threads)
        bench.publish()
        await bench.committer.flush()  # the first write also saves the log's state
        before = bench.syncs
        for _ in range(50):
            bench.publish()
        await bench.committer.flush()
        assert bench.durable == [[1], list(range(2, 52))]
        assert bench.syncs == before + 1
        assert bench.log.end_offset == 51
        if bench.writers is not None:
            bench.writers.shutdown()

    asyncio.run(main())


class SlowLog:
    """A log that notes in which thread it is written to, and takes the time that a test sets, by a clock of its own."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.delay = 0.0
        self.now = 0.0
        self.in_loop: list[bool] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.log, name)

    def write(self, batch: StagedBatch) -> None:
        self.in_loop.append(threading.current_thread() is threading.main_thread())
        self.now += self.delay
        self.log.write(batch)


def test_a_lone_item_is_answered_once_durable_and_before_the_log_shows_it() -> None:
    async def main() -> None:
        bench = Bench()
        seen: list[tuple[int, int, int]] = []

        def answer(item: Item) -> None:
            seen.append((item.sequence, bench.syncs, bench.log.end_offset))

        bench.committer.answer_first = answer
        bench.publish()
        await bench.committer.flush()
        before = bench.syncs
        bench.publish()
        await bench.committer.flush()
        assert seen[1:] == [(2, before + 1, 1)]
        bench.publish()
        bench.publish()
        await bench.committer.flush()
        assert len(seen) == 2, "several are answered together"
        bench.publish()
        refuse_writes(bench.log, "broken")
        await bench.committer.flush()
        assert (len(seen), bench.failed, bench.durable) == (2, [[5]], [[1], [2], [3, 4]])

    asyncio.run(main())


def test_a_log_shows_what_was_written_also_where_the_answer_fails(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        bench = Bench()

        def answer(item: Item) -> None:
            raise ZeroDivisionError

        bench.committer.answer_first = answer
        bench.publish()
        await bench.committer.flush()
        assert (bench.log.end_offset, bench.durable) == (1, [[1]])

    asyncio.run(main())
    assert "answer_failed" in caplog.text


def test_a_slow_write_sends_the_next_to_a_thread_until_they_are_quick_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        bench = Bench(in_threads=True)
        slow = SlowLog(bench.log)
        monkeypatch.setattr(committer, "perf_counter", lambda: slow.now)
        bench.committer = Committer(cast("Log", slow), bench.writers, lambda items: None, lambda items, error: None)

        async def write(delay: float) -> bool:
            slow.delay = delay
            bench.publish()
            await bench.committer.flush()
            return slow.in_loop[-1]

        assert await write(0.0001)
        assert await write(0.02)  # it cannot be known
        assert not await write(0.0001)
        assert await write(0.0001)
        waited = [await write(0.003) for _ in range(40)]  # none is very slow, and none is quick
        assert waited[0]
        assert not waited[-1]
        if bench.writers is not None:
            bench.writers.shutdown()

    asyncio.run(main())


def test_after_a_slow_write_the_loop_waits_for_the_next_only_where_nobody_else_speaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        events = 0
        monkeypatch.setattr(asyncio.get_running_loop(), "events_seen", lambda: events, raising=False)
        bench = Bench(in_threads=True)
        slow = SlowLog(bench.log)
        monkeypatch.setattr(committer, "perf_counter", lambda: slow.now)
        bench.committer = Committer(cast("Log", slow), bench.writers, lambda items: None, lambda items, error: None)

        async def write(delay: float, spoke: int) -> bool:
            nonlocal events
            events += spoke
            slow.delay = delay
            bench.publish()
            await bench.committer.flush()
            return slow.in_loop[-1]

        assert await write(0.015, 5)  # it cannot be known
        assert not await write(0.015, 2)
        assert await write(0.015, 1), "only the publisher spoke"
        assert await write(0.015, 1)
        assert not await write(0.015, 2)
        assert await write(PATIENCE + 0.01, 1)
        assert not await write(0.015, 1), "that was too long to be risked again"
        assert await write(0.015, 1)
        if bench.writers is not None:
            bench.writers.shutdown()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("sync", "time_ns", "in_loop"),
    [("always", 1, False), ("never", 1, True), ("interval", 1, True), ("interval", 2 * 10**9, False)],
)
def test_a_large_batch_is_written_in_the_loop_where_it_is_not_synced(
    sync: SyncPolicy, time_ns: int, in_loop: bool
) -> None:
    async def main() -> None:
        bench = Bench(in_threads=True, sync=sync)
        log = SlowLog(bench.log)
        bench.committer = Committer(cast("Log", log), bench.writers, bench._on_durable, bench._on_failed)
        bench.log.stage(b"s", b"", bytes(INLINE_BYTES + 1), time_ns)
        bench.committer.add(Item(b"", b"", b"s", 1, 8, b""), 8)
        await bench.committer.flush()
        assert log.in_loop == [in_loop] and bench.durable == [[1]]
        if bench.writers is not None:
            bench.writers.shutdown()

    asyncio.run(main())


def test_a_batch_that_opens_a_segment_is_written_by_a_thread() -> None:
    async def main() -> None:
        bench = Bench(in_threads=True)
        bench.log.limit_to(8 * SMALLEST_SEGMENT)
        log = SlowLog(bench.log)
        bench.committer = Committer(cast("Log", log), bench.writers, bench._on_durable, bench._on_failed)
        segments = []
        for _ in range(5):
            segments.append(len(bench.log.spans))
            bench.log.stage(b"s", b"", bytes(SMALLEST_SEGMENT // 3 - 1000), 1)
            bench.committer.add(Item(b"", b"", b"s", 1, 8, b""), 8)
            await bench.committer.flush()
        segments.append(len(bench.log.spans))
        assert segments == [1, 1, 1, 2, 2, 3]
        assert log.in_loop == [True, True, False, True, False]
        if bench.writers is not None:
            bench.writers.shutdown()

    asyncio.run(main())


@pytest.mark.parametrize("prepares", [True, False])
def test_after_a_large_write_the_next_one_is_prepared_when_nothing_waits(prepares: bool) -> None:
    async def main() -> None:
        bench = Bench(sync="never")
        options = LogOptions(sync="never", preallocate_bytes=4 * LONE_BYTES, prepares=prepares)
        bench.log = Log.open(bench.files, "other", options, 1)
        bench.committer = Committer(bench.log, None, bench._on_durable, bench._on_failed)
        sizes = [INLINE_BYTES + 1, INLINE_BYTES // 2, 2 * LONE_BYTES, INLINE_BYTES + 1]
        for sequence, size in enumerate(sizes, 1):
            bench.log.stage(b"s", b"", bytes(size), 1)
            bench.committer.add(Item(b"", b"", b"s", sequence, 8, b""), size)
            await bench.committer.flush()
            if sequence == len(sizes):
                bench.publish()  # it waits for the next turn
            before = len(bench.files.calls)
            await asyncio.sleep(0)
            written = [call[3] for call in bench.files.calls[before:] if call[0] == "write"]
            zeros = [data for data in written if isinstance(data, bytes) and not data.strip(b"\0")]
            assert len(zeros) == (prepares and sequence in (1, 3))
            assert all(len(data) <= LONE_BYTES for data in zeros)
        await bench.committer.flush()
        bench.log.close()

    asyncio.run(main())


def test_a_batch_of_one_large_item_is_written_in_the_loop_while_such_writes_are_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        bench = Bench(in_threads=True)
        slow = SlowLog(bench.log)
        monkeypatch.setattr(committer, "perf_counter", lambda: slow.now)
        bench.committer = Committer(cast("Log", slow), bench.writers, lambda items: None, lambda items, error: None)

        async def write(delay: float, size: int, items: int = 1) -> bool:
            slow.delay = delay
            for _ in range(items):
                sequence = bench.log.stage(b"s", b"", bytes(size // items), 1) + 1
                bench.committer.add(Item(b"", b"", b"s", sequence, 8, b""), size // items)
            await bench.committer.flush()
            return slow.in_loop[-1]

        assert await write(0.0007, INLINE_BYTES + 1)
        assert not await write(0.0007, 2 * INLINE_BYTES, items=2), "more might be staged meanwhile"
        assert not await write(0.0007, LONE_BYTES + 1)
        assert await write(0.015, LONE_BYTES)  # it cannot be known
        assert not await write(0.0007, INLINE_BYTES + 1)
        assert await write(0.0007, INLINE_BYTES + 1)
        assert await write(0.0001, 100), "small ones have a pace of their own"
        if bench.writers is not None:
            bench.writers.shutdown()

    asyncio.run(main())


def test_what_is_unwritten_is_weighed_until_it_is_durable() -> None:
    async def main() -> None:
        bench = Bench()
        for _ in range(3):
            bench.publish()
        assert bench.committer.unwritten_bytes == 24
        await bench.committer.flush()
        assert bench.committer.unwritten_bytes == 0

    asyncio.run(main())


def test_a_publish_from_within_an_acknowledgement_joins_the_next_write() -> None:
    async def main() -> None:
        bench = Bench()
        again = iter([True, False])

        def then() -> None:
            if next(again):
                bench.publish()

        bench.then = then
        bench.publish()
        await bench.committer.flush()
        assert bench.durable == [[1], [2]]

    asyncio.run(main())


def test_everybody_hears_of_a_failed_sync_and_a_barrier_raises() -> None:
    async def main() -> None:
        bench = Bench()
        bench.publish()
        await bench.committer.barrier()
        for attempt in range(bench.files.attempts, bench.files.attempts + 8):
            bench.files.faults[attempt] = 5
        bench.publish()
        with pytest.raises(WriteFailed):
            await bench.committer.barrier()
        assert bench.failed == [[2]]
        assert bench.log.end_offset == 1

    asyncio.run(main())


def test_a_deletion_is_durable_behind_a_barrier_and_of_its_own_accord_soon_after() -> None:
    async def main() -> None:
        bench = Bench()
        for _ in range(4):
            bench.publish()
        await bench.committer.flush()
        bench.log.discard(1)
        await bench.committer.barrier()
        crashed = Log.open(RecordingFiles(bench.files.snapshot()), "log", LogOptions(), 1)
        assert [record.offset for record in crashed.read(0, 9, 999)] == [0, 2, 3]
        bench.log.discard(2)
        bench.committer.note_deletions()
        async with asyncio.timeout(10):
            while bench.log.has_deletions:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_log_that_waits_for_a_thread_seals_what_came_meanwhile_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        bench = Bench(in_threads=True)
        assert bench.writers is not None
        slow = SlowLog(bench.log)
        monkeypatch.setattr(committer, "perf_counter", lambda: slow.now)
        bench.committer = Committer(cast("Log", slow), bench.writers, bench._on_durable, bench._on_failed)
        slow.delay = 0.02
        bench.publish()
        await bench.committer.flush()  # from here on writes go to a thread
        gate = threading.Event()
        for _ in range(2):
            bench.writers.submit(lambda _: gate.wait(30), None, lambda _, __: None)
        bench.publish()
        for _ in range(3):
            await asyncio.sleep(0)
        bench.publish()
        gate.set()
        await bench.committer.flush()
        assert bench.durable == [[1], [2, 3]]
        assert slow.in_loop == [True, False]
        bench.writers.shutdown()

    asyncio.run(main())
