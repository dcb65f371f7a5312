"""The router: writes the deliveries of each message into its subscribers' output buffers.

Every message passes through `route`. A delivery is `MSG <subject> <sid> ` and one copy of the message's tail (see
`wire.client_ops`), appended to the subscriber's output buffer. The `flusher` writes the buffers to the sockets.

The receivers are every plain subscription, and one member of each queue group, chosen at random (xorshift, seeded by
the caller) among those that may receive the message. A client with echo off gets none of its own messages. A subscriber
without header support gets MSG without the header block.

The broker's own subscriptions (streams, the JetStream API) are callbacks. They run inside the publisher's read, so they
must not block; they may publish. An exception in one is logged, and the message counts as delivered.

Decided elsewhere: what a client may do (session), storage (jetstream), sockets (net).
"""

import logging

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.exchange.ahead import Foresight
    from cython.cimports.headwater.exchange.flusher import Flusher
    from cython.cimports.headwater.exchange.peer_frames import PeerFrames
    from cython.cimports.headwater.exchange.sublist import Match, Outlet, Sublist, Subscription
    from cython.cimports.headwater.model.xorshift import Xorshift
    from cython.cimports.headwater.net.shared_run import SharedRun
    from cython.cimports.headwater.wire.cache_lines import prefetch
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.memory import OutputBuffer, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView, composed
    from cython.cimports.headwater.wire.publish_series import PublishSeries
else:
    from headwater.exchange.ahead import Foresight
    from headwater.exchange.flusher import Flusher
    from headwater.exchange.peer_frames import PeerFrames
    from headwater.exchange.sublist import Match, Outlet, Sublist, Subscription
    from headwater.model.xorshift import Xorshift
    from headwater.net.shared_run import SharedRun
    from headwater.wire.client_ops import ClientOpParser
    from headwater.wire.memory import OutputBuffer, slice_bytes
    from headwater.wire.message_view import MessageView, composed
    from headwater.wire.publish_series import PublishSeries

from collections.abc import Callable

from headwater.exchange.flusher import MAX_PENDING
from headwater.exchange.sides import LeafsSide, RouterObserver, RoutesSide
from headwater.exchange.sublist import Callback, TracedCallback
from headwater.model.awaited import Awaited

logger = logging.getLogger(__name__)

TO_NONE, TO_LEAFS, TO_ALL = range(3)  # peers that get an announcement of interest
LARGE: int = 1 << 16  # bytes; a larger message is written at once, from where it lies
_LARGE: cython.Py_ssize_t = LARGE
# Bytes of a run, from which on all receivers with one sid get what the first has in its output (`net.shared_run`). Each then
# costs a write for each run, not for each read, which is worth 30 KiB of copies; and one array of output stays in the L2
# cache where one for each does not.
SHARED: int = 1 << 15
_SHARED: cython.Py_ssize_t = SHARED


def _read_ahead(plain: list[Subscription], first: cython.Py_ssize_t) -> cython.int:
    """Have what deliveries to the next sixteen touch in the processor's caches. Each step from one object to the next waits
    for memory; in a loop of nothing else the waits for sixteen receivers overlap."""
    if cython.compiled:
        index: cython.Py_ssize_t
        for index in range(first, min(first + 16, len(plain))):
            subscription: Subscription = plain[index]
            prefetch(cython.cast(cython.p_void, subscription.msg))
            prefetch(PyByteArray_AS_STRING(cython.cast(Outlet, subscription.outlet).output.data))
    return 0


class PeerForwarding:
    """The other brokers of a cluster (`cluster.forwarding`), the leaf nodes and hubs (`leaf.forwarding`), or both
    (`junction`)."""

    def __init__(self) -> None:
        # For `Router.route_here`: the groups with local members for which a peer was chosen, for the current message.
        self.elsewhere: list[bytes] | None = None

    def has_interest(self, subject: bytes) -> bool:
        """Whether some peer has interest in `subject`."""
        return False

    def pending(self, subject: bytes) -> int:
        """The largest number of unwritten bytes of any peer with interest in `subject`."""
        return 0

    def route(self, router: "Router", publisher: Outlet | None, match: Match, message: MessageView) -> cython.int:
        """`Router.route`, to local clients and peers."""
        raise NotImplementedError

    def route_under(self, router: "Router", inbox: bytes, match: Match, message: MessageView) -> cython.int:
        """`Router.route_under`, to local clients and peers."""
        raise NotImplementedError

    def route_run(
        self,
        router: "Router",
        publisher: Outlet | None,
        match: Match,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """`Router.route_run`, to local clients and peers."""
        raise NotImplementedError

    def publish_series(
        self,
        router: "Router",
        publisher: Outlet,
        match: Match,
        ops: ClientOpParser,
        series: PublishSeries,
        same_subject: cython.bint,
    ) -> cython.int:
        """Collect in `series` the current op of `ops`, whose Match here takes series, with those behind it that have its
        receivers, and route them. Returns the number of receivers, or -1 if it must be routed alone."""
        return -1

    # For `junction`, which combines both kinds of peers.

    def near(self, message: MessageView) -> list[bytes]:
        """The queue groups with members at peers in this cluster."""
        raise NotImplementedError

    def far(self, message: MessageView) -> list[bytes]:
        """The queue groups with members at leaf nodes and hubs."""
        raise NotImplementedError

    def weigh(self, queue: bytes, source: PeerFrames | None, origin: bytes, message: MessageView) -> cython.Py_ssize_t:
        """The number of members of such a group that may get a message."""
        raise NotImplementedError

    def spread(
        self,
        router: "Router",
        source: PeerFrames | None,
        origin: bytes,
        match: Match,
        queues: list[bytes] | None,
        served: list[bytes],
        message: MessageView,
    ) -> cython.int:
        """Send one message to peers only; returns the number of frames, and sets `elsewhere`.

        `source`: the leaf node or hub that sent the message; `origin`: its cluster. `queues`: the groups that the
        message is for, None for all; `served`: the groups to leave out.
        """
        raise NotImplementedError

    def spread_run(
        self,
        router: "Router",
        source: PeerFrames | None,
        origin: bytes,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """As `spread`, for a run on a subject without groups."""
        raise NotImplementedError

    # For messages from a peer, if both kinds exist.

    def from_leaf(
        self,
        router: "Router",
        source: PeerFrames,
        origin: bytes,
        match: Match,
        queues: list[bytes],
        message: MessageView,
    ) -> cython.int:
        """Forward a message of a leaf node; `origin` is b"" for a message of a hub, which goes to leaf nodes only.
        Returns the number of frames, and sets `elsewhere`.
        """
        raise NotImplementedError

    def from_route(
        self, router: "Router", origin: bytes, match: Match, queues: list[bytes], message: MessageView
    ) -> cython.int:
        """Forward a message of a peer in the cluster to leaf nodes; sets `elsewhere` to the groups that they serve."""
        raise NotImplementedError


class Router:
    """Interest and delivery for one subject space.

    `schedule`, `max_pending`, `together` and `shared` are passed to the flusher. `seed` starts the choice among queue
    members; any integer.
    """

    def __init__(
        self,
        schedule: Callable[[Callable[[], None]], object],
        seed: int,
        max_pending: int = MAX_PENDING,
        together: Callable[[Callable[[], None]], bool] | None = None,
        shared: SharedRun | None = None,
    ) -> None:
        self.sublist = Sublist()
        self.flusher = Flusher(schedule, max_pending, together, shared)
        self.chance = Xorshift(seed)
        self.forwarding: PeerForwarding | None = None  # None without a cluster, which then costs nothing
        self.junction: PeerForwarding | None = None  # set if there are both a cluster and leaf nodes
        self.routes_side: RoutesSide | None = None
        self.leafs_side: LeafsSide | None = None
        # Subscriptions that lead to other accounts, and which peers get their announcement: brokers of the cluster have
        # subscriptions like these themselves, leaf nodes lack the other account.
        self.between: dict[Subscription, int] = {}
        self.imports: RouterObserver | None = None  # streams imported from other accounts
        self.publisher: Outlet | None = None  # publisher of the message passed to callbacks; None for the broker itself
        self.inbox = b""  # `route_under`: the subject that the current message is routed by
        self.awaited = Awaited()
        self.foresight: Foresight | None = None
        self.samples_traces = False  # whether a sampled `traceparent` is traced in this account
        self.over_route = False  # whether the message passed to callbacks came from another broker

    # ── interest ──

    def join(self, forwarding: PeerForwarding, side: RoutesSide) -> None:
        """Forward to the peers of a cluster from now on. `side` gets all interest, existing interest included. If leaf
        nodes have been joined already, call `junction.meet` next.
        """
        self.forwarding, self.routes_side = forwarding, side
        for subscription in self.sublist.all():
            if self.between.get(subscription, TO_ALL) == TO_ALL:
                side.subscribed(subscription)

    def join_leafs(self, forwarding: PeerForwarding, side: LeafsSide) -> None:
        """As `join`, for leaf nodes and hubs; a cluster may have been joined already."""
        self.forwarding, self.leafs_side = forwarding, side
        for subscription in self.sublist.all():
            if self.between.get(subscription, TO_ALL) != TO_NONE:
                side.subscribed(subscription)

    def cross(self, junction: PeerForwarding) -> None:
        """Forward to both kinds of peers through `junction`."""
        self.forwarding = self.junction = junction

    def subscribe(self, subscription: Subscription) -> None:
        """Add interest; the caller has checked the subject."""
        self.sublist.insert(subscription)
        if self.routes_side is not None:
            self.routes_side.subscribed(subscription)
        if self.leafs_side is not None:
            self.leafs_side.subscribed(subscription)
        if self.imports is not None:
            self.imports.subscribed(subscription)
        if self.awaited:
            self.awaited.interest_arrived(subscription.subject)

    def subscribe_internal(
        self, subject: bytes, callback: Callback, queue: bytes = b"", *, traced: TracedCallback | None = None
    ) -> Subscription:
        """Subscribe for the broker itself, with `callback(subject, reply, header_block, payload)`; absent parts are
        b"".

        A callback returns False if the message reached no receiver. `traced` is called instead for traced messages.
        """
        subscription = Subscription(subject, queue, b"", None, callback)
        subscription.traced = traced
        self.subscribe(subscription)
        return subscription

    def subscribe_between(
        self,
        subject: bytes,
        callback: Callback,
        queue: bytes = b"",
        *,
        announce: bool,
        to_leafs: bool = False,
        traced: TracedCallback | None = None,
    ) -> Subscription:
        """As `subscribe_internal`, for a subscription that leads to another account; it triggers no imports.
        `announce`: to all peers; `to_leafs`: at least to leaf nodes.
        """
        subscription = Subscription(subject, queue, b"", None, callback)
        subscription.traced = traced
        self.sublist.insert(subscription)
        self.between[subscription] = TO_ALL if announce else TO_LEAFS if to_leafs else TO_NONE
        if self.routes_side is not None and announce:
            self.routes_side.subscribed(subscription)
        if self.leafs_side is not None and (announce or to_leafs):
            self.leafs_side.subscribed(subscription)
        if self.awaited:
            self.awaited.interest_arrived(subject)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; safe to call again."""
        subscription.closed = True
        self.sublist.remove(subscription)
        outlet: Outlet | None = subscription.outlet
        if outlet is not None:
            outlet.subscriptions.pop(subscription.sid, None)
        if self.routes_side is not None:
            self.routes_side.unsubscribed(subscription)
        if self.leafs_side is not None:
            self.leafs_side.unsubscribed(subscription)
        if self.imports is not None:
            self.imports.unsubscribed(subscription)
        self.between.pop(subscription, None)

    def has_interest(self, subject: bytes) -> bool:
        """Whether a message on `subject` would reach a subscriber now, anywhere in the cluster."""
        if self.sublist.has_interest(subject):
            return True
        return self.forwarding is not None and self.forwarding.has_interest(subject)

    def has_listener(self, subject: bytes, queue: bytes) -> bool:
        """As `has_interest`, for messages meant for the queue group `queue`, or b"": for subscribers outside of any. Of
        other brokers all interest counts."""
        match: Match = self.sublist.match(subject)
        if match.plain and not queue:
            return True
        if queue and queue in match.queues:
            return True
        return self.forwarding is not None and self.forwarding.has_interest(subject)

    def pending(self, subject: bytes) -> int:
        """The largest number of unwritten bytes of any client or peer with interest in `subject`; 0 without any."""
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
        """Deliver a message on any subject to this subscription of a client; False if the client may not receive it."""
        return self._deliver_to(subscription, None, False, composed(subject, reply, header_block, payload))

    def deliver(self, inbox: bytes, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> int:
        """Deliver a message to the subscribers of `inbox`, but showing `subject`, as JetStream does for pulls."""
        message: MessageView = composed(subject, reply, header_block, payload)
        if inbox is subject:
            return self.route(None, self.sublist.find(message.buffer, 0, message.subject_end), message)
        return self.route_under(inbox, self.sublist.match(inbox), message)

    # ── one message ──

    def route(self, publisher: Outlet | None, match: Match, message: MessageView) -> cython.int:
        """Deliver one message; returns the number of deliveries."""
        if self.forwarding is not None:
            return self.forwarding.route(self, publisher, match, message)
        return self.route_here(publisher, match, True, message, None, False)

    def route_plain(self, publisher: Outlet | None, match: Match, message: MessageView) -> cython.int:
        """`route` without peers, for a `match` that is `separate` and a message that is not traced."""
        deliveries: cython.int = 0
        subscription: Subscription
        index: cython.Py_ssize_t
        for index in range(len(match.plain)):
            if index & 15 == 0 and len(match.plain) > 64:  # what fewer receivers need is in the caches
                _read_ahead(match.plain, index)
            subscription = match.plain[index]
            deliveries += self._deliver_to(subscription, publisher, True, message)
        return deliveries

    def route_here(
        self,
        publisher: Outlet | None,
        match: Match,
        own_subject: cython.bint,
        message: MessageView,
        elsewhere: list[bytes] | None,
        over_route: cython.bint,
    ) -> cython.int:
        """`route` to the clients of this broker only, without the queue groups in `elsewhere`.

        `own_subject`: `match` was made for the subject in the buffer, which the MSG line shows. `over_route`: the
        message came from another broker.
        """
        if message.trace is not None:
            return self._route_traced(publisher, match, own_subject, message, elsewhere, over_route)
        if match.lone is not None:
            return self.call_one(
                match.lone,
                publisher,
                over_route,
                message.subject_bytes(),
                message.reply_bytes(),
                slice_bytes(message.buffer, message.headers, message.payload),
                slice_bytes(message.buffer, message.payload, message.end),
            )
        deliveries: cython.int = 0
        subscription: Subscription
        called: list[Subscription] | None = None  # made only if a stream or the API is among the subscribers
        members: list[Subscription]
        for subscription in match.plain:
            if subscription.callback is not None:
                if called is None:
                    called = []
                called.append(subscription)
                deliveries += 1
            elif self._deliver_to(subscription, publisher, own_subject, message):
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
            position = self.chance.below(len(members))
            for _tried in range(len(members)):
                subscription = members[position]
                if subscription.callback is not None:
                    if called is None:
                        called = []
                    called.append(subscription)
                    deliveries += 1
                    break
                if self._deliver_to(subscription, publisher, own_subject, message):
                    deliveries += 1
                    break
                position += 1
                if position == len(members):
                    position = 0
        if called is not None:
            subject: bytes = message.subject_bytes()
            reply: bytes = message.reply_bytes()
            headers: bytes = slice_bytes(message.buffer, message.headers, message.payload)
            payload: bytes = slice_bytes(message.buffer, message.payload, message.end)
            for subscription in called:
                deliveries -= 1 - self.call_one(subscription, publisher, over_route, subject, reply, headers, payload)
        return deliveries

    def route_under(self, inbox: bytes, match: Match, message: MessageView) -> cython.int:
        """`route` for a message of the broker itself that shows another subject than `inbox`, for which `match` was
        made.

        JetStream delivers in this way: to a pull request's reply or a deliver subject, showing the subject that the
        message was stored with.
        """
        if self.forwarding is not None:
            return self.forwarding.route_under(self, inbox, match, message)
        return self.route_under_here(inbox, match, message, None, False)

    def route_under_here(
        self,
        inbox: bytes,
        match: Match,
        message: MessageView,
        elsewhere: list[bytes] | None,
        over_route: cython.bint,
    ) -> cython.int:
        """`route_under` to the clients of this broker only, without the queue groups in `elsewhere`."""
        before: bytes = self.inbox
        self.inbox = inbox
        deliveries: cython.int = self.route_here(None, match, False, message, elsewhere, over_route)
        self.inbox = before
        return deliveries

    def _deliver_to(
        self,
        subscription: Subscription,
        publisher: Outlet | None,
        own_subject: cython.bint,
        message: MessageView,
    ) -> cython.bint:
        """Deliver to one client; False if it may not receive the message."""
        outlet: Outlet | None = subscription.outlet
        if outlet is None or subscription.closed or (outlet is publisher and not outlet.echo):
            return False
        if outlet.guard is not None and not outlet.guard.lets_through(message, subscription.queue):
            return False
        output: OutputBuffer = outlet.output
        buffer: bytearray = message.buffer
        tail: cython.Py_ssize_t = message.tail
        end: cython.Py_ssize_t = message.end
        bare: cython.bint = message.headers == message.payload
        strip: cython.bint = not bare and not outlet.headers
        large: cython.bint = end - tail >= _LARGE and outlet.endpoint is not None and not strip
        copied: cython.Py_ssize_t = tail if large else end + 2
        if own_subject and subscription.msg and not strip:
            output.append_pair(subscription.msg if bare else subscription.hmsg, buffer, tail, copied)
        elif not strip:
            output.append_message(
                b"MSG " if bare else b"HMSG ",
                buffer,
                message.subject,
                message.subject_end,
                subscription.after_subject,
                tail,
                copied,
            )
        else:
            output.append_pair(b"MSG ", buffer, message.subject, message.subject_end)
            output.append(subscription.after_subject)
            if message.reply != message.reply_end:
                output.append_slice(buffer, message.reply, message.reply_end)
                output.append(b" ")
            output.append_pair(b"%d\r\n" % (end - message.payload), buffer, message.payload, end + 2)
        if large and outlet.endpoint is not None:
            outlet.endpoint.write_behind(buffer, tail, end + 2)
        outlet.out_messages += 1
        outlet.out_bytes += end - message.headers
        if not outlet.dirty:
            self.flusher.mark(outlet)
        subscription.delivered += 1
        if subscription.maximum != 0 and subscription.delivered >= subscription.maximum:
            self.unsubscribe(subscription)
        return True

    def route_run(
        self,
        publisher: Outlet | None,
        match: Match,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """`route` for `count` messages with one control line, `stride` bytes apart; `match` is `separate`.

        Each receiver gets all of them before the next gets any. Returns the number of receivers.
        """
        if self.forwarding is not None:
            return self.forwarding.route_run(self, publisher, match, message, stride, count)
        return self.route_run_here(publisher, match, message, stride, count)

    def route_run_here(
        self,
        publisher: Outlet | None,
        match: Match,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """`route_run` to the clients of this broker only. `message` is back at the first one afterwards."""
        receivers: cython.int = 0
        subscription: Subscription
        outlet: Outlet
        size: cython.Py_ssize_t
        bare: cython.bint = message.headers == message.payload
        shared: SharedRun = self.flusher.shared
        try:
            for subscription in match.plain:
                outlet = cython.cast(Outlet, subscription.outlet)  # `separate`: every subscription has an outlet
                if subscription.closed or (outlet is publisher and not outlet.echo):
                    continue
                if outlet.guard is not None and not outlet.guard.lets_through(message, subscription.queue):
                    continue
                receivers += 1
                if outlet.endpoint is shared.first:
                    shared.end()
                if subscription.maximum != 0 or not (bare or outlet.headers):
                    for _ in range(count):
                        self._deliver_to(subscription, publisher, True, message)
                        message.advance(stride)
                    message.advance(-stride * count)
                elif shared.first is not None and subscription.sid == shared.sid and outlet.endpoint is not None:
                    shared.give(outlet.endpoint)
                    self._count_run(subscription, outlet, message, count)
                else:
                    size = self._deliver_run(subscription, outlet, message, stride, count)
                    if size >= _SHARED and outlet.endpoint is not None:
                        shared.begin(outlet.endpoint, subscription.sid, size, len(match.plain))
        finally:
            shared.end()
        return receivers

    def _deliver_run(
        self,
        subscription: Subscription,
        outlet: Outlet,
        message: MessageView,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Deliver all messages of a run to one client, which needs no per-message treatment; returns their bytes."""
        bare: cython.bint = message.headers == message.payload
        head: bytes = subscription.msg if bare else subscription.hmsg
        output: OutputBuffer = outlet.output
        if not head:
            head = (b"MSG " if bare else b"HMSG ") + message.subject_bytes() + subscription.after_subject
        output.append_run(head, message.buffer, message.tail, message.end + 2, stride, count)
        self._count_run(subscription, outlet, message, count)
        return count * (len(head) + message.end + 2 - message.tail)

    def _count_run(
        self, subscription: Subscription, outlet: Outlet, message: MessageView, count: cython.Py_ssize_t
    ) -> cython.int:
        """A run is in the output of one client, or in its socket."""
        outlet.out_messages += count
        outlet.out_bytes += count * (message.end - message.headers)
        subscription.delivered += count
        if not outlet.dirty:
            self.flusher.mark(outlet)
        return 0

    def route_series(
        self, publisher: Outlet | None, match: Match, buffer: bytearray, series: PublishSeries
    ) -> cython.int:
        """`route` without peers for messages in `buffer` without headers; `match` is `separate` and takes series.

        Each receiver gets all of them before the next gets any. Returns the number of receivers.
        """
        receivers: cython.int = 0
        subscription: Subscription
        outlet: Outlet
        for subscription in match.plain:
            outlet = cython.cast(Outlet, subscription.outlet)
            if subscription.closed or (outlet is publisher and not outlet.echo):
                continue
            receivers += 1
            series.append_to(outlet.output, buffer, subscription.msg, subscription.after_subject)
            outlet.out_messages += series.count
            outlet.out_bytes += series.payload
            subscription.delivered += series.count
            if not outlet.dirty:
                self.flusher.mark(outlet)
        return receivers

    def call_one(
        self,
        subscription: Subscription,
        publisher: Outlet | None,
        over_route: cython.bint,
        subject: bytes,
        reply: bytes,
        header_block: bytes,
        payload: bytes,
    ) -> cython.int:
        """Call one of the broker's own subscriptions; returns 0 if the message reached no receiver, else 1."""
        callback = subscription.callback
        if subscription.closed or callback is None:
            return 1
        deliveries: cython.int = 1
        self.publisher, self.over_route = publisher, over_route  # each time: a callback may publish
        try:
            if callback(subject, reply, header_block, payload) is False:
                deliveries = 0
        except Exception:
            logger.exception("internal_subscription_failed subject=%r", subscription.subject)
        self.publisher, self.over_route = None, False
        return deliveries

    # ── traced messages ──

    def _route_traced(
        self,
        publisher: Outlet | None,
        match: Match,
        own_subject: bool,
        message: MessageView,
        elsewhere: list[bytes] | None,
        over_route: bool,
    ) -> int:
        from headwater.message_tracing.routing import TracedRouting  # here: few programs ever trace a message

        return TracedRouting(self, publisher, own_subject, message, over_route).route(match, elsewhere)

    def deliver_view(
        self, subscription: Subscription, publisher: Outlet | None, own_subject: bool, message: MessageView
    ) -> bool:
        """Deliver the message to this subscription of a client; False if the client may not receive it."""
        return self._deliver_to(subscription, publisher, own_subject, message)

    # ── output ──

    def mark_dirty(self, outlet: Outlet) -> None:
        """Schedule the output of `outlet` to be written in this loop iteration."""
        self.flusher.mark(outlet)

    def begin_read(self) -> cython.int:
        """Call before parsing a client's input; `end_read` must follow."""
        return self.flusher.begin_read()

    def end_read(self) -> cython.int:
        """Write the output that the parsed input produced; `flusher.congested` then has the receivers that are behind.
        Returns 0 if there was none."""
        return self.flusher.end_read()

    def flush(self) -> None:
        """Write all pending output."""
        self.flusher.flush()
