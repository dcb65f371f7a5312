"""A subscription and its messages: by iteration, one by one, in lists, or by callback.

Messages wait in a deque between the reader of the connection and the program. One that is full loses what comes next
(the newest), counts it in `dropped` and reports it once per overrun: the reader never waits for a program, or the whole
connection would stand still and the server would cut it off. Waiters are woken once per read, not per message.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from headwater.client.awaitables import Ready
from headwater.errors import ConnectionClosed, HeadwaterError, RequestTimeout
from headwater.model.message import Message

if TYPE_CHECKING:
    from headwater.client.connection import Connection

PENDING_MESSAGES = 512 * 1024  # limits of nats.go and nats-py for what waits in one subscription
PENDING_BYTES = 128 << 20

MessageCallback = Callable[[Message], Any]


class Subscription:
    """Interest in a subject. Made by `Client.subscribe`.

    `received` counts deliveries, `dropped` those that found the queue full. It ends after `unsubscribe`, after its
    maximum of messages, or with the connection; what waits can still be read then.
    """

    def __init__(
        self, connection: "Connection", sid: int, subject: str, queue: str, callback: MessageCallback | None
    ) -> None:
        self.subject = subject
        self.queue = queue
        self.sid = sid
        self.received = 0
        self.dropped = 0
        self.ended = False
        self.error: HeadwaterError | None = None
        self._connection = connection
        self._callback = callback
        self._maximum = 0
        self._waiting: deque[Message] = deque()
        self._waiting_bytes = 0
        self._overrun = False
        self._waiter: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()

    # ── from the connection ──

    def deliver(self, message: Message) -> None:
        """Take a message off the wire."""
        self.received += 1
        if self._callback is not None:
            self._call(message)
        elif len(self._waiting) >= PENDING_MESSAGES or self._waiting_bytes >= PENDING_BYTES:
            self.dropped += 1
            if not self._overrun:
                self._overrun = True
                self._connection.report_slow(self)
        else:
            self._waiting.append(message)
            self._waiting_bytes += len(message.data)
        if self._maximum and self.received >= self._maximum:
            self._connection.forget(self)
            self.end(None)

    def wake(self) -> None:
        """Let the waiter look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self, error: HeadwaterError | None) -> None:
        """No message will come any more; `error` tells why, when it is no order of the program."""
        self.ended = True
        self.error = self.error or error
        self.wake()

    # ── for programs ──

    @property
    def pending(self) -> int:
        """Messages that wait to be read."""
        return len(self._waiting)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    def __anext__(self) -> Awaitable[Message]:
        if self._waiting:
            return Ready(self._pop())
        return self._next_or_stop()

    async def next(self, timeout: float | None = None) -> Message:
        """The next message. Raises RequestTimeout after `timeout` seconds, ConnectionClosed when none will come."""
        try:
            async with asyncio.timeout(timeout):
                while not self._waiting:
                    await self._wait()
        except TimeoutError as error:
            raise RequestTimeout(f"no message on {self.subject!r} within {timeout} s", value=self.subject) from error
        return self._pop()

    async def batches(self, maximum: int = 1024) -> AsyncIterator[list[Message]]:
        """Everything that waits, as lists of up to `maximum` messages; one wake-up serves a whole list."""
        while True:
            while not self._waiting:
                if self.ended and self.error is None:
                    return
                await self._wait()
            taken = [self._pop() for _ in range(min(maximum, len(self._waiting)))]
            yield taken

    def unsubscribe(self, maximum: int = 0) -> None:
        """End it now, or after `maximum` messages since it began."""
        if self.ended:
            return
        self._maximum = maximum
        self._connection.unsubscribe(self, maximum)
        if maximum == 0 or self.received >= maximum:
            self._connection.forget(self)
            self.end(None)

    async def drain(self, timeout: float = 10.0) -> None:
        """End it, after the messages that were on their way have come; they can still be read."""
        if self.ended:
            return
        self._connection.unsubscribe(self, 0)
        await self._connection.flush(timeout)
        self._connection.forget(self)
        self.end(None)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    # ── inside ──

    def _pop(self) -> Message:
        message = self._waiting.popleft()
        self._waiting_bytes -= len(message.data)
        self._overrun = self._overrun and len(self._waiting) > PENDING_MESSAGES // 2
        return message

    async def _next_or_stop(self) -> Message:
        while not self._waiting:
            if self.ended and self.error is None:
                raise StopAsyncIteration
            await self._wait()
        return self._pop()

    async def _wait(self) -> None:
        """Until something has come. Raises when nothing will."""
        if self.ended:
            raise self.error or ConnectionClosed(f"the subscription to {self.subject!r} has ended", value=self.subject)
        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiter)

    def _call(self, message: Message) -> None:
        assert self._callback is not None
        try:
            result = self._callback(message)
        except Exception as error:  # noqa: BLE001 - whatever the program's callback raises is the program's to hear
            self._connection.report(error)
            return
        if result is not None and hasattr(result, "__await__"):
            task = asyncio.ensure_future(result)
            self._tasks.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Future[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._connection.report(error)
