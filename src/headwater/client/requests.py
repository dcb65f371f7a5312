"""Requests: many at a time over one subscription.

    _INBOX.<22 random characters>.*      the one subscription, made at the first request
    _INBOX.<22 random characters>.<n>    the reply subject of request n

An answer finds its request by the last token. "No responders" (status 503) is an answer, at once.
"""

import asyncio
import secrets
from typing import TYPE_CHECKING

from headwater.client.connection_ops import BytesLike
from headwater.errors import ConnectionClosed, HeaderError, HeadwaterError, NoResponders, RequestTimeout
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message
from headwater.model.status import NO_RESPONDERS

if TYPE_CHECKING:
    from headwater.client.connection import Connection
    from headwater.client.subscription import Subscription

_RANDOM_BYTES = 11  # 88 bits, as hexadecimal 22 characters: two clients never share an inbox


def new_inbox(prefix: str) -> str:
    """A subject that nobody else uses."""
    return f"{prefix}.{secrets.token_hex(_RANDOM_BYTES)}"


class Requests:
    """The outstanding requests of one connection."""

    def __init__(self, connection: "Connection", inbox_prefix: str) -> None:
        self._connection = connection
        self._inbox = new_inbox(inbox_prefix)
        self._subscription: Subscription | None = None
        self._outstanding: dict[str, asyncio.Future[Message]] = {}
        self._last = 0

    async def ask(
        self, subject: str, data: BytesLike, headers: HeaderSource | Headers | None, timeout: float
    ) -> Message:
        """Publish, and wait for the first answer.

        Raises NoResponders, RequestTimeout after `timeout` seconds, and TransportError when the connection is lost.
        """
        if self._subscription is None:
            self._subscription = self._connection.subscribe(f"{self._inbox}.*", direct=self._answer)
            self._connection.closed.add_done_callback(self._fail_all)
        self._last += 1
        token = str(self._last)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Message] = loop.create_future()
        self._outstanding[token] = answer
        # A timer of our own: asyncio.timeout costs as much as the rest of a request together.
        timer = loop.call_later(timeout, self._expire, answer, subject, timeout)
        try:
            # Not awaited: who waits for the answer waits for the bytes to be written, too.
            self._connection.publish(subject, data, f"{self._inbox}.{token}", headers)
            message = await answer
        finally:
            timer.cancel()
            del self._outstanding[token]
        if says_no_responders(message):
            raise NoResponders(f"nobody is subscribed to {subject!r}", value=subject, hint="is the service running?")
        return message

    @property
    def outstanding(self) -> int:
        """Requests that wait for their answer."""
        return len(self._outstanding)

    def _answer(self, message: Message) -> None:
        waiting = self._outstanding.get(message.subject.rpartition(".")[2])
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def _expire(self, answer: "asyncio.Future[Message]", subject: str, timeout: float) -> None:
        if not answer.done():
            answer.set_exception(
                RequestTimeout(
                    f"no answer to the request on {subject!r} within {timeout:g} s", value=subject, limit=timeout
                )
            )

    def _fail_all(self, closed: "asyncio.Future[HeadwaterError | None]") -> None:
        reason = closed.result() or ConnectionClosed("the connection was closed before the answer came")
        for waiting in self._outstanding.values():
            if not waiting.done():
                waiting.set_exception(reason)


def says_no_responders(message: Message) -> bool:
    """Whether a message is the server's "nobody is there": a status line, never a header of that name."""
    if message.data or not message.header_block:
        return False
    try:
        status = message.status
    except HeaderError:
        return False
    return status is not None and status.code == NO_RESPONDERS
