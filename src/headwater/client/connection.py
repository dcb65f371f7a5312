"""One connection to a server as the client sees it: what arrives, what is owed, and how it ends.

    Link ──receive──▶ ServerOpParser ──on_message──▶ ConnectionOps ──add──▶ Subscription
                                     ──on_info, …──▶ Connection ── OpWriter ──▶ output ──▶ Link

The handshake is INFO, then CONNECT and PING in one write, then PONG. A connection ends once, by `lost`, and then every
waiter hears why: nobody is left hanging. Making a new one is not its business, so that reconnecting can be built around
it. Bytes that are no protocol end it with RemoteProtocolError; a malformed header block ends nothing, it raises when it
is read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headwater.client.connection_ops import ConnectionOps
from headwater.client.server_errors import ends_the_connection, server_error
from headwater.client.subscription import Subscription
from headwater.errors import (
    ConnectionClosed,
    HeadwaterError,
    LocalProtocolError,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
)
from headwater.model.message import Message
from headwater.wire.handshake import ConnectOptions, ServerInfo, decode_info
from headwater.wire.publish import OpWriter
from headwater.wire.server_ops import ServerOpParser

if TYPE_CHECKING:
    from headwater.net.link import Link

logger = logging.getLogger(__name__)

ErrorCallback = Callable[[BaseException], object]

PINGS_OUT = 2  # unanswered pings after which the server is taken for dead
CLOSE_SECONDS = 5.0  # for the server to take our last bytes; one that does not read would keep us open for ever


class Connection(ConnectionOps):
    """`closed` is done when the connection has ended; its result is the reason, None for an order of ours."""

    def __init__(self, error_callback: ErrorCallback | None) -> None:
        super().__init__()
        loop = asyncio.get_running_loop()
        self.info = ServerInfo()
        self.greeted: asyncio.Future[ServerInfo] = loop.create_future()
        self.closed: asyncio.Future[HeadwaterError | None] = loop.create_future()
        self._loop = loop
        self._parser = ServerOpParser(self)
        self._subscriptions: dict[int, Subscription] = {}
        self._pongs: deque[asyncio.Future[None]] = deque()
        self._last_sid = 0
        self._error_callback = error_callback
        self._reason: HeadwaterError | None = None
        self._introduced = False
        self._ordered = False
        self._ping_timer: asyncio.TimerHandle | None = None
        self._pings_out = 0

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        self.link = link
        self.writer = OpWriter(link.output)

    def receive(self, buffer: bytearray, filled: int) -> int:
        used = self._parser.parse(buffer, 0, filled)
        self.wake_touched()
        return used

    def lost(self, error: Exception | None) -> None:
        if self._ping_timer is not None:
            self._ping_timer.cancel()
        reason = self._reason
        if reason is None and not self._ordered:
            reason = TransportError(f"the connection was lost: {error or 'the server closed it'}")
        self._fail_waiters(reason or ConnectionClosed("the connection is closed"))
        subscriptions, self._subscriptions = self._subscriptions, {}
        self.queues.clear()
        for subscription in subscriptions.values():
            subscription.end(reason)
        if not self.closed.done():
            self.closed.set_result(reason)
        if reason is not None and self._introduced:
            self.report(reason)

    def _fail_waiters(self, told: HeadwaterError) -> None:
        if not self.greeted.done():
            self.greeted.set_exception(told)
            self.greeted.exception()  # who awaits it still gets it; that nobody does is no fault
        pongs, self._pongs = self._pongs, deque()
        for waiter in pongs:
            if not waiter.done():
                waiter.set_exception(told)
                waiter.exception()

    # ── what the server says ──

    def on_info(self, json: bytes) -> int:
        try:
            self.info = decode_info(json)
        except RemoteProtocolError as error:
            return self.on_violation(error)
        self.max_payload = self.info.max_payload
        self.takes_headers = self.info.headers
        if not self.greeted.done():
            self.greeted.set_result(self.info)
        return 0

    def on_ping(self) -> int:
        self.writer.pong()
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
        error = server_error(text)
        if self._introduced and not ends_the_connection(text):
            self.report(error)
        else:
            self._end_now(error)
        return 0

    def on_violation(self, error: RemoteProtocolError) -> int:
        self._end_now(error)
        return 0

    # ── what we say (publish and respond are in ConnectionOps) ──

    async def introduce(self, options: ConnectOptions) -> None:
        """CONNECT, and wait for the server's PONG. Raises what the server answers instead."""
        if (reason := self._ended_by()) is not None:  # it said more than INFO, or hung up
            raise reason
        self.writer.connect(options)
        await self.flush(None)
        self._introduced = True

    def subscribe(
        self,
        subject: str,
        queue: str = "",
        maximum: int = 0,
        direct: Callable[[Message], object] | None = None,
    ) -> Subscription:
        """SUB. Raises SubjectError and ConnectionClosed. `direct`: see MessageQueue."""
        self._open_link()
        self._last_sid += 1
        subscription = Subscription(self, self._last_sid, subject, queue, direct)
        self.writer.subscribe(subject, queue, subscription.sid)
        self._subscriptions[subscription.sid] = subscription
        self.queues[subscription.sid] = subscription
        if maximum:
            subscription.unsubscribe(maximum)
        self._flush_soon()
        return subscription

    def unsubscribe(self, subscription: Subscription, maximum: int) -> None:
        """UNSUB, now or after `maximum` messages; nothing to say once the connection has ended."""
        if not self.closed.done():
            self.writer.unsubscribe(subscription.sid, maximum)
            self._flush_soon()

    def forget(self, subscription: Subscription) -> None:
        """Deliver nothing more to it."""
        self._subscriptions.pop(subscription.sid, None)
        self.queues.pop(subscription.sid, None)

    async def flush(self, timeout: float | None) -> None:
        """PING, and wait for the PONG: everything before it has been processed by the server."""
        link = self._open_link()
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._pongs.append(waiter)  # and there it stays when we give up: its PONG may still come, and is nobody else's
        self.writer.ping()
        link.flush_soon()
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except TimeoutError as error:
            raise RequestTimeout(f"no PONG from the server within {timeout} s", limit=timeout) from error

    def keep_alive(self, interval: float) -> None:
        """Ask for a sign of life every `interval` seconds, and end the connection when none comes."""
        if not self.closed.done():
            self._ping_timer = self._loop.call_later(interval, self._ping, interval)

    async def drain(self, timeout: float, subscriptions: Sequence[Subscription] | None = None) -> None:
        """End `subscriptions`, or all of the program's, after what is on its way has come and callbacks have had it.

        They end in any case. Raises RequestTimeout when the server does not answer, ConnectionClosed.
        """
        if subscriptions is None:
            subscriptions = [one for one in self._subscriptions.values() if one.direct is None]
        for subscription in subscriptions:
            self.unsubscribe(subscription, 0)
        try:
            await self.flush(timeout)
        finally:
            for subscription in subscriptions:
                self.forget(subscription)
                subscription.end(None)
        serving = {one.task for one in subscriptions if one.task is not None} - {asyncio.current_task()}
        if serving:
            await asyncio.wait(serving, timeout=timeout)

    async def close(self) -> None:
        """Write what is buffered and end, in order; without, when the server does not take it in CLOSE_SECONDS."""
        self._ordered = True
        if self.link is None:
            self.lost(None)
            return
        self.link.close()
        await asyncio.wait([self.closed], timeout=CLOSE_SECONDS)
        if not self.closed.done():
            self.link.abort()
            await asyncio.wait([self.closed])

    async def give_way(self) -> None:
        self.since_turn = 0
        link = self._open_link()
        link.flush()
        await asyncio.sleep(0)
        try:
            await link.drained()
        except OSError as error:
            raise self.closed_error() from error

    # ── what went wrong ──

    def report(self, error: BaseException) -> None:
        """Tell the program of an error that nobody awaits."""
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
                limit=subscription.max_pending,
                hint="read faster, or share the work in a queue group",
            )
        )

    def closed_error(self) -> ConnectionClosed:
        reason = self._ended_by()
        error = ConnectionClosed(f"the connection is closed{f': {reason}' if reason else ''}")
        error.__cause__ = reason
        return error

    def _open_link(self) -> "Link":
        if self.link is None or self.link.closing:
            raise self.closed_error()
        return self.link

    def _ended_by(self) -> HeadwaterError | None:
        return self.closed.result() if self.closed.done() else self._reason

    def _flush_soon(self) -> None:
        if self.link is not None:
            self.link.flush_soon()

    def _end_now(self, error: HeadwaterError) -> None:
        self._reason = self._reason or error
        if self.link is not None:
            self.link.abort()

    def _ping(self, interval: float) -> None:
        if self._pings_out >= PINGS_OUT:
            self._end_now(TransportError(f"the server has not answered {PINGS_OUT} pings", limit=PINGS_OUT))
            return
        self._pings_out += 1
        # Its PONG must not answer somebody's flush, so it takes its place in the queue.
        self._pongs.append(self._loop.create_future())
        self.writer.ping()
        self._flush_soon()
        self._ping_timer = self._loop.call_later(interval, self._ping, interval)
