"""Background workers that combine sends into larger requests.

    put ─▶ room? ─▶ a worker's queue ─▶ as many for one place as a batch takes ─▶ deliver, `in_flight` at a time

A failed delivery is raised by the next `flush` or `close`; `on_error` gets it at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final, NamedTuple

from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import BufferFull, IncompleteSend
from headwater.iggy_wire.commands import Message

logger = logging.getLogger(__name__)

FRAME_BYTES: Final = 48  # size of a message without its payload


class Background(NamedTuple):
    """A worker sends when it has `batch` messages or `batch_bytes`, or `linger` seconds after the first. With
    `most_bytes` waiting, `put` waits for room `wait_for_room` seconds (None: for ever, 0: not at all). `ordered`:
    messages to one place use one worker; otherwise workers take turns. `in_flight`: concurrent requests of all workers;
    above 1 a repeated batch may arrive after later ones. Times may be `timedelta`s.

    0 is no limit for `batch`, `batch_bytes` and `most_bytes`."""

    batch: int = 1000
    batch_bytes: int = 1 << 20
    linger: Timeout = 0.001
    most_bytes: int = 32 << 20
    wait_for_room: Timeout | None = None
    workers: int = 1
    in_flight: int = 1
    ordered: bool = True


class _Entry(NamedTuple):
    place: Hashable
    messages: list[Message]
    size: int


Deliver = Callable[[Hashable, list[Message]], Awaitable[object]]


class Workers:
    """See the head of this module. `deliver` sends messages to one place and raises IncompleteSend."""

    def __init__(self, deliver: Deliver, mode: Background, on_error: Callable[[IncompleteSend], object] | None) -> None:
        self._deliver = deliver
        self._mode = mode
        self._on_error = on_error
        self._queues: list[deque[_Entry]] = [deque() for _ in range(max(1, mode.workers))]
        self._wake = [asyncio.Event() for _ in self._queues]
        self._tasks = [asyncio.ensure_future(self._work(number)) for number in range(len(self._queues))]
        self._places = asyncio.Semaphore(max(1, mode.in_flight))
        self._changed = asyncio.Condition()
        self._waiting_bytes = 0
        self._hurried = False
        self._turn = 0
        self._failed: list[IncompleteSend] = []

    async def put(self, place: Hashable, messages: Sequence[Message]) -> None:
        """Take messages for one place. Raises BufferFull when there is no room in time, and then takes none."""
        size = sum(len(message.payload) + FRAME_BYTES for message in messages)
        if not self._has_room(size):
            await self._wait_for_room(size)
        self._waiting_bytes += size
        if self._mode.ordered:
            number = hash(place) % len(self._queues)
        else:
            self._turn += 1
            number = self._turn % len(self._queues)
        self._queues[number].append(_Entry(place, list(messages), size))
        self._wake[number].set()

    def _has_room(self, size: int) -> bool:
        most = self._mode.most_bytes
        return not most or not self._waiting_bytes or self._waiting_bytes + size <= most

    async def _wait_for_room(self, size: int) -> None:
        room = self._mode.wait_for_room
        wait = None if room is None else seconds_of(room)
        try:
            if wait == 0:
                raise TimeoutError
            async with asyncio.timeout(wait), self._changed:
                await self._changed.wait_for(lambda: self._has_room(size))
        except TimeoutError:
            raise BufferFull(
                f"{self._waiting_bytes} bytes wait to be sent, of {self._mode.most_bytes} allowed", value=size
            ) from None

    async def flush(self) -> None:
        """Wait until everything is sent. Raises IncompleteSend for failures since the last call."""
        self._hurried = True
        for wake in self._wake:
            wake.set()
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._waiting_bytes)
        finally:
            self._hurried = False
        failed, self._failed = self._failed, []
        if failed:
            raise IncompleteSend(
                failed[0].cause, [message for one in failed for message in one.failed], failed[0].committed
            )

    async def close(self) -> None:
        """Flush, then stop the workers."""
        try:
            await self.flush()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, number: int) -> None:
        queue, wake = self._queues[number], self._wake[number]
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                await wake.wait()
                wake.clear()
                await self._linger(queue, wake)
                while queue:
                    entries = self._gather(queue)
                    await self._places.acquire()
                    task = asyncio.ensure_future(self._send(entries))
                    running.add(task)
                    task.add_done_callback(running.discard)
        finally:
            for task in running:
                task.cancel()

    async def _linger(self, queue: deque[_Entry], wake: asyncio.Event) -> None:
        """Wait for more, but no longer than that."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds_of(self._mode.linger)
        while not self._hurried and not self._is_full(queue) and (left := until - clock()) > 0:
            try:
                async with asyncio.timeout(left):
                    await wake.wait()
            except TimeoutError:
                return
            wake.clear()

    def _is_full(self, queue: deque[_Entry]) -> bool:
        count = sum(len(entry.messages) for entry in queue)
        size = sum(entry.size for entry in queue)
        return bool(self._mode.batch and count >= self._mode.batch) or bool(
            self._mode.batch_bytes and size >= self._mode.batch_bytes
        )

    def _gather(self, queue: deque[_Entry]) -> list[_Entry]:
        """Entries for the first one's place, as long as they follow each other and a batch has room."""
        entries = [queue.popleft()]
        count, size = len(entries[0].messages), entries[0].size
        while queue and queue[0].place == entries[0].place:
            count, size = count + len(queue[0].messages), size + queue[0].size
            if (self._mode.batch and count > self._mode.batch) or (
                self._mode.batch_bytes and size > self._mode.batch_bytes
            ):
                break
            entries.append(queue.popleft())
        return entries

    async def _send(self, entries: list[_Entry]) -> None:
        messages = [message for entry in entries for message in entry.messages]
        try:
            await self._deliver(entries[0].place, messages)
        except IncompleteSend as error:
            self._note(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, `flush` must not say that they were sent)
            self._note(IncompleteSend(error, messages, []))
        finally:
            self._places.release()
            self._waiting_bytes -= sum(entry.size for entry in entries)
            async with self._changed:
                self._changed.notify_all()

    def _note(self, error: IncompleteSend) -> None:
        self._failed.append(error)
        if self._on_error is not None:
            try:
                self._on_error(error)
            except Exception:  # of the program: `flush` raises what was to be reported all the same
                logger.exception("iggy_on_error_failed messages=%d", len(error.failed))
