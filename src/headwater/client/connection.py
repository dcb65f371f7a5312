"""One connection to a server as the client sees it: what arrives, what is owed, and how it ends.

    Link ──receive──▶ ServerOpParser ──on_message, on_info, …──▶ Connection ──deliver──▶ Subscription
                                                                     └── OpWriter ──▶ output ──▶ Link

The handshake is INFO, then CONNECT and PING in one write, then PONG. A connection ends once, by `lost`, and then every
waiter hears why: nobody is left hanging. Making a new one is not its business, so that reconnecting can be built around
it. Bytes that are no protocol end it with RemoteProtocolError; a malformed header block ends nothing, it raises when it
is read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.client.awaitables import Later, Ready
from headwater.client.subscription import MessageCallback, Subscription
from headwater.errors import (
    AuthorizationError,
    ConnectionClosed,
    HeadwaterError,
    LocalProtocolError,
    PayloadTooLarge,
    RemoteProtocolError,
    RequestTimeout,
    ServerError,
    TransportError,
)
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message
from headwater.wire import error_texts
from headwater.wire.handshake import ConnectOptions, ServerInfo, decode_info
from headwater.wire.publish import OpWriter
from headwater.wire.server_ops import ServerOpHandler, ServerOpParser

if TYPE_CHECKING:
    from headwater.net.link import Link

logger = logging.getLogger(__name__)

ErrorCallback = Callable[[BaseException], object]

SOFT_LIMIT = 1 << 20  # bytes waiting to be written above which awaiting a publish waits
PINGS_OUT = 2  # unanswered pings after which the server is taken for dead
_DONE = Ready(None)
_CLOSING = frozenset(text.lower() for text in error_texts.CLOSING)


class Connection(ServerOpHandler):
    """`closed` is done when the connection has ended; its result is the reason, None for an order of ours."""

    def __init__(self, error_callback: ErrorCallback | None) -> None:
        loop = asyncio.get_running_loop()
        self.info = ServerInfo()
        self.greeted: asyncio.Future[ServerInfo] = loop.create_future()
        self.closed: asyncio.Future[HeadwaterError | None] = loop.create_future()
        self.link: Link | None = None
        self._loop = loop
        self._parser = ServerOpParser(self)
        self._subscriptions: dict[int, Subscription] = {}
        self._to_wake: dict[Subscription, None] = {}
        self._pongs: deque[asyncio.Future[None]] = deque()
        self._last_sid = 0
        self._error_callback = error_callback
        self._reason: HeadwaterError | None = None
        self._ordered = False
        self._ping_timer: asyncio.TimerHandle | None = None
        self._pings_out = 0

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        self.link = link
        self._writer = OpWriter(link.output)

    def receive(self, buffer: bytearray, filled: int) -> int:
        used = self._parser.parse(buffer, 0, filled)
        if self._to_wake:
            woken, self._to_wake = self._to_wake, {}
            for subscription in woken:
                subscription.wake()
        return used

    def lost(self, error: Exception | None) -> None:
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        reason = self._reason
        if reason is None and not self._ordered:
            reason = TransportError(f"the connection was lost: {error or 'the server closed it'}")
        told = reason or ConnectionClosed("the connection is closed")
        waiters: list[asyncio.Future[Any]] = [self.greeted, *self._pongs]
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(told)
                waiter.exception()  # whoever awaits it still gets it; nobody awaiting it is no warning
        self._pongs.clear()
        for subscription in list(self._subscriptions.values()):
            subscription.end(told)
        self._subscriptions.clear()
        if not self.closed.done():
            self.closed.set_result(reason)

    # ── what the server says ──

    def on_message(
        self,
        buffer: bytearray,
        subject: int,
        subject_end: int,
        sid: int,
        reply: int,
        reply_end: int,
        headers: int,
        payload: int,
        end: int,
    ) -> int:
        subscription = self._subscriptions.get(sid)
        if subscription is None:
            return 0  # it came while our UNSUB was on its way
        message = Message(
            buffer[subject:subject_end].decode("utf-8", "surrogateescape"),
            bytes(buffer[payload:end]),
            buffer[reply:reply_end].decode("utf-8", "surrogateescape") if reply_end > reply else "",
            bytes(buffer[headers:payload]) if payload > headers else b"",
            self,
        )
        subscription.deliver(message)
        self._to_wake[subscription] = None
        return 0

    def on_info(self, json: bytes) -> int:
        try:
            self.info = decode_info(json)
        except RemoteProtocolError as error:
            return self.on_violation(error)
        if not self.greeted.done():
            self.greeted.set_result(self.info)
        return 0

    def on_ping(self) -> int:
        self._writer.pong()
        self._flush_soon()
        return 0

    def on_pong(self) -> int:
        self._pings_out = 0
        if self._pongs:
            waiter = self._pongs.popleft()
            if not waiter.done():
                waiter.set_result(None)
        return 0

    def on_error(self, text: str) -> int:
        low = text.lower()
        kind = AuthorizationError if low.startswith(("authorization", "authentication", "permissions")) else ServerError
        error = kind(f"the server says: {text}", value=text)
        if low in _CLOSING or not self.greeted.done():
            self._reason = self._reason or error
        else:
            self.report(error)
        return 0

    def on_violation(self, error: RemoteProtocolError) -> int:
        self._reason = self._reason or error
        if self.link is not None:
            self.link.abort()
        return 0

    # ── what we say ──

    async def introduce(self, options: ConnectOptions) -> None:
        """CONNECT, and wait for the server's PONG. Raises what the server answers instead."""
        self._writer.connect(options)
        await self.flush(None)

    def publish(
        self, subject: str, data: bytes, reply: str, headers: HeaderSource | Headers | None
    ) -> Ready[None] | Later[None]:
        """Buffer a message. Raises SubjectError, HeaderError, PayloadTooLarge and ConnectionClosed, before a byte."""
        link = self._open_link()
        block = b"" if not headers else bytes(headers if isinstance(headers, Headers) else Headers(headers))
        if len(block) + len(data) > self.info.max_payload:
            raise PayloadTooLarge(
                f"a message of {len(block) + len(data)} bytes for {subject!r}, the server takes {self.info.max_payload}",
                value=len(block) + len(data),
                limit=self.info.max_payload,
            )
        if block and not self.info.headers:
            raise LocalProtocolError("the server does not support headers", value=subject)
        self._writer.publish(subject, reply, block, data)
        link.flush_soon()
        return _DONE if link.output.size < SOFT_LIMIT else Later(link.drained)

    def respond(self, reply: str, data: bytes, headers: HeaderSource | Headers | None) -> Ready[None] | Later[None]:
        """For messages: publish to their reply subject."""
        return self.publish(reply, data, "", headers)

    def subscribe(self, subject: str, queue: str, callback: MessageCallback | None, maximum: int) -> Subscription:
        """SUB. Raises SubjectError and ConnectionClosed."""
        self._open_link()
        self._last_sid += 1
        subscription = Subscription(self, self._last_sid, subject, queue, callback)
        self._writer.subscribe(subject, queue, subscription.sid)
        self._subscriptions[subscription.sid] = subscription
        if maximum:
            subscription.unsubscribe(maximum)
        self._flush_soon()
        return subscription

    def unsubscribe(self, subscription: Subscription, maximum: int) -> None:
        """UNSUB, now or after `maximum` messages; nothing to say once the connection has ended."""
        if not self.closed.done():
            self._writer.unsubscribe(subscription.sid, maximum)
            self._flush_soon()

    def forget(self, subscription: Subscription) -> None:
        """Deliver nothing more to it."""
        self._subscriptions.pop(subscription.sid, None)

    async def flush(self, timeout: float | None) -> None:
        """PING, and wait for the PONG: everything before it has been processed by the server."""
        link = self._open_link()
        waiter = self._loop.create_future()
        self._pongs.append(waiter)
        self._writer.ping()
        link.flush_soon()
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(waiter)
        except TimeoutError as error:
            raise RequestTimeout(f"no PONG from the server within {timeout} s", limit=timeout) from error

    def keep_alive(self, interval: float) -> None:
        """Ask for a sign of life every `interval` seconds, and end the connection when none comes."""
        self._ping_timer = self._loop.call_later(interval, self._ping, interval)

    async def drain(self, timeout: float) -> None:
        """End all subscriptions after what is on its way has come; publishes are written."""
        draining = [subscription.drain(timeout) for subscription in list(self._subscriptions.values())]
        if draining:
            await asyncio.gather(*draining)

    def close(self) -> None:
        """Write what is buffered and end, in order. `closed` tells when it is done."""
        self._ordered = True
        if self.link is None:
            self.lost(None)
        else:
            self.link.close()

    # ── what went wrong ──

    def report(self, error: BaseException) -> None:
        """Tell the program of an error that ends nothing."""
        if self._error_callback is None:
            logger.warning("client_error error=%s", error)
            return
        try:
            self._error_callback(error)
        except Exception:
            logger.exception("error_callback_failed")

    def report_slow(self, subscription: Subscription) -> None:
        """Tell the program that a subscription does not keep up, and that messages are dropped."""
        self.report(
            LocalProtocolError(
                f"the subscription to {subscription.subject!r} is full: the newest messages are dropped",
                value=subscription.subject,
                hint="read faster, or share the work in a queue group",
            )
        )

    def _open_link(self) -> "Link":
        if self.link is None or self.link.closing:
            reason = self.closed.result() if self.closed.done() else self._reason
            raise ConnectionClosed(f"the connection is closed{f': {reason}' if reason else ''}") from reason
        return self.link

    def _flush_soon(self) -> None:
        if self.link is not None:
            self.link.flush_soon()

    def _ping(self, interval: float) -> None:
        if self._pings_out >= PINGS_OUT:
            self._reason = TransportError(f"the server has not answered {PINGS_OUT} pings", limit=PINGS_OUT)
            if self.link is not None:
                self.link.abort()
            return
        self._pings_out += 1
        # Its PONG must not answer somebody's flush, so it takes its place in the queue.
        self._pongs.append(self._loop.create_future())
        self._writer.ping()
        self._flush_soon()
        self._ping_timer = self._loop.call_later(interval, self._ping, interval)
