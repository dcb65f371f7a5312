"""The router: one message in, its deliveries into output buffers out.

`route` is the one door. A delivery is `MSG <subject> <sid> ` and one copy of the message's tail (see
`wire.client_ops`), appended to the subscriber's output buffer; nothing is written here. Outlets that got something are
kept in a dirty list, and one callback per loop iteration (`schedule`) flushes them all.

Who gets it: every plain subscription, and one member of each queue group, chosen at random (xorshift, seeded by the
caller) among those that may have it. A client with echo off is passed over for its own messages. A subscriber without
header support gets MSG with the header block stripped.

The broker's own subscriptions (streams, the JetStream API) are callbacks. They run inside the publisher's read: they
must not block, may publish, and an exception in one is logged and counts as delivered.

Refused here: any decision about what a client may do (session), about storage (jetstream), about sockets (net).
"""

import logging

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.sublist import Match, Outlet, Sublist, Subscription
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
else:
    from headwater.broker.sublist import Match, Outlet, Sublist, Subscription
    from headwater.wire.memory import OutputBuffer, slice_bytes

from collections.abc import Callable
from typing import Protocol

from headwater.broker.sublist import Callback

logger = logging.getLogger(__name__)

STALL_AT: int = 8 << 20  # bytes waiting for one client above which those who publish to it are held back
ROUTE_STALL_AT: int = 1 << 20  # the same for a peer: many depend on it, and what waits in caches costs less
MAX_PENDING: int = 64 << 20  # bytes; above this a client is a slow consumer and is cut off (nats-server's default)


class RouterObserver(Protocol):
    """Who has to know what is wanted here: the cluster."""

    def subscribed(self, subscription: Subscription) -> None: ...
    def unsubscribed(self, subscription: Subscription) -> None: ...


class PeerForwarding:
    """The other brokers of a cluster; what it does is `cluster.forwarding.Forwarding`'s."""

    def has_interest(self, subject: bytes) -> bool:
        """Whether some peer wants a message on `subject`."""
        return False

    def pending(self, subject: bytes) -> int:
        """The most bytes that wait for any peer that wants `subject`."""
        return 0

    def route(
        self,
        router: "Router",
        publisher: Outlet | None,
        match: Match,
        own_subject: cython.bint,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """`Router.route`, here and at the peers."""
        raise NotImplementedError

    def route_run(
        self,
        router: "Router",
        publisher: Outlet | None,
        match: Match,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """`Router.route_run`, here and at the peers."""
        raise NotImplementedError


class Router:
    """Interest and delivery for one subject space.

    `schedule(function)` runs the function once, later in this loop iteration. `seed` starts the choice among queue
    members; any integer. `max_pending`: bytes that may wait for one client.
    """

    def __init__(
        self, schedule: Callable[[Callable[[], None]], object], seed: int, max_pending: int = MAX_PENDING
    ) -> None:
        self.sublist = Sublist()
        self.max_pending = max_pending
        self.stall_at = min(STALL_AT, max_pending)
        self.route_stall_at = min(ROUTE_STALL_AT, max_pending)
        self.slow_consumers = 0
        self.congested: list[Outlet] = []  # who got something in the last read, and is behind with taking it
        self._schedule = schedule
        self._random = (seed & 0xFFFFFFFF) | 1
        self._dirty: list[Outlet] = []
        self.forwarding: PeerForwarding | None = None  # None: there is no cluster, and nothing of it costs anything
        self._observer: RouterObserver | None = None
        self.between: set[Subscription] = set()  # what leads from here to other accounts
        self._unannounced: set[Subscription] = set()  # and of that what other brokers have themselves
        self.imports: RouterObserver | None = None  # streams of other accounts that our subscriptions may want
        self.publisher: Outlet | None = None  # who sent what a callback is being called with; None: the broker itself
        self._scheduled = False
        self._reading = False

    # ── interest ──

    def join(self, forwarding: PeerForwarding, observer: RouterObserver) -> None:
        """Be part of a cluster from now on; the observer hears of all interest, also of what is here already."""
        self.forwarding = forwarding
        self._observer = observer
        for subscription in self.sublist.all():
            if subscription not in self._unannounced:
                observer.subscribed(subscription)

    def subscribe(self, subscription: Subscription) -> None:
        """Add interest; the subject was checked by the caller."""
        self.sublist.insert(subscription)
        if self._observer is not None:
            self._observer.subscribed(subscription)
        if self.imports is not None:
            self.imports.subscribed(subscription)

    def subscribe_internal(self, subject: bytes, callback: Callback, queue: bytes = b"") -> Subscription:
        """Interest of the broker itself: `callback(subject, reply, header_block, payload)`, b"" for what is absent.

        A callback that returns False has reached nobody.
        """
        subscription = Subscription(subject, queue, b"", None, callback)
        self.subscribe(subscription)
        return subscription

    def subscribe_between(
        self, subject: bytes, callback: Callback, queue: bytes = b"", *, announce: bool
    ) -> Subscription:
        """The same for what leads from here to another account: it imports nothing itself. `announce`: to the cluster."""
        subscription = Subscription(subject, queue, b"", None, callback)
        self.sublist.insert(subscription)
        self.between.add(subscription)
        if not announce:
            self._unannounced.add(subscription)
        elif self._observer is not None:
            self._observer.subscribed(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; safe to call again."""
        subscription.closed = True
        self.sublist.remove(subscription)
        outlet: Outlet | None = subscription.outlet
        if outlet is not None:
            outlet.subscriptions.pop(subscription.sid, None)
        if self._observer is not None:
            self._observer.unsubscribed(subscription)
        if self.imports is not None:
            self.imports.unsubscribed(subscription)
        self.between.discard(subscription)
        self._unannounced.discard(subscription)

    def has_interest(self, subject: bytes) -> bool:
        """Whether a message on `subject` would reach anybody now, in the whole cluster."""
        if self.sublist.has_interest(subject):
            return True
        return self.forwarding is not None and self.forwarding.has_interest(subject)

    def pending(self, subject: bytes) -> int:
        """The most bytes that wait for any client subscribed to `subject`, or for a peer of one; 0 when there is none."""
        match: Match = self.sublist.match(subject)
        most = self.forwarding.pending(subject) if self.forwarding is not None else 0
        members: list[Subscription]
        for members in [match.plain, *match.groups]:
            for subscription in members:
                if subscription.outlet is not None:
                    most = max(most, subscription.outlet.link.pending)
        return most

    # ── messages from inside the broker ──

    def publish(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> int:
        """Publish from inside the broker; returns the number of deliveries."""
        return self.deliver(subject, subject, reply, header_block, payload)

    def deliver_to(
        self, subscription: Subscription, subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> bool:
        """Give a message to this subscription of a client, whatever its subject; False when it may not have it."""
        tail: cython.Py_ssize_t = len(subject) + 1
        reply_end: cython.Py_ssize_t = tail + len(reply)
        buffer = _message(subject, reply, header_block, payload)
        end: cython.Py_ssize_t = len(buffer) - 2
        body: cython.Py_ssize_t = end - len(payload)
        return self._deliver_to(
            subscription, None, False, buffer, 0, tail - 1, tail, reply_end, tail, body - len(header_block), body, end
        )

    def deliver(self, inbox: bytes, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> int:
        """Give a message to who is subscribed to `inbox`, under another `subject`, as JetStream does for pulls."""
        buffer = _message(subject, reply, header_block, payload)
        tail: cython.Py_ssize_t = len(subject) + 1
        reply_end: cython.Py_ssize_t = tail + len(reply)
        end: cython.Py_ssize_t = len(buffer) - 2
        body: cython.Py_ssize_t = end - len(payload)
        headers: cython.Py_ssize_t = body - len(header_block)
        same: cython.bint = inbox is subject
        match: Match = self.sublist.find(buffer, 0, tail - 1) if same else self.sublist.match(inbox)
        return self.route(None, match, same, buffer, 0, tail - 1, tail, reply_end, tail, headers, body, end)

    # ── the door ──

    def route(
        self,
        publisher: Outlet | None,
        match: Match,
        own_subject: cython.bint,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """Deliver one message; positions as in `ClientOpHandler.on_publish`. Returns the number of deliveries.

        `own_subject`: the subject on the MSG line is the one that `match` was made for.
        """
        if self.forwarding is not None:
            return self.forwarding.route(
                self,
                publisher,
                match,
                own_subject,
                buffer,
                subject,
                subject_end,
                reply,
                reply_end,
                tail,
                headers,
                payload,
                end,
            )
        return self.route_here(
            publisher,
            match,
            own_subject,
            buffer,
            subject,
            subject_end,
            reply,
            reply_end,
            tail,
            headers,
            payload,
            end,
            None,
        )

    def route_here(
        self,
        publisher: Outlet | None,
        match: Match,
        own_subject: cython.bint,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        elsewhere: list[bytes] | None,
    ) -> cython.int:
        """`route` to the clients of this broker only, less the queue groups that are served `elsewhere`."""
        deliveries: cython.int = 0
        subscription: Subscription
        called: list[Subscription] | None = None  # made only when a stream or the API is among the subscribers
        members: list[Subscription]
        for subscription in match.plain:
            if subscription.callback is not None:
                if called is None:
                    called = []
                called.append(subscription)
                deliveries += 1
            elif self._deliver_to(
                subscription,
                publisher,
                own_subject,
                buffer,
                subject,
                subject_end,
                reply,
                reply_end,
                tail,
                headers,
                payload,
                end,
            ):
                deliveries += 1
        if not match.groups and called is None:
            return deliveries
        position: cython.Py_ssize_t
        _tried: cython.Py_ssize_t
        index: cython.Py_ssize_t
        for index in range(len(match.groups)):
            if elsewhere is not None and match.queues[index] in elsewhere:
                continue
            members = match.groups[index]
            position = self._next_random() % len(members)
            for _tried in range(len(members)):
                subscription = members[position]
                if subscription.callback is not None:
                    if called is None:
                        called = []
                    called.append(subscription)
                    deliveries += 1
                    break
                if self._deliver_to(
                    subscription,
                    publisher,
                    own_subject,
                    buffer,
                    subject,
                    subject_end,
                    reply,
                    reply_end,
                    tail,
                    headers,
                    payload,
                    end,
                ):
                    deliveries += 1
                    break
                position += 1
                if position == len(members):
                    position = 0
        if called is not None:
            deliveries -= self._call(
                publisher,
                called,
                slice_bytes(buffer, subject, subject_end),
                slice_bytes(buffer, reply, reply_end),
                slice_bytes(buffer, headers, payload),
                slice_bytes(buffer, payload, end),
            )
        return deliveries

    def _deliver_to(
        self,
        subscription: Subscription,
        publisher: Outlet | None,
        own_subject: cython.bint,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.bint:
        """One delivery to a client; False when it may not have the message."""
        outlet: Outlet | None = subscription.outlet
        if outlet is None or subscription.closed or (outlet is publisher and not outlet.echo):
            return False
        if outlet.guard is not None and not outlet.guard.lets_through(
            buffer, subject, subject_end, reply, reply_end, subscription.queue
        ):
            return False
        output: OutputBuffer = outlet.output
        strip: cython.bint = headers != payload and not outlet.headers
        if own_subject and subscription.msg and not strip:
            output.append_pair(subscription.msg if headers == payload else subscription.hmsg, buffer, tail, end + 2)
        elif not strip and not cython.compiled:  # one call for two: a tenth of what a message costs
            verb = b"MSG " if headers == payload else b"HMSG "
            rest = buffer[tail : end + 2]
            output.append(b"".join((verb, buffer[subject:subject_end], subscription.after_subject, rest)))
        elif not strip:
            output.append_pair(b"MSG " if headers == payload else b"HMSG ", buffer, subject, subject_end)
            output.append_pair(subscription.after_subject, buffer, tail, end + 2)
        else:
            output.append_pair(b"MSG ", buffer, subject, subject_end)
            output.append(subscription.after_subject)
            if reply != reply_end:
                output.append_slice(buffer, reply, reply_end)
                output.append(b" ")
            output.append_pair(b"%d\r\n" % (end - payload), buffer, payload, end + 2)
        outlet.out_messages += 1
        outlet.out_bytes += end - headers
        if not outlet.dirty:
            self._mark(outlet)
        subscription.delivered += 1
        if subscription.maximum != 0 and subscription.delivered >= subscription.maximum:
            self.unsubscribe(subscription)
        return True

    def route_run(
        self,
        publisher: Outlet | None,
        match: Match,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """`route` for `count` messages on one subject, each `stride` bytes behind the one before; `match.separate` holds.

        One receiver gets all of them before the next gets any. Returns how many receivers got messages.
        """
        if self.forwarding is not None:
            return self.forwarding.route_run(
                self,
                publisher,
                match,
                buffer,
                subject,
                subject_end,
                reply,
                reply_end,
                tail,
                headers,
                payload,
                end,
                stride,
                count,
            )
        return self.route_run_here(
            publisher,
            match,
            buffer,
            subject,
            subject_end,
            reply,
            reply_end,
            tail,
            headers,
            payload,
            end,
            stride,
            count,
        )

    def route_run_here(
        self,
        publisher: Outlet | None,
        match: Match,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        reply: cython.Py_ssize_t,
        reply_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """`route_run` to the clients of this broker only."""
        receivers: cython.int = 0
        subscription: Subscription
        outlet: Outlet
        at: cython.Py_ssize_t
        for subscription in match.plain:
            outlet = cython.cast(Outlet, subscription.outlet)  # `separate`: there is one
            if subscription.closed or (outlet is publisher and not outlet.echo):
                continue
            if outlet.guard is not None and not outlet.guard.lets_through(
                buffer, subject, subject_end, reply, reply_end, subscription.queue
            ):
                continue
            receivers += 1
            if subscription.maximum == 0 and (headers == payload or outlet.headers):
                self._deliver_run(
                    subscription, outlet, buffer, subject, subject_end, tail, headers, payload, end, stride, count
                )
                continue
            for at in range(0, count * stride, stride):
                self._deliver_to(
                    subscription,
                    publisher,
                    True,
                    buffer,
                    subject + at,
                    subject_end + at,
                    reply + at,
                    reply_end + at,
                    tail + at,
                    headers + at,
                    payload + at,
                    end + at,
                )
        return receivers

    def _deliver_run(
        self,
        subscription: Subscription,
        outlet: Outlet,
        buffer: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        tail: cython.Py_ssize_t,
        headers: cython.Py_ssize_t,
        payload: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.bint:
        """All messages of a run to one client that takes them as they are."""
        head: bytes = subscription.msg if headers == payload else subscription.hmsg
        output: OutputBuffer = outlet.output
        if not head:
            head = b"MSG " if headers == payload else b"HMSG "
            head += slice_bytes(buffer, subject, subject_end) + subscription.after_subject
        output.append_run(head, buffer, tail, end + 2, stride, count)
        outlet.out_messages += count
        outlet.out_bytes += count * (end - headers)
        subscription.delivered += count
        if not outlet.dirty:
            self._mark(outlet)
        return True

    def _call(
        self,
        publisher: Outlet | None,
        called: list[Subscription],
        subject: bytes,
        reply: bytes,
        header_block: bytes,
        payload: bytes,
    ) -> int:
        """Returns how many of them have reached nobody."""
        missed = 0
        for subscription in called:
            if subscription.closed or subscription.callback is None:
                continue
            self.publisher = publisher  # anew for each: one may have published itself
            try:
                if subscription.callback(subject, reply, header_block, payload) is False:
                    missed += 1
            except Exception:
                logger.exception("internal_subscription_failed subject=%r", subscription.subject)
        self.publisher = None
        return missed

    def _next_random(self) -> cython.uint:
        x: cython.uint = self._random
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self._random = x
        return x

    # ── output ──

    def mark_dirty(self, outlet: Outlet) -> None:
        """`outlet` has output: have it flushed in this loop iteration."""
        if not outlet.dirty:
            self._mark(outlet)

    def _mark(self, outlet: Outlet) -> cython.int:
        outlet.dirty = True
        self._dirty.append(outlet)
        if not self._scheduled and not self._reading:
            self._scheduled = True
            self._schedule(self.flush)
        return 0

    def begin_read(self) -> cython.int:
        """A client's input is about to be parsed: what comes of it is written by `end_read`, which fills `congested`."""
        self._reading = True
        if self.congested:
            self.congested = []
        return 0

    def end_read(self) -> cython.int:
        """Write what the input that was just parsed has led to, without a detour through the loop."""
        self._reading = False
        if self._dirty:
            self._flush_dirty()
        return 0

    def flush(self) -> None:
        """Write what waits, and cut off whoever is too far behind."""
        self._scheduled = False
        self._flush_dirty()

    def _flush_dirty(self) -> cython.int:
        dirty: list[Outlet] = self._dirty
        self._dirty = []
        outlet: Outlet
        waiting: cython.Py_ssize_t
        for outlet in dirty:
            outlet.dirty = False
            if outlet.closed:
                continue
            if outlet.endpoint is not None:
                waiting = outlet.endpoint.push()
            else:
                outlet.link.flush()
                waiting = outlet.link.pending
            if waiting > self.route_stall_at and (outlet.is_route or waiting > self.stall_at):
                self._fell_behind(outlet, waiting)
        return 0

    def _fell_behind(self, outlet: Outlet, waiting: int) -> None:
        self.congested.append(outlet)
        if waiting > self.max_pending:
            self.slow_consumers += 1
            logger.warning("slow_consumer pending=%d limit=%d", waiting, self.max_pending)
            outlet.closed = True
            outlet.link.abort()


def _message(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bytearray:
    """A message as a client would have sent it, less the verb."""
    head: bytes = subject + b" "
    if reply:
        head += reply + b" "
    if header_block:
        sizes = b"%d %d\r\n" % (len(header_block), len(header_block) + len(payload))
    else:
        sizes = b"%d\r\n" % len(payload)
    return bytearray(b"".join((head, sizes, header_block, payload, b"\r\n")))
