"""A subscription and its messages: by iteration, one by one, in lists, or by callback.

What waits, and what happens when too much does, is in `message_queue`. Waiters are woken once per read of the
connection, not per message.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from headwater.client.awaitables import Bell
from headwater.client.message_queue import MessageQueue
from headwater.errors import ConnectionClosed, HeadwaterError, LocalProtocolError, RequestTimeout
from headwater.model.message import Message

if TYPE_CHECKING:
    from headwater.client.connection import Connection

MessageCallback = Callable[[Message], Any]


class Subscription(MessageQueue):
    """Interest in a subject, made by `Client.subscribe`. Iterate over it, or use `next`, `batches`, or a callback.

    `received` counts deliveries, `dropped` those that found the queue full: `max_pending` messages or
    `max_pending_bytes`, which may be changed at any time. It ends after `unsubscribe`, after its maximum of messages, or
    with the connection. What waits can still be read then; after that an iteration ends, or raises the reason when the
    connection was lost, and `next` raises ConnectionClosed or that reason.
    """

    def __init__(
        self,
        connection: "Connection",
        sid: int,
        subject: str,
        queue: str,
        direct: Callable[[Message], object] | None = None,
    ) -> None:
        super().__init__(sid, direct)
        self.subject = subject
        self.queue = queue
        self.ended = False
        self.error: HeadwaterError | None = None
        self.task: asyncio.Task[None] | None = None  # what runs the callback
        self.received_before = 0  # the current server's SUB, which counts from there
        self._connection = connection
        self._bell = Bell()

    @property
    def policy_text(self) -> str:
        """What becomes of messages when it is full, for an error."""
        return "the newest messages are dropped"

    # ── for programs ──

    async def next(self, timeout: float | None = None) -> Message:
        """The next message. Raises RequestTimeout after `timeout` seconds, ConnectionClosed when none will come."""
        try:
            async with asyncio.timeout(timeout):
                while not self.pending:
                    if not await self.more():
                        raise ConnectionClosed(f"the subscription to {self.subject!r} has ended", value=self.subject)
        except TimeoutError as error:
            raise RequestTimeout(
                f"no message on {self.subject!r} within {timeout} s", value=self.subject, limit=timeout
            ) from error
        return self.pop()

    async def batches(self, maximum: int = 1024) -> AsyncIterator[list[Message]]:
        """Everything that waits, as lists of up to `maximum` messages; one wake-up serves a whole list."""
        if maximum < 1:
            raise LocalProtocolError("a batch holds at least one message", value=maximum, limit=1)
        while self.pending or await self.more():
            if self.pending:
                yield self.take(maximum)

    def unsubscribe(self, maximum: int = 0) -> None:
        """End it now, or after `maximum` messages since it began. A callback hears nothing more after "now"."""
        if self.ended:
            return
        self.maximum = maximum
        self._connection.unsubscribe(self, maximum)
        if maximum <= 0 or self.received >= maximum:
            self._connection.forget(self)
            self.end(None)
        if maximum <= 0 and self.task is not None:
            self.take(self.pending)

    async def drain(self, timeout: float = 10.0) -> None:
        """End it, after the messages that were on their way have come; they can still be read.

        With a callback, wait until it has had them. `timeout` in seconds, for the server and for the callback.
        """
        if not self.ended:
            await self._connection.drain(timeout, [self])

    # ── for the connection ──

    def serve(self, callback: MessageCallback) -> None:
        """Pass each message to `callback`, one after the other, in a task of this subscription."""
        self.task = asyncio.get_running_loop().create_task(self._serve(callback), name=f"subscription {self.subject}")

    def end(self, error: HeadwaterError | None) -> None:
        """No message will come any more; `error` tells why, when it is no order of the program."""
        if not self.ended:
            self.ended = True
            self.error = error
        self._bell.ring()

    # ── for MessageQueue ──

    async def more(self) -> bool:
        if not self.ended:
            await self._bell.heard()
            return True
        if self.error is not None:
            raise self.error.with_traceback(None)  # the same object each time: its traceback must not grow
        return False

    def wake(self) -> None:
        self._bell.ring()

    def maximum_reached(self) -> None:
        self._connection.forget(self)
        self.end(None)

    def overrun_began(self) -> None:
        self._connection.report_slow(self)

    def direct_failed(self, error: BaseException) -> None:
        self._connection.report(error)

    # ── inside ──

    async def _serve(self, callback: MessageCallback) -> None:
        try:
            async for message in self:
                await self._call(callback, message)
        except HeadwaterError:
            pass  # the connection was lost, which the connection itself reports

    async def _call(self, callback: MessageCallback, message: Message) -> None:
        try:
            result = callback(message)
            if inspect.isawaitable(result):
                await result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._connection.report(error)  # something that the callback awaited was cancelled, not the callback
        except Exception as error:  # noqa: BLE001 - whatever the program's callback raises is the program's to hear
            self._connection.report(error)
