"""Events of a connection that no call of the program caused, as values: by callback, and by iteration.

    client = await headwater.connect(url, event_callback=print)
    async for event in client.events(): ...

Both get the same events in the same order. An iteration that is not read keeps the last `KEPT` events and counts the
dropped ones: events must not pile up in a program that runs for months.
"""

import asyncio
import inspect
import logging
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Self

from headwater.client_connection.awaitables import Bell
from headwater.errors import AuthorizationError, HeadwaterError
from headwater.model.record import Record

logger = logging.getLogger(__name__)

KEPT = 256


class Event(Record):
    """Root of all."""


class Disconnected(Event):
    """The connection to `server` was lost; a new one is being made."""

    server: str
    reason: HeadwaterError


class Reconnected(Event):
    """Connected to `server`: all subscriptions are repeated, and buffered publishes are being sent."""

    server: str
    attempts: int


class AttemptFailed(Event):
    """An attempt to reconnect failed; the next one follows."""

    server: str
    reason: HeadwaterError


class Discovered(Event):
    """The server announced new servers of its cluster."""

    servers: tuple[str, ...]


class LameDuck(Event):
    """`server` is going to shut down and will close this connection soon."""

    server: str


class SlowConsumer(Event):
    """The subscription `sid` to `subject` is full and drops messages, `dropped` so far."""

    subject: str
    sid: int
    dropped: int


class Failed(Event):
    """An error that no task awaits: a missing permission, an exception in a callback."""

    error: BaseException


class CallbackFailed(Failed):
    """The callback of the subscription `sid` to `subject`, in `queue`, raised `error`; a note of the error says the same."""

    subject: str
    sid: int
    queue: str


class Refused(Failed):
    """The permissions of this client do not allow it to publish on `subject` or with it as the reply (`publishing`),
    or to subscribe to it in `queue`. The task that waits for an answer, the subscription, or else the next `flush`
    raises the error."""

    error: AuthorizationError
    subject: str
    queue: str
    publishing: bool


class Closed(Event):
    """The end: no more events. `reason` is None when the program closed the connection."""

    reason: HeadwaterError | None


EventCallback = Callable[[Event], object]
TAKEN: Final = object()
"""Returned by a listener that has passed the error of a Refused to a task."""


class EventStream:
    """An iteration over all later events; ends after Closed. `dropped` counts those that were not read in time."""

    def __init__(self) -> None:
        self.dropped = 0
        self._waiting: deque[Event] = deque()
        self._ended = False
        self._bell = Bell()

    def add(self, event: Event) -> None:
        """For `Events`."""
        if len(self._waiting) >= KEPT:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(event)
        self._ended = self._ended or isinstance(event, Closed)
        self._bell.ring()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            await self._bell.wait()
        return self._waiting.popleft()


class Events:
    """Passes events on to callbacks and iterations. `error_callback` gets errors only; without it they are logged.

    The coroutine of a callback that is a coroutine function runs as a task of its own, so that two may overlap."""

    def __init__(
        self,
        error_callback: Callable[[BaseException], object] | None = None,
        event_callback: EventCallback | None = None,
    ) -> None:
        self._error_callback = error_callback
        self._event_callback = event_callback
        self._listeners: list[EventCallback] = []
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()  # a stream without a reader is collected
        self._last: Closed | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop itself keeps no task alive

    def emit(self, event: Event) -> bool:
        """Pass `event` on; an exception in a callback is logged, and the others are called all the same. Returns whether a
        listener has TAKEN it."""
        taken = False
        if isinstance(event, Closed):
            self._last = event
        for stream in list(self._streams):
            stream.add(event)
        for listener in (*self._listeners, *([self._event_callback] if self._event_callback else [])):
            try:
                result = listener(event)
                taken = result is TAKEN or taken
                self._follow(result, f"event_callback_failed event={type(event).__name__}")
            except Exception:
                logger.exception("event_callback_failed event=%s", type(event).__name__)
        return taken

    def report(self, error: BaseException) -> None:
        """Report an error that no task awaits."""
        self.emit(Failed(error=error))
        self.complain(error)

    def callback_failed(self, error: BaseException, subject: str, sid: int, queue: str) -> None:
        """Report what the callback of a subscription raised: logged with its traceback, and passed on as it is."""
        member = f" in the queue group {queue!r}" if queue else ""
        note = f"in the callback of the subscription {sid} to {subject!r}{member}"
        if note not in getattr(error, "__notes__", ()):  # one object may be raised again and again
            error.add_note(note)
        logger.error("callback_failed subject=%s sid=%d error=%r", subject, sid, error, exc_info=error)
        self.emit(CallbackFailed(error=error, subject=subject, sid=sid, queue=queue))
        if self._error_callback is not None:
            self.complain(error)

    def complain(self, error: BaseException) -> None:
        """Pass `error` to the error callback, or log it."""
        if self._error_callback is None:
            logger.warning("client_error error=%s", error if str(error) else repr(error))
            return
        try:
            self._follow(self._error_callback(error), "error_callback_failed")
        except Exception:
            logger.exception("error_callback_failed")

    def _follow(self, result: object, failed: str) -> None:
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(_logged(result, failed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def stream(self) -> EventStream:
        """A new iteration over all later events."""
        made = EventStream()
        if self._last is not None:
            made.add(self._last)
        else:
            self._streams.add(made)
        return made

    def listen(self, callback: EventCallback) -> Callable[[], None]:
        """For layers above: call `callback` with each event; returns a function that removes it."""
        self._listeners.append(callback)

        def forget() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return forget


async def _logged(callback: Awaitable[object], failed: str) -> None:
    try:
        await callback
    except Exception:
        logger.exception(failed)
