"""A client's connection: it delivers what arrives, and survives the loss of a link.

    Link ─▶ Conversation ─▶ ServerOpParser ──on_message──▶ ConnectionOps ──add──▶ Subscription
                                           ──on_info, …──▶ Connection ── OpWriter ──▶ output ──▶ Link

It has one conversation after another, and is *away* between them:

    adopted ──lost──▶ away ──adopt──▶ adopted …          the connector dials meanwhile
       └──close, or no server left to try──▶ closed, once; every waiter then gets the reason

Subscriptions survive (they are repeated, with the rest of their maximum), so do requests (they keep waiting), and
publishes made while away, up to `away_limit` bytes; beyond that they are refused with BufferFull, and awaiting one
waits from 1 MiB on. Messages that the link had not delivered are lost (core NATS is at most once); flushes that were
waiting raise.

Bytes that are no protocol end a conversation with RemoteProtocolError. A malformed header block ends nothing: it raises
when it is read.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from headwater.client_connection.awaitables import Bell
from headwater.client_connection.connection_ops import ConnectionOps
from headwater.client_connection.conversation import Conversation
from headwater.client_connection.events import (
    Closed,
    Disconnected,
    Discovered,
    Events,
    LameDuck,
    Reconnected,
    Refused,
    SlowConsumer,
)
from headwater.client_connection.flushes import Flushes
from headwater.client_connection.keep_alive import KeepAlive
from headwater.client_connection.many_publishes import ManyPublishes, Outgoing
from headwater.client_connection.server_errors import Refusal, ends_the_connection, refusal_of, server_error
from headwater.client_connection.server_url import ServerAddress
from headwater.client_connection.subscription import Subscription
from headwater.errors import (
    AuthorizationError,
    BufferFull,
    ConnectionClosed,
    HeadwaterError,
    LocalProtocolError,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
)
from headwater.model.message import Message
from headwater.net.link import read_directly
from headwater.wire.handshake import ServerInfo, decode_info
from headwater.wire.memory import OutputBuffer
from headwater.wire.publish import OpWriter

AWAY_LIMIT = 8 << 20  # bytes of publishes kept while there is no server; the default of nats.go
PINGS_OUT = 2  # unanswered pings after which the server counts as dead
CLOSE_SECONDS = 5.0  # for the server to read the last bytes; some never do


class Comeback(Protocol):
    """Makes a new conversation when one was lost."""

    async def again(self, lost: ServerAddress) -> tuple[Conversation, int]:
        """A conversation that was welcomed, and how many attempts it took. Raises the last failure when it gives up."""

    def announced(self, info: ServerInfo, source: ServerAddress) -> tuple[str, ...]:
        """Take the cluster's URLs from the INFO of `source`; returns the new ones."""


class Connection(ConnectionOps):
    """`closed` is done when it has ended for good; its result is the reason, None when the program closed it."""

    def __init__(self, events: Events, *, away_limit: int = AWAY_LIMIT, pings_out: int = PINGS_OUT) -> None:
        super().__init__()
        self.info = ServerInfo()
        self.events = events
        self.conversation: Conversation | None = None
        self.comeback: Comeback | None = None  # None: the connection ends with its first conversation
        self.reconnects = 0
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[HeadwaterError | None] = self._loop.create_future()
        self._subscriptions: dict[int, Subscription] = {}
        self.flushes = Flushes()
        self._last_sid = 0
        self._ordered = False
        self._away_limit = away_limit
        self._back = Bell()
        self._coming_back: asyncio.Task[None] | None = None
        self.keep_alive = KeepAlive(self._ping, self._unanswered, pings_out)

    # ── conversations come and go ──

    def adopt(self, conversation: Conversation) -> None:
        """Switch to `conversation`: repeat all subscriptions, then send what was published meanwhile."""
        assert conversation.link is not None
        kept = self.writer.output.take()
        self.conversation = conversation
        conversation.adopted = True
        self.open_link(conversation.link)
        read_directly(conversation.link)
        for subscription in self._subscriptions.values():
            self.writer.subscribe(subscription.subject, subscription.queue, subscription.sid)
            subscription.received_before = subscription.received
            if subscription.maximum > 0:
                self.writer.unsubscribe(subscription.sid, subscription.maximum - subscription.received)
        conversation.link.output.append(kept)
        conversation.link.flush_soon()
        self.keep_alive.start()
        self._back.ring()

    def conversation_ended(self, conversation: Conversation, reason: HeadwaterError) -> None:
        """For conversations: `conversation` has ended. One that was not adopted is handled by its creator."""
        if conversation is not self.conversation or not conversation.adopted:
            return
        self.conversation = None
        self._step_away(reason)
        if self._ordered or self.comeback is None:
            self._end(None if self._ordered else reason)
            return
        self.events.emit(Disconnected(server=conversation.address.url, reason=reason))
        self.events.complain(reason)
        self._coming_back = self._loop.create_task(self._come_back(conversation.address, self.comeback))

    def _step_away(self, reason: HeadwaterError) -> None:
        """Write to an internal buffer until the next link. Waiting flushes fail with `reason`, because their PONG will
        not come."""
        if self.link is None:
            return
        self.drop_link()
        self.keep_alive.stop()
        self.flushes.fail(ConnectionClosed("the connection is closed") if self._ordered else reason)

    async def _come_back(self, lost: ServerAddress, comeback: Comeback) -> None:
        try:
            conversation, attempts = await comeback.again(lost)
        except HeadwaterError as error:
            self._coming_back = None
            self._end(error)
            return
        self._coming_back = None
        self.reconnects += 1
        self.adopt(conversation)
        self.events.emit(Reconnected(server=conversation.address.url, attempts=attempts))

    def _end(self, reason: HeadwaterError | None) -> None:
        """Close for good. Every waiter gets the reason."""
        if self.closed.done():
            return
        self.closed.set_result(reason)
        self.flushes.fail(reason or ConnectionClosed("the connection is closed"))
        self.forget_output()
        subscriptions, self._subscriptions = self._subscriptions, {}
        self.drop_queue(None)
        for subscription in subscriptions.values():
            subscription.end(reason)
        self._back.ring()
        if reason is not None:
            self.events.complain(reason)
        self.events.emit(Closed(reason=reason))

    # ── ops of the server ──

    def on_info(self, json: bytes) -> int:
        conversation = self.conversation
        try:
            info = decode_info(json)
        except RemoteProtocolError as error:
            return self.on_violation(error)
        lame = info.ldm and not self.info.ldm
        self.info = info
        self.apply_limits(info)
        if conversation is None:
            return 0
        if self.comeback is not None and (new := self.comeback.announced(info, conversation.address)):
            self.events.emit(Discovered(servers=new))
        if not conversation.greeted.done():
            conversation.greeted.set_result(info)
        elif lame:
            self.events.emit(LameDuck(server=conversation.address.url))
        return 0

    def on_ping(self) -> int:
        if self.link is not None:
            self.writer.pong()
            self.link.flush_soon()
        return 0

    def on_pong(self) -> int:
        conversation = self.conversation
        if conversation is not None and not conversation.welcomed.done():
            conversation.welcomed.set_result(None)
            return 0
        self.keep_alive.answered()
        self.flushes.answered()
        return 0

    def on_error(self, text: str) -> int:
        error = server_error(text)
        refusal = refusal_of(text)
        if self.link is None or ends_the_connection(text):
            self._end_now(error)
        elif refusal is not None and isinstance(error, AuthorizationError):
            if self.conversation is not None and self.conversation.identity:
                error.hint = f"connected as {self.conversation.identity}"
            self._refuse(refusal, error)
        else:
            self.report(error)
        return 0

    def _refuse(self, refusal: Refusal, error: AuthorizationError) -> None:
        """Pass the error to the task that waits for the refused operation, else to the next flush. A refused
        subscription ends."""
        subject, queue = refusal.subject, refusal.queue
        taken = self.events.emit(Refused(error=error, subject=subject, queue=queue, publishing=refusal.publishing))
        self.events.complain(error)
        if not taken:
            self.flushes.refuse(error)
        if not refusal.publishing:
            for subscription in list(self._subscriptions.values()):
                if subscription.subject == subject and subscription.queue == queue:
                    self.forget(subscription)
                    subscription.end(error)

    def on_violation(self, error: RemoteProtocolError) -> int:
        self._end_now(error)
        return 0

    # ── ops of the client (publish and respond are in ConnectionOps) ──

    def subscribe(
        self,
        subject: str,
        queue: str = "",
        maximum: int = 0,
        direct: Callable[[Message], object] | None = None,
        kind: type[Subscription] = Subscription,
    ) -> Subscription:
        """SUB, now or on the next link. Raises SubjectError and ConnectionClosed. `direct`: see MessageQueue."""
        self._check_open()
        self._last_sid += 1
        subscription = kind(self, self._last_sid, subject, queue, direct)
        writer = self.writer if self.link is not None else OpWriter(OutputBuffer())  # away: checked only
        writer.subscribe(subject, queue, subscription.sid)
        self._subscriptions[subscription.sid] = subscription
        self.queues[subscription.sid] = subscription
        if maximum:
            subscription.unsubscribe(maximum)
        self._flush_soon()
        return subscription

    def unsubscribe(self, subscription: Subscription, maximum: int) -> None:
        """Send UNSUB, for now or after `maximum` messages; nothing is sent while there is no server."""
        if self.link is not None:
            # The server counts from this link's SUB on.
            left = maximum - subscription.received_before if maximum > 0 else 0
            self.writer.unsubscribe(subscription.sid, left)
            self._flush_soon()

    def forget(self, subscription: Subscription) -> None:
        """Stop delivering to the subscription."""
        self._subscriptions.pop(subscription.sid, None)
        self.drop_queue(subscription.sid)

    async def publish_many(self, messages: Iterable[Outgoing], before: int = 0) -> int:
        """Buffer `messages`, with a turn of the loop where one is due; returns how many, with those `before` them."""
        many = ManyPublishes(self, messages, before)
        while many.send_some():
            await self.give_way()
        return many.sent

    async def flush(self, timeout: float | None) -> None:
        """PING, and wait for the PONG: the server has processed everything before it. Without a server, on the next link.

        Raises RequestTimeout, and AuthorizationError for what the server refused and no other task has got."""
        self._check_open()
        waiter = self.flushes.add()
        self.writer.ping()
        self._flush_soon()
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except TimeoutError as error:
            raise RequestTimeout(f"no PONG from the server within {timeout} s", limit=timeout) from error

    async def drain(self, timeout: float, subscriptions: Sequence[Subscription] | None = None) -> None:
        """End `subscriptions`, or all of the program's, once messages that are on their way have come and been handled.

        `timeout` in seconds, for the server's answer and again for callbacks. The subscriptions end in any case. Raises
        RequestTimeout when the server does not answer, ConnectionClosed.
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
        """Write what is buffered, then end; without it when the server does not take it in CLOSE_SECONDS.

        Messages published while away are lost.
        """
        self._ordered = True
        if self._coming_back is not None:
            coming, self._coming_back = self._coming_back, None
            coming.cancel()
            await asyncio.wait([coming])
        link = self.link
        if link is None:
            if self.conversation is not None:  # it is ending already
                await asyncio.wait([self.closed], timeout=CLOSE_SECONDS)
            self._end(None)
            return
        self.refuse_publishes()
        link.close()
        await asyncio.wait([self.closed], timeout=CLOSE_SECONDS)
        if not self.closed.done():
            link.abort()
            await asyncio.wait([self.closed])

    async def reconnect(self) -> None:
        """Leave this server and connect again, as if it had closed the connection. Returns once connected."""
        self._check_open()
        if self.comeback is None:
            raise LocalProtocolError("this client was told not to reconnect")
        if self.link is not None:
            self._end_now(TransportError("the program asked for a new connection"))
        await self.until_back()

    async def until_back(self) -> None:
        """Wait while there is no server. Raises ConnectionClosed when there will be none."""
        while self.link is None:
            self._check_open()
            await self._back.wait()
        self._check_open()

    async def give_way(self) -> None:
        self.begin_turn()
        link = self.link
        if link is None:
            await self.until_back()
            return
        link.flush()
        await asyncio.sleep(0)
        try:
            await link.drained()
        except OSError as error:
            if self.comeback is None or self._ordered:
                raise self.closed_error() from error

    def keep_for_later(self, size: int) -> None:
        link = self.link
        if link is not None and not self._ordered and self.comeback is not None:
            self._step_away(TransportError("the connection was lost"))  # its conversation ends later
        elif link is not None:
            raise self.closed_error()
        self._check_open()
        if self.writer.output.size + size > self._away_limit:
            raise BufferFull(
                "there is no connection, and the buffer for what is published meanwhile is full",
                value=self.writer.output.size,
                limit=self._away_limit,
                hint="await the publishes: they wait until the connection is back",
            )

    # ── what went wrong ──

    def report(self, error: BaseException) -> None:
        """Report an error that no task awaits to the program."""
        self.events.report(error)

    def callback_failed(self, subscription: Subscription, error: BaseException) -> None:
        """Report to the program what the callback of `subscription` raised."""
        self.events.callback_failed(error, subscription.subject, subscription.sid, subscription.queue)

    def handed_over(self, error: HeadwaterError) -> None:
        """A task has received this error."""
        self.flushes.handed_over(error)

    def report_slow(self, subscription: Subscription) -> None:
        """Report to the program that a subscription does not keep up, and that messages are dropped."""
        self.events.emit(SlowConsumer(subject=subscription.subject, sid=subscription.sid, dropped=subscription.dropped))
        self.events.complain(
            LocalProtocolError(
                f"the subscription to {subscription.subject!r} is full: {subscription.policy_text}",
                value=subscription.subject,
                limit=subscription.max_pending,
                hint="read faster, or share the work in a queue group",
            )
        )

    def closed_error(self) -> ConnectionClosed:
        reason: HeadwaterError | None = None
        if self.closed.done():
            reason = self.closed.result()
        elif self.conversation is not None:
            reason = self.conversation.reason
        error = ConnectionClosed(f"the connection is closed{f': {reason}' if reason else ''}")
        error.__cause__ = reason
        return error

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected to a server."""
        return self.link is not None and not self.link.closing and not self._ordered

    def _check_open(self) -> None:
        if self.closed.done() or self._ordered or (self.comeback is None and not self.is_connected):
            raise self.closed_error()

    def _flush_soon(self) -> None:
        if self.link is not None:
            self.link.flush_soon()

    def _end_now(self, error: HeadwaterError) -> None:
        conversation = self.conversation
        if conversation is None:
            return
        self.refuse_publishes()
        conversation.end(error)
        if self.comeback is not None and not self._ordered:
            self._step_away(error)

    def _ping(self) -> None:
        if self.link is None:
            return
        self.flushes.add_sign_of_life()
        self.writer.ping()
        self._flush_soon()

    def _unanswered(self) -> None:
        most = self.keep_alive.most
        self._end_now(TransportError(f"the server has not answered {most} pings", limit=most))
