"""A disk that refuses the writes of copies, and of nothing else: they go on where they were, without a hole or a double."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.jetstream_in_process import Desk, served
from support.recording_files import RecordingFile, RecordingFiles

STORE = Path("store")
COPIES = ("M", "Z", "Q")


class RefusingFiles(RecordingFiles):
    """`allowed`: how many writes the log of each copy may still do, None for any number; then `error`. `refused`: the names
    of the streams that have met it."""

    def __init__(self, error: int) -> None:
        super().__init__()
        self.error = error
        self.allowed: dict[str, int] | None = None
        self.refused: set[str] = set()

    def open(self, path: str) -> RecordingFile:
        return self._mine(path, super().open(path))

    def create(self, path: str) -> RecordingFile:
        return self._mine(path, super().create(path))

    def _mine(self, path: str, file: RecordingFile) -> RecordingFile:
        name = next((name for name in COPIES if f"/streams/{name}-" in path and path.endswith(".log")), "")
        if name:
            self.open_files -= 1
            file = CopyFile(self, file._inode, name)
            self.open_files += 1
        return file

    def judge(self, name: str) -> None:
        if self.allowed is None:
            return
        if self.allowed[name] <= 0:
            self.refused.add(name)
            self.faults[self.attempts] = self.error
        self.allowed[name] -= 1


class CopyFile(RecordingFile):
    """A segment of a copy."""

    def __init__(self, files: RefusingFiles, inode: int, name: str) -> None:
        super().__init__(files, inode)
        self._judge: Callable[[], None] = lambda: files.judge(name)

    def pwrite(self, pieces: Any, position: int) -> None:
        self._judge()
        super().pwrite(pieces, position)


class Streams:
    """The origin O, its mirror M, and Z and Q that have it as their source; Q is a work queue without a reader. Payloads are
    numbers; `last`: the last that was published."""

    def __init__(self, desk: Desk, last: int = 0) -> None:
        self.desk = desk
        self.last = last

    async def make(self) -> None:
        await self.desk.make("O")
        await self.desk.make("M", subjects=[], mirror={"name": "O"})
        await self.desk.make("Z", subjects=[], sources=[{"name": "O"}])
        await self.desk.make("Q", subjects=[], sources=[{"name": "O"}], retention="workqueue")

    async def publish(self, count: int) -> None:
        for _ in range(count):
            self.last += 1
            answer = await self.desk.publish(f"O.{self.last % 3}", b"%d" % self.last)
            assert answer["seq"] == self.last

    def held(self, name: str) -> list[tuple[int, int]]:
        """Sequences and payloads."""
        contents = self.desk.service.streams[name].contents
        return [(record.offset + 1, int(record.payload)) for record in contents.scan(0)]

    async def until_copied(self) -> None:
        """Wait until every copy has the origin's last message; then each has all of them, once, in order."""
        for name in COPIES:
            while not (held := self.held(name)) or held[-1][1] != self.last:  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.01)
        origin = self.held("O")
        assert self.held("M") == origin
        for name in ("Z", "Q"):
            assert [data for _, data in self.held(name)] == [data for _, data in origin]

    async def until_reported(self, name: str) -> None:
        """Wait until INFO tells what holds this copy up."""
        while True:
            info = await self.desk.api(f"STREAM.INFO.{name}")
            if "error" in (info["mirror"] if name == "M" else info["sources"][0]):
                return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("allowed", [0, 1, 5, 8])
def test_copies_go_on_when_the_disk_takes_their_writes_again(allowed: int, error: int) -> None:
    async def run() -> None:
        files = RefusingFiles(error)
        async with served(STORE, files=files) as desk:
            streams = Streams(desk)
            await streams.make()
            await streams.publish(3)
            await streams.until_copied()
            files.allowed = dict.fromkeys(COPIES, allowed)
            while files.refused != set(COPIES):
                await streams.publish(5)
            await streams.publish(3)
            assert (await desk.api("STREAM.MSG.DELETE.O", {"seq": streams.last - 1}))["success"]
            for name in COPIES:
                await streams.until_reported(name)
                assert streams.held(name)[-1][1] < streams.last - 2
            files.allowed = None
            if error == errno.ENOSPC:
                await streams.publish(5)
                await streams.until_copied()
            last = streams.last
        async with served(STORE, files=files) as desk:  # until then a log whose disk is broken is read-only
            streams = Streams(desk, last)
            await streams.publish(5)
            await streams.until_copied()

    asyncio.run(run())
