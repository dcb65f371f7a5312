"""The parts of `StateKeeper` that write and answer: pending frames, their writes, and acknowledgements to confirm."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from headwater.exchange.router import Router
from headwater.group_commit.pace import Pace
from headwater.group_commit.writers import Writers
from headwater.jetstream_documents.api_errors import store_reason
from headwater.jetstream_state.consumer_journal import Entry, JournalFiles, encode


def refusal_block(error: BaseException) -> bytes:
    """The header block that refuses to confirm an acknowledgement: status 503 and the reason."""
    return b"NATS/1.0 503 %s\r\n\r\n" % store_reason(error).encode()


class PendingFrames:
    """Encoded frames that are not written yet. `number`: of the newest one. `dropping`: after a failure events are
    discarded, because the states will be saved whole."""

    def __init__(self, identity: bytes) -> None:
        self.number = 0
        self.dropping = False
        self._identity = identity
        self._first = 0  # number of the first frame
        self._frames: list[bytes] = []

    def __bool__(self) -> bool:
        return bool(self._frames)

    def add(self, entries: Sequence[Entry]) -> None:
        """Put events into a frame, if there are any."""
        if entries and not self.dropping:
            self.number += 1
            if not self._frames:
                self._first = self.number
            self._frames.append(encode(self._identity, self.number, entries))

    def take(self) -> tuple[bytes, int]:
        """Remove and return all frames, with the number of the first."""
        frames, self._frames = b"".join(self._frames), []
        return frames, self._first

    def drop(self) -> None:
        """Discard all frames, and those added later."""
        self.dropping = True
        self._frames.clear()


class Confirmations:
    """Acknowledgements that are answered once their effect is durable."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._waiting: list[bytes] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, reply: bytes) -> None:
        """Add an acknowledgement to answer at `reply`."""
        self._waiting.append(reply)

    def take(self) -> list[bytes]:
        """Remove and return all reply subjects."""
        replies, self._waiting = self._waiting, []
        return replies

    def answer(self, replies: list[bytes]) -> None:
        """Confirm them: they are durable."""
        for reply in replies:
            self._router.publish(reply, b"", b"", b"")

    def refuse(self, replies: list[bytes], error: BaseException) -> None:
        """Answer with status 503 and the reason: they cannot be made durable."""
        block = refusal_block(error)
        for reply in replies:
            self._router.publish(reply, b"", block, b"")


class JournalWriter:
    """Writes frames, one write at a time: in the loop while the disk is fast, in a writing thread while it is slow.

    `durable`: whether a confirmation waits for a sync. `fresh`: the next frame starts a new file. `unsynced`: there are
    writes without a sync. `idle` is set while no write is in progress.
    """

    def __init__(self, files: JournalFiles, writers: Writers | None, *, durable: bool) -> None:
        self.files = files
        self.durable = durable
        self.fresh = True
        self.unsynced = False
        self.idle = asyncio.Event()
        self.idle.set()
        self._writers = writers
        self._pace = Pace()

    def write(self, frames: bytes, first: int, sync: bool, done: Callable[[BaseException | None], None]) -> None:
        """Write frames, the first of which has this number, and sync if asked to; `done(error)` is called in the loop,
        now or later."""
        fresh = self.fresh and bool(frames)
        self.fresh = self.fresh and not fresh
        self.unsynced = True
        self.idle.clear()
        work = partial(self._write, first, fresh, sync)
        if self._writers is not None and not self._pace.is_quick():
            self._writers.submit(work, frames, lambda _, error: self._written(done, error, sync))
            return
        failure: OSError | None = None
        try:
            work(frames)
        except OSError as error:
            failure = error
        self._written(done, failure, sync)

    def write_last(self, frames: bytes, first: int) -> None:
        """Blocking: write the last frames. Raises OSError."""
        self.files.append(frames, first, fresh=self.fresh and bool(frames), sync=self.durable)

    def _write(self, first: int, fresh: bool, sync: bool, frames: bytes) -> None:
        begun = perf_counter()
        self.files.append(frames, first, fresh=fresh, sync=sync)
        self._pace.note(perf_counter() - begun)

    def _written(self, done: Callable[[BaseException | None], None], error: BaseException | None, synced: bool) -> None:
        self.idle.set()
        if error is None:
            self.unsynced = not synced
        done(error)
