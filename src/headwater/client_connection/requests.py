# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Requests: many at a time over one subscription. Compiled where it can be: all of it runs once per request.

    _INBOX.<22 random characters>.*      the one subscription, made at the first request
    _INBOX.<22 random characters>.<n>    the reply subject of request n

An answer finds its request by the last token, and tasks whose answers came in one read are woken together: one that was
alone with its request at the end of that read, and what it sends is written then; more of them in the next turn of the
loop, for answers that come meanwhile make longer writes. "No responders" (status 503) is an answer, at once. All requests
share one timer, set to the earliest deadline: a timer of its own would cost a request as much as all the rest of it.

When the connection is lost, a request keeps waiting, as in async-nats: the inbox is subscribed again after the
reconnect, and a service that has the request can still answer. Whether a service received it is unknown, so it is sent
again only if the program declares this harmless (`repeat`).
"""

import asyncio
import os
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Literal

import cython

if cython.compiled:
    from cython.cimports.cpython.contextvars import PyContext_Enter, PyContext_Exit
    from cython.cimports.headwater.client_connection.connection_ops import ConnectionOps, Sender
    from cython.cimports.headwater.model.message import Message
    from cython.cimports.headwater.net.endpoint import Endpoint
else:
    from headwater.client_connection.connection_ops import ConnectionOps, Sender
    from headwater.model.message import Message
    from headwater.net.endpoint import Endpoint

from headwater.client_connection.events import TAKEN, Reconnected, Refused
from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import ConnectionClosed, HeaderError, HeadwaterError, NoResponders, RequestTimeout
from headwater.model.headers import Headers, HeaderSource
from headwater.model.status import NO_RESPONDERS

if TYPE_CHECKING:
    from headwater.client_connection.connection_ops import BytesLike
    from headwater.model.message import Message as Answer  # a name that pyright does not look for in the other branch

RANDOM_BYTES = 11  # 88 bits, as hexadecimal 22 characters: two clients never share an inbox
SWEEP_SECONDS = 0.002  # deadlines closer together are checked together
# Of tasks that go on together, each 32 write what they send: a third more requests a second with 64 outstanding. A power of
# two less one. With 16 the writes cost what the server gains by them.
WRITE_AFTER = 31
_USUAL = "No Responders"  # a description that adds nothing
OLD_STYLE = (
    "request() takes no 'old_style'; nats-py's 'old_style' is here: there is one way to ask, with one inbox for all"
)


def new_inbox(prefix: str) -> str:
    """A subject that no other client uses."""
    return f"{prefix}.{os.urandom(RANDOM_BYTES).hex()}"


class PendingRequest:
    """One outstanding request, and what its task awaits. `deadline` by the loop's clock.

    It is a future as far as a Task looks at one: an asyncio.Future would be made by one call of Python, and wake its
    task by six more. Its end is entered with `Requests`, which wakes all whose answers came in one read in one call.
    """

    def __init__(self, requests: "Requests", subject: str) -> None:
        self.requests = requests
        self.subject = subject
        self.deadline = 0.0
        self.timeout = 0.0
        self.again: tuple[Any, Any] | None = None  # data and headers, if it may be repeated
        self.waits_for_link = False  # made while there was no link; it goes out with the first bytes on the next one
        self.ended = False
        self.answer: Message | None = None
        self.error: Any = None
        self.cancelled_with: tuple[Any, ...] | None = None
        self.wakeup: Any = None
        self.context: Any = None
        self._asyncio_future_blocking = False

    def end(self, answer: Message | None, error: object) -> cython.int:
        """Enter the outcome, once."""
        if not self.ended:
            self.ended = True
            self.answer = answer
            self.error = error
            self.requests.wake_soon(self)
        return 0

    def __await__(self) -> Any:
        return self

    def __next__(self) -> "PendingRequest":
        if self.ended:
            raise StopIteration
        self._asyncio_future_blocking = True
        return self

    # ── for the task that awaits it ──

    def get_loop(self) -> Any:
        return self.requests.loop

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        self.wakeup = callback
        self.context = copy_context() if context is None else context
        if self.ended:
            self.requests.wake_soon(self)

    def cancel(self, msg: Any = None) -> bool:
        if self.ended:
            return False
        self.cancelled_with = () if msg is None else (msg,)
        self.end(None, None)
        return True

    def result(self) -> None:
        """Raises CancelledError when it was cancelled; every other outcome is for `Requests.ask` to take."""
        if self.cancelled_with is not None:
            raise asyncio.CancelledError(*self.cancelled_with)


class Requests:
    """The outstanding requests of one connection."""

    def __init__(self, connection: ConnectionOps, inbox_prefix: str) -> None:
        self.connection = connection
        self.inbox = new_inbox(inbox_prefix)
        self.inbox_dot: bytes = f"{self.inbox}.".encode("utf-8", "surrogateescape")
        self.inbox_size = len(self.inbox) + 1
        self.subscription: object = None
        self.waiting: dict[int, PendingRequest] = {}
        self.to_wake: list[PendingRequest] = []
        self.in_read = False  # `wake` is called at the end of the read that is being parsed
        self.listens = False
        self.last = 0
        self.loop = asyncio.get_running_loop()
        # asyncio's own method calls this function, and costs three times as much.
        self.now: Any = time.monotonic if type(self.loop).time is asyncio.BaseEventLoop.time else self.loop.time
        # What tasks are woken with: they take its result without a call, where a future of our own would be called.
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.done.set_result(None)
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = 0.0

    def add(self, subject: str, deadline: cython.double, timeout: cython.double) -> PendingRequest:
        """A request that waits from now on, number `last`, until `forget`."""
        if self.subscription is None:
            self.begin()
        self.last += 1
        pending: PendingRequest = PendingRequest(self, subject)
        pending.deadline = deadline
        pending.timeout = timeout
        self.waiting[self.last] = pending
        if self.timer is None or deadline < self.timer_at:
            self.set_timer(deadline)
        return pending

    def send(
        self,
        pending: PendingRequest,
        number: cython.Py_ssize_t,
        data: "BytesLike",
        headers: HeaderSource | Headers | None,
        repeat: cython.bint,
    ) -> cython.int:
        """Publish it. Not awaited: waiting for the answer includes waiting for the write."""
        self.connection.ask(pending.subject, data, self.inbox_dot, number, headers)
        if repeat:
            pending.again = (data, headers)
            pending.waits_for_link = self.connection.link is None
        return 0

    def forget(self, number: cython.Py_ssize_t) -> cython.int:
        """A request that got no answer waits no more; of the others `answered` has done it."""
        self.waiting.pop(number, None)
        return 0

    @property
    def outstanding(self) -> int:
        """The number of outstanding requests."""
        return len(self.waiting)

    def begin(self) -> None:
        """Subscribe to the answers of all requests."""
        connection: Any = self.connection
        self.subscription = connection.subscribe(f"{self.inbox}.*", direct=self.answered)
        if self.listens:
            return
        self.listens = True
        connection.closed.add_done_callback(self.fail_all)
        connection.events.listen(self.happened)

    def write_now(self) -> cython.int:
        """Write what the tasks that went on have sent: the server has work while the others go on."""
        link: Any = self.connection.link
        if isinstance(link, Endpoint):
            cython.cast(Endpoint, link).write_output()
        return 0

    def answered(self, message: Message) -> None:
        """For the connection: a message arrived at the inbox."""
        pending: PendingRequest | None = self.waiting.pop(number_in(message.subject, self.inbox_size), None)
        if pending is not None:
            if len(self.waiting) == 0 and len(self.to_wake) == 0:
                self.in_read = True
                self.connection.after_read = self.wake_in_read
            pending.end(message, None)

    def wake_soon(self, pending: PendingRequest) -> cython.int:
        """Wake the task of `pending`, which has ended: at the end of this read, or in the next turn of the loop."""
        if pending.wakeup is not None:
            if len(self.to_wake) == 0 and not self.in_read:
                self.loop.call_soon(self.wake)
            self.to_wake.append(pending)
        return 0

    def wake_in_read(self) -> None:
        """`wake`, in the read that brought the answer, and write: two turns of the loop less for each request. What ends the
        loop ends it in its next turn, when the input is marked as read: it is not delivered again if the loop goes on."""
        connection: ConnectionOps = self.connection
        self.in_read = False
        connection.holds = True
        try:
            self.wake()
        except BaseException as error:  # noqa: BLE001 - it is raised, by the loop
            self.loop.call_soon(raise_again, error)
        finally:
            connection.holds = False
            self.write_now()

    def wake(self) -> None:
        """Let every task go on whose request has ended."""
        pending: PendingRequest
        callback: Any
        outcome: object
        waking = self.to_wake
        self.to_wake = []
        woken: cython.Py_ssize_t = 0
        try:
            for pending in waking:
                woken += 1
                callback = pending.wakeup
                pending.wakeup = None
                outcome = self.done if pending.cancelled_with is None else pending
                if cython.compiled:  # `Context.run` takes three times as much for its own call
                    PyContext_Enter(pending.context)
                    try:
                        callback(outcome)
                    finally:
                        PyContext_Exit(pending.context)
                else:
                    pending.context.run(callback, outcome)
                if woken & WRITE_AFTER == 0:
                    self.write_now()
        except BaseException:  # of SystemExit, which ends the loop; the others wait for it to run again
            if woken < len(waking):
                if len(self.to_wake) == 0:
                    self.loop.call_soon(self.wake)
                self.to_wake = waking[woken:] + self.to_wake
            raise

    def happened(self, event: object) -> object:
        """For the connection: after a reconnect repeat requests with `repeat`; fail those that the server refused."""
        pending: PendingRequest
        if isinstance(event, Refused):
            return self.refused(event)
        if not isinstance(event, Reconnected):
            return None
        for token, pending in list(self.waiting.items()):
            if pending.again is None or pending.ended:
                continue
            if not pending.waits_for_link:
                try:
                    self.connection.ask(pending.subject, pending.again[0], self.inbox_dot, token, pending.again[1])
                except HeadwaterError as error:  # the new server's limits are lower
                    pending.end(None, error)
            pending.waits_for_link = False
        return None

    def refused(self, event: Any) -> object:
        """The server does not allow to publish on a subject, or to subscribe to the inbox."""
        pending: PendingRequest
        taken: object = None
        inbox_is_refused = not event.publishing and event.subject == f"{self.inbox}.*"
        for token, pending in list(self.waiting.items()):
            is_its = event.publishing and event.subject in (pending.subject, f"{self.inbox}.{token}")
            if pending.ended or not (inbox_is_refused or is_its):
                continue
            pending.end(None, event.error)
            taken = TAKEN
        if inbox_is_refused:
            self.subscription = None  # the next request tries again: permissions may change
        return taken

    def set_timer(self, deadline: cython.double) -> None:
        """Check the deadlines when the first of them passes."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer_at = max(deadline, self.now() + SWEEP_SECONDS)
        self.timer = self.loop.call_at(self.timer_at, self.sweep)

    def sweep(self) -> None:
        """Time out overdue requests, and reset the timer while any request is outstanding."""
        now: float = self.now()
        pending: PendingRequest
        earliest: float = 0.0
        self.timer = None
        for pending in list(self.waiting.values()):
            if pending.ended:
                continue
            if pending.deadline <= now:
                pending.end(
                    None,
                    RequestTimeout(
                        f"no answer to the request on {pending.subject!r} within {pending.timeout:g} s",
                        value=pending.subject,
                        limit=pending.timeout,
                    ),
                )
            elif earliest == 0.0 or pending.deadline < earliest:
                earliest = pending.deadline
        if earliest > 0.0:
            self.set_timer(earliest)

    def fail_all(self, closed: "asyncio.Future[HeadwaterError | None]") -> None:
        """The connection has ended for good."""
        reason = closed.result() or ConnectionClosed("the connection was closed before the answer came")
        pending: PendingRequest
        if self.timer is not None:
            self.timer.cancel()
        for pending in list(self.waiting.values()):
            pending.end(None, reason)


class RequestSender(Sender):
    """`Sender`, with requests."""

    def __init__(self, connection: ConnectionOps, inbox_prefix: str) -> None:
        super().__init__(connection)
        self._requests = Requests(connection, inbox_prefix)

    async def request(
        self,
        subject: str,
        data: "BytesLike" = b"",
        timeout: Timeout = 2.0,
        old_style: Literal[False] | None = None,
        headers: HeaderSource | Headers | None = None,
        *,
        repeat: bool = False,
        payload: "BytesLike | None" = None,
    ) -> "Answer":
        """Publish `data` to `subject`, with `headers`, and wait for one answer. Raises NoResponders at once, RequestTimeout
        after `timeout` seconds, what a publish raises, and ConnectionClosed, or the reason, when the connection ends.

        A request whose connection is lost keeps waiting, because its answer may still come. With `repeat` it is sent
        again on the new connection, in case request or answer were lost: for requests that may be served twice.

        `payload` is nats-py's name of `data`. Its `old_style` has no counterpart and is refused: there is one way to ask.
        """
        requests: Requests = self._requests
        seconds: cython.double = timeout if isinstance(timeout, float) else seconds_of(timeout)
        message: Any  # as a typed local, Cython's coroutine would return it through the wrong C type
        if old_style:
            raise TypeError(OLD_STYLE)
        pending: PendingRequest = requests.add(subject, requests.now() + seconds, seconds)
        number: cython.Py_ssize_t = requests.last
        try:
            requests.send(pending, number, data if payload is None else payload, headers, repeat)
            await pending
            message = pending.answer
            if message is None:
                raise pending.error
        finally:
            if pending.answer is None:
                requests.forget(number)
        if len(cython.cast(Message, pending.answer).header_block) > 0 and is_no_responders(message):
            raise not_served(subject, message)
        return message  # type: ignore[no-any-return]


def raise_again(error: BaseException) -> None:
    """For the loop: raise what a task raised to end it."""
    raise error


def number_in(subject: str, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The number that `subject` from `at` on spells as `ask` does; -1 for anything else."""
    number: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(subject)
    code: cython.int
    if end <= at or end > at + 18 or subject[at] == "0":
        return -1
    while at < end:
        code = ord(subject[at])
        if code < 48 or code > 57:
            return -1
        number = 10 * number + code - 48
        at += 1
    return number


def is_no_responders(message: Message) -> bool:
    """Whether a message is the server's "no responders" status."""
    if message.data or not message.header_block:
        return False
    try:
        status = message.status
    except HeaderError:
        return False
    return status is not None and status.code == NO_RESPONDERS


def not_served(subject: str, answer: Message) -> NoResponders:
    """The error for that status. Without a reason it comes from the server; a responder gives one, such as a broker that
    cannot make an acknowledgement durable."""
    reason = answer.status.description if answer.status is not None else None
    if reason and reason != _USUAL:
        return NoResponders(f"{subject!r} is not served: {reason}", value=subject, hint="try again later")
    return NoResponders(f"nobody is subscribed to {subject!r}", value=subject, hint="is the service running?")
