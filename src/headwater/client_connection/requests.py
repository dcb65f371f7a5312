# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Requests: many at a time over one subscription. Compiled where it can be: all of it runs once per request.

    _INBOX.<22 random characters>.*      the one subscription, made at the first request
    _INBOX.<22 random characters>.<n>    the reply subject of request n

An answer finds its request by the last token. "No responders" (status 503) is an answer, at once. All requests share one
timer, set to the earliest deadline: a timer of its own would cost a request as much as all the rest of it.

When the connection is lost, a request keeps waiting, as in async-nats: the inbox is subscribed again after the
reconnect, and a service that has the request can still answer. Whether a service received it is unknown, so it is sent
again only if the program declares this harmless (`repeat`).
"""

import asyncio
import os
from typing import TYPE_CHECKING, Any

import cython

if cython.compiled:
    from cython.cimports.headwater.client_connection.connection_ops import ConnectionOps
    from cython.cimports.headwater.model.message import Message
else:
    from headwater.client_connection.connection_ops import ConnectionOps
    from headwater.model.message import Message

from headwater.client_connection.events import TAKEN, Reconnected, Refused
from headwater.errors import ConnectionClosed, HeaderError, HeadwaterError, NoResponders, RequestTimeout
from headwater.model.headers import Headers, HeaderSource
from headwater.model.status import NO_RESPONDERS

if TYPE_CHECKING:
    from headwater.client_connection.connection_ops import BytesLike

RANDOM_BYTES = 11  # 88 bits, as hexadecimal 22 characters: two clients never share an inbox
SWEEP_SECONDS = 0.002  # deadlines closer together are checked together


def new_inbox(prefix: str) -> str:
    """A subject that no other client uses."""
    return f"{prefix}.{os.urandom(RANDOM_BYTES).hex()}"


class PendingRequest:
    """One outstanding request. `deadline` by the loop's clock, `answer` the future of the waiting task."""

    def __init__(self, subject: str, deadline: cython.double, timeout: cython.double, answer: Any) -> None:
        self.subject = subject
        self.deadline = deadline
        self.timeout = timeout
        self.answer = answer
        self.again: tuple[Any, Any] | None = None  # data and headers, if it may be repeated
        self.waits_for_link = False  # made while there was no link; it goes out with the first bytes on the next one


class Requests:
    """The outstanding requests of one connection."""

    def __init__(self, connection: ConnectionOps, inbox_prefix: str) -> None:
        self.connection = connection
        self.inbox = new_inbox(inbox_prefix)
        self.inbox_dot = f"{self.inbox}."
        self.inbox_size = len(self.inbox_dot)
        self.subscription: object = None
        self.waiting: dict[str, PendingRequest] = {}
        self.listens = False
        self.last = 0
        self.loop = asyncio.get_running_loop()
        self.create_future = self.loop.create_future
        self.now = self.loop.time
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = 0.0

    async def ask(
        self, subject: str, data: "BytesLike", headers: HeaderSource | Headers | None, timeout: float, repeat: bool
    ) -> Any:
        """Publish, and wait for the first answer.

        Raises NoResponders, RequestTimeout after `timeout` seconds, and what a publish raises; ConnectionClosed, or the
        reason, when the connection ends for good. While there is no server, the request waits on; with `repeat` it is sent
        again once there is a new connection.
        """
        answer: Any = self.create_future()
        deadline: cython.double = self.now() + timeout
        message: Any  # as a typed local, Cython's coroutine would return it through the wrong C type
        if self.subscription is None:
            self.begin()
        self.last += 1
        token: str = str(self.last)
        pending: PendingRequest = PendingRequest(subject, deadline, timeout, answer)
        self.waiting[token] = pending
        if self.timer is None or deadline < self.timer_at:
            self.set_timer(deadline)
        try:
            # Not awaited: waiting for the answer includes waiting for the write.
            self.connection.send(subject, data, self.inbox_dot + token, headers)
            if repeat:
                pending.again = (data, headers)
                pending.waits_for_link = self.connection.link is None
            message = await answer
        finally:
            self.waiting.pop(token, None)
        if len(message.header_block) > 0 and is_no_responders(message):
            raise NoResponders(f"nobody is subscribed to {subject!r}", value=subject, hint="is the service running?")
        return message

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

    def answered(self, message: Message) -> None:
        """For the connection: a message arrived at the inbox."""
        pending: PendingRequest | None = self.waiting.get(message.subject[self.inbox_size :])
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(message)

    def happened(self, event: object) -> object:
        """For the connection: after a reconnect repeat requests with `repeat`; fail those that the server refused."""
        pending: PendingRequest
        if isinstance(event, Refused):
            return self.refused(event)
        if not isinstance(event, Reconnected):
            return None
        for token, pending in list(self.waiting.items()):
            if pending.again is None or pending.answer.done():
                continue
            if not pending.waits_for_link:
                try:
                    self.connection.send(pending.subject, pending.again[0], self.inbox_dot + token, pending.again[1])
                except HeadwaterError as error:  # the new server's limits are lower
                    pending.answer.set_exception(error)
            pending.waits_for_link = False
        return None

    def refused(self, event: Any) -> object:
        """The server does not allow to publish on a subject, or to subscribe to the inbox."""
        pending: PendingRequest
        taken: object = None
        inbox_is_refused = not event.publishing and event.subject == f"{self.inbox}.*"
        for token, pending in list(self.waiting.items()):
            is_its = event.publishing and event.subject in (pending.subject, self.inbox_dot + token)
            if pending.answer.done() or not (inbox_is_refused or is_its):
                continue
            pending.answer.set_exception(event.error)
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
            if pending.answer.done():
                continue
            if pending.deadline <= now:
                pending.answer.set_exception(
                    RequestTimeout(
                        f"no answer to the request on {pending.subject!r} within {pending.timeout:g} s",
                        value=pending.subject,
                        limit=pending.timeout,
                    )
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
            if not pending.answer.done():
                pending.answer.set_exception(reason)


def is_no_responders(message: Message) -> bool:
    """Whether a message is the server's "no responders" status."""
    if message.data or not message.header_block:
        return False
    try:
        status = message.status
    except HeaderError:
        return False
    return status is not None and status.code == NO_RESPONDERS
