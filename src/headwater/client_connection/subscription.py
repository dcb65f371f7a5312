"""A subscription and its messages: by iteration, one by one, in lists, as Arrow record batches, or by callback.

The queue and its limits are in `message_queue`. Waiters are woken once per read of the connection, not per message.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from headwater.client_connection.awaitables import NOTHING, Bell
from headwater.client_connection.message_queue import MessageQueue
from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import ConnectionClosed, EnvironmentProblem, HeadwaterError, LocalProtocolError, RequestTimeout
from headwater.model.message import Message
from headwater.wire.columns import MAX_SIZE
from headwater.wire.message_columns import MessageColumns

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes for which a record batch is made at once: of 4 MiB, most have left the processor's cache when it is made. Messages of
# 128 bytes cost 0.09 us with half a MiB, 0.11 with two, 0.15 with four.
BATCH_BYTES = 1 << 19
CALLS_PER_TURN = 1024  # of a callback that awaits nothing, before the event loop gets its turn
MessageCallback = Callable[[Message], Any]
WhenFull = Literal["drop_newest", "drop_oldest"]


class SubscriptionOwner(Protocol):
    """The part of the connection that a subscription needs."""

    def unsubscribe(self, subscription: "Subscription", maximum: int) -> None:
        """UNSUB, now or after `maximum` messages."""

    def forget(self, subscription: "Subscription") -> None:
        """Deliver nothing more to it."""

    async def drain(self, timeout: float, subscriptions: "Sequence[Subscription] | None" = None) -> None:
        """End `subscriptions` once the messages in flight have arrived."""

    def handed_over(self, error: HeadwaterError) -> None:
        """A task has received this error: it need not be raised elsewhere."""

    def callback_failed(self, subscription: "Subscription", error: BaseException) -> None:
        """Report to the program what the subscription's callback raised."""

    def report_slow(self, subscription: "Subscription") -> None:
        """Give the program a SlowConsumer: messages are dropped."""


class Subscription(MessageQueue):
    """Interest in a subject, made by `Client.subscribe`. Iterate over it, or use `next`, `batches`, or a callback.

    `received` counts deliveries, `dropped` those that were lost because the queue was full: `max_pending` messages or
    `max_pending_bytes`, which may be changed at any time. The newest message is then dropped, or with `drop_oldest` the
    oldest; SlowConsumer is reported once per overrun. It ends after `unsubscribe`, after its maximum of messages, or
    with the connection. Waiting messages can still be read; after that an iteration ends, or raises the reason when the
    connection was lost, and `next` raises ConnectionClosed or that reason.
    """

    def __init__(
        self,
        connection: SubscriptionOwner,
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
        """A description of `when_full`, for errors."""
        return "the oldest messages are dropped" if self.drop_oldest else "the newest messages are dropped"

    def limit(self, max_pending: int, max_pending_bytes: int, when_full: WhenFull = "drop_newest") -> None:
        """Set the limits of waiting messages and bytes, and which messages are dropped beyond. Raises
        LocalProtocolError."""
        if max_pending < 1 or max_pending_bytes < 1:
            raise LocalProtocolError("a queue has room for something", value=(max_pending, max_pending_bytes), limit=1)
        if when_full not in ("drop_newest", "drop_oldest"):
            raise LocalProtocolError(f"a full queue cannot {when_full!r}", value=when_full)
        self.max_pending = max_pending
        self.max_pending_bytes = max_pending_bytes
        self.drop_oldest = when_full == "drop_oldest"

    # ── for programs ──

    async def next(self, timeout: Timeout | None = None) -> Message:
        """The next message. Raises RequestTimeout after `timeout` seconds, ConnectionClosed when none will come."""
        try:
            async with asyncio.timeout(None if timeout is None else seconds_of(timeout)):
                while not self.pending:
                    if not await self.more():
                        raise ConnectionClosed(f"the subscription to {self.subject!r} has ended", value=self.subject)
        except TimeoutError as error:
            raise RequestTimeout(
                f"no message on {self.subject!r} within {timeout} s", value=self.subject, limit=timeout
            ) from error
        return self.pop()

    async def batches(self, maximum: int = 1024) -> AsyncIterator[list[Message]]:
        """The waiting messages as lists of up to `maximum`; one wake-up serves a whole list."""
        if maximum < 1:
            raise LocalProtocolError("a batch holds at least one message", value=maximum, limit=1)
        while self.pending or await self.more():
            if self.pending:
                yield self.take(maximum)

    async def record_batches(self, rows: int = 1 << 16, linger: float = 0.0) -> "AsyncIterator[pa.RecordBatch]":
        """All messages as Arrow record batches of about `rows` rows at most, straight from the wire.

        Fields: `headwater.client_connection.arrow.SCHEMA`. No message objects are made, so the subscription cannot be
        read otherwise afterwards. Making a batch costs as much as some 200 rows: `linger` waits that many seconds for
        more to come, or until there is half a MiB. A full queue drops the newest, whatever its policy. Raises
        EnvironmentProblem without pyarrow.
        """
        if rows < 1 or linger < 0:
            raise LocalProtocolError("a batch holds at least one row", value=rows, limit=1)
        try:
            from headwater.client_connection.arrow import record_batch
        except ImportError as error:
            raise EnvironmentProblem("record batches need pyarrow", hint="pip install 'headwater[spark]'") from error
        columns = self._start_columns()
        while self.pending or await self.more():
            if linger and self.pending < rows and not self.ended:
                await self._linger(linger)
            if self.pending:
                batch = record_batch(columns.take())
                self.pending_bytes = 0
                self.overrun = False
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    async def _linger(self, seconds: float) -> None:
        """Wait for more messages: for `seconds`, or until there are BATCH_BYTES or half of what the queue may hold."""
        self._bell.enough = min(BATCH_BYTES, self.max_pending_bytes // 2)
        timer = asyncio.get_running_loop().call_later(seconds, self._bell.ring)
        try:
            if not self._has_enough():
                await self._bell.wait()
        finally:
            timer.cancel()
            self._bell.enough = 0

    def _has_enough(self) -> bool:
        return self.pending_bytes >= self._bell.enough or 2 * self.pending >= self.max_pending

    def _start_columns(self) -> MessageColumns:
        if self.columns is None:
            waiting = self.take(self.pending)
            self.columns = MessageColumns()
            for message in waiting:
                self.columns.append_message(message.subject, message.reply, message.header_block, message.data)
                self.pending_bytes += len(message.data) + len(message.header_block)
            self.max_pending_bytes = min(self.max_pending_bytes, MAX_SIZE // 2)
        return self.columns

    def unsubscribe(self, maximum: int = 0) -> Awaitable[None]:
        """End the subscription now, or after `maximum` messages in all. Ended now, a callback gets no more messages.

        The result need not be awaited; it may be, for programs written for nats-py.
        """
        if self.ended:
            return NOTHING
        self.maximum = maximum
        self._connection.unsubscribe(self, maximum)
        if maximum <= 0 or self.received >= maximum:
            self._connection.forget(self)
            self.end(None)
        if maximum <= 0 and self.task is not None:
            self.take(self.pending)
        return NOTHING

    async def drain(self, timeout: Timeout = 10.0) -> None:
        """End the subscription once the messages in flight have arrived; they can still be read.

        With a callback, wait until it has handled them. `timeout` in seconds, for the server and for the callback.
        """
        if not self.ended:
            await self._connection.drain(seconds_of(timeout), [self])

    def __repr__(self) -> str:
        member = f" in {self.queue!r}" if self.queue else ""
        end = ", ended" if self.ended else ""
        return f"<Subscription {self.sid} to {self.subject!r}{member}, {self.pending} waiting{end}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Unsubscribe."""
        if not self.ended:
            await self.unsubscribe()

    if TYPE_CHECKING:

        def __aiter__(
            self,
        ) -> AsyncIterator[Message]: ...  # type checkers but mypy do not see what a hot module imports

        # nats-py's names for the same things, installed below

        async def next_msg(self, timeout: Timeout | None = None) -> Message: ...

        @property
        def messages(self) -> Self: ...

        @property
        def pending_msgs(self) -> int: ...

        @property
        def delivered(self) -> int: ...

    # ── for the connection ──

    def serve(self, callback: MessageCallback) -> None:
        """Pass each message to `callback`, one after the other, in a task of this subscription."""
        self.task = asyncio.get_running_loop().create_task(self._serve(callback), name=f"subscription {self.subject}")

    def end(self, error: HeadwaterError | None) -> None:
        """No more messages will arrive; `error` is the reason, None when the program ended it."""
        if not self.ended:
            self.ended = True
            self.error = error
        self._bell.ring()

    # ── for MessageQueue ──

    async def more(self) -> bool:
        if not self.ended:
            await self._bell.wait()
            return True
        if self.error is not None:
            self._connection.handed_over(self.error)
            raise self.error.with_traceback(None)  # the same object each time: its traceback must not grow
        return False

    def wake(self) -> None:
        if self._has_enough():
            self._bell.ring()

    def maximum_reached(self) -> None:
        self._connection.forget(self)
        self.end(None)

    def overrun_began(self) -> None:
        self._connection.report_slow(self)

    def callback_failed(self, error: BaseException) -> None:
        self._connection.callback_failed(self, error)

    # ── inside ──

    async def _serve(self, callback: MessageCallback) -> None:
        try:
            while True:
                result = self.call(callback, CALLS_PER_TURN)
                if result is None:  # asked only then, not for each message of a coroutine function
                    if self.pending:
                        await asyncio.sleep(0)
                    elif not await self.more():
                        return
                elif type(result) is CoroutineType or inspect.isawaitable(result):
                    try:
                        await result
                    except asyncio.CancelledError as error:
                        task = asyncio.current_task()
                        if task is not None and task.cancelling():
                            raise
                        self.callback_failed(error)  # a future that the callback awaited was cancelled
                    except Exception as error:  # noqa: BLE001 - whatever a callback raises is reported to the program
                        self.callback_failed(error)
        except HeadwaterError:
            pass  # the connection was lost, which the connection itself reports
