"""The group commit of a partition: what is written together, who hears of it, and what keeps writes away."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import StorageError
from headwater.iggy.batches import of_messages
from headwater.iggy.commands import Message
from headwater.iggy.committer import MAX_STAGED_BYTES, Committer
from headwater.streams.iggy_batch import stamp
from headwater.streams.log import Log
from headwater.streams.options import LogOptions, SyncPolicy


class ByHand(Executor):
    """An executor whose work is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except (OSError, StorageError) as error:
                future.set_exception(error)

        self.waiting.append(work)
        return future


class Desk:
    """A log, its committer, and what was heard of each send."""

    def __init__(self, sync: SyncPolicy = "always", files: RecordingFiles | None = None) -> None:
        self.log = Log.open(files or RecordingFiles(), "log", LogOptions(sync=sync, preallocate_bytes=0), 1)
        self.executor = ByHand()
        self.committer = Committer(self.log, self.executor)
        self.heard: list[tuple[str, StorageError | None]] = []

    def send(self, name: str) -> None:
        batch, count = of_messages([Message(name.encode())], 1)
        stamp(batch, 0, 0, self.log.next_offset, 1)
        self.log.stage_iggy(bytes(batch), count, 1000)
        self.committer.add(lambda error: self.heard.append((name, error)))

    @property
    def names(self) -> list[str]:
        return [name for name, error in self.heard if error is None]


def in_loop(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await work()

    asyncio.run(main())


async def turns(number: int = 3) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_what_comes_while_a_write_runs_joins_the_next() -> None:
    async def work() -> None:
        desk = Desk()
        desk.send("a")
        desk.send("b")
        await turns()
        assert len(desk.executor.waiting) == 1 and desk.heard == []
        desk.send("c")
        desk.send("d")
        await turns()
        assert len(desk.executor.waiting) == 1
        desk.executor.waiting.pop()()
        await turns()
        assert desk.names == ["a", "b"] and desk.log.end_offset == 2
        desk.executor.waiting.pop()()
        await desk.committer.flush()
        assert desk.names == ["a", "b", "c", "d"] and desk.log.end_offset == 4

    in_loop(work)


def test_without_a_sync_the_write_is_done_in_the_loop_and_readers_are_told() -> None:
    async def work() -> None:
        desk, told = Desk("never"), []
        desk.committer.on_stored = lambda: told.append(desk.log.end_offset)
        desk.send("a")
        desk.send("b")
        await turns(2)
        assert desk.names == ["a", "b"] and told == [2] and desk.executor.waiting == []

    in_loop(work)


@pytest.mark.parametrize("sync", ["always", "never"])
def test_a_write_that_fails_is_told_to_all_who_wait_and_to_nobody_else(sync: SyncPolicy) -> None:
    async def work() -> None:
        files = RecordingFiles()
        desk = Desk(sync, files)
        desk.committer.on_stored = lambda: desk.heard.append(("readers", None))
        files.faults = dict.fromkeys(range(files.attempts, files.attempts + 20), errno.EIO)
        desk.send("a")
        desk.send("b")
        await turns()
        for job in desk.executor.waiting:
            job()
        await desk.committer.flush()
        assert [(name, error is not None) for name, error in desk.heard] == [("a", True), ("b", True)]
        assert desk.log.end_offset == 0

    in_loop(work)


def test_exclusive_keeps_writes_away_and_is_refused_while_one_runs() -> None:
    async def work() -> None:
        desk = Desk()
        with desk.committer.exclusive() as alone:
            assert alone
            desk.send("a")
            await turns()
            assert desk.executor.waiting == []
        await turns()
        assert len(desk.executor.waiting) == 1
        with desk.committer.exclusive() as alone:
            assert not alone
        desk.executor.waiting.pop()()
        await desk.committer.flush()
        assert desk.names == ["a"]

    in_loop(work)


def test_nothing_staged_is_answered_at_once_and_much_of_it_is_too_much() -> None:
    async def work() -> None:
        desk = Desk()
        desk.committer.add(lambda error: desk.heard.append(("nothing", error)))
        await desk.committer.flush()
        assert desk.names == ["nothing"] and desk.executor.waiting == []
        assert not desk.committer.full
        body = bytes(MAX_STAGED_BYTES + 1)
        desk.log.stage_iggy(body, 1, 1)
        assert desk.committer.full

    in_loop(work)


def test_with_real_threads_every_send_hears_once() -> None:
    async def work() -> None:
        desk = Desk()
        with ThreadPoolExecutor(2) as threads:
            desk.committer = Committer(desk.log, threads)
            for number in range(50):
                desk.send(str(number))
                await asyncio.sleep(0)
            await desk.committer.flush()
        assert desk.names == [str(number) for number in range(50)]

    in_loop(work)
