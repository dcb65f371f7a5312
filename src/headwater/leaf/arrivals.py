"""Delivers the messages of one leaf node, or of one hub: to local subscriptions, the other neighbours, and our cluster.

Before that a message is judged: a user's permissions here, and the subjects that may cross in this direction. Messages with
the same line are delivered together where that makes no difference.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.authorization.guard import Guard
    from cython.cimports.headwater.exchange.client_state import Traffic
    from cython.cimports.headwater.exchange.junction import Junction
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.shown_subject import route_arrival
    from cython.cimports.headwater.exchange.sublist import Match
    from cython.cimports.headwater.leaf.admission import Admission
    from cython.cimports.headwater.leaf.forwarding import LeafForwarding, LeafTarget
    from cython.cimports.headwater.wire.message_view import MessageView, renamed
    from cython.cimports.headwater.wire.route_ops import RouteMessage
else:
    from headwater.authorization.guard import Guard
    from headwater.exchange.client_state import Traffic
    from headwater.exchange.junction import Junction
    from headwater.exchange.router import Router
    from headwater.exchange.shown_subject import route_arrival
    from headwater.exchange.sublist import Match
    from headwater.leaf.admission import Admission
    from headwater.leaf.forwarding import LeafForwarding, LeafTarget
    from headwater.wire.message_view import MessageView, renamed
    from headwater.wire.route_ops import RouteMessage

from typing import TYPE_CHECKING

from headwater.leaf.permissions import Crossing

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.exchange.account import Account
    from headwater.options.mappings import Mappings

_NO_QUEUES: list[bytes] = []


class LeafArrivals:
    """`traffic` counts them. `on_denied(subject)` is called for a message that the other end's user may not publish."""

    def __init__(self, traffic: Traffic, on_denied: "Callable[[bytes], None]") -> None:
        self.router: Router | None = None  # None until the other end has joined an account
        self.target: LeafTarget | None = None  # the other end as a receiver of messages; None until then
        self.refused = 0  # messages that were not allowed to cross
        self.groups_missed = 0  # messages for a group whose members had all left
        self._traffic = traffic
        self._on_denied = on_denied
        self._account: Account | None = None
        self._forwarding: LeafForwarding | None = None
        self._origin = b""  # a spoke's cluster
        self._guard: Guard | None = None
        self._admission: Admission | None = None

    def join(self, account: "Account", forwarding: LeafForwarding, target: LeafTarget, origin: bytes) -> None:
        """Route messages in `account` from now on; `origin` is a spoke's cluster."""
        self._account = account
        self.router = account.router
        self._forwarding = forwarding
        self.target = target
        self._origin = origin

    def allow(self, may_cross: Crossing, guard: Guard | None) -> None:
        """Set the permissions: `may_cross` for all messages, and `guard` for a user with permissions."""
        self._admission = Admission(may_cross)
        self._guard = guard

    def may_report(self, subject: bytes) -> bool:
        """Whether the other end might publish on `subject` itself, and so may have trace reports sent there."""
        from headwater.message_tracing.message_trace import allowed_by

        admission = self._admission
        return allowed_by(self._guard)(subject) and (admission is None or admission.may_cross.has(subject))

    def deliver(self, message: RouteMessage) -> cython.int:
        """Deliver one message, once the other end has joined."""
        self._traffic.messages += 1
        self._traffic.bytes += message.end - message.headers
        if not self._may_come(message):
            return 0
        queues: list[bytes] = message.queues
        view: MessageView = message
        mappings = self._mappings()
        if mappings is not None:
            mapped = mappings.apply(message.subject_bytes())
            if mapped is not None:
                view = renamed(mapped, message)
                if view.trace is not None:
                    view.trace.mapped(mapped)
        router: Router = cython.cast(Router, self.router)
        target: LeafTarget = cython.cast(LeafTarget, self.target)
        admission: Admission | None = self._admission
        match: Match
        if admission is not None and view is message:
            match = admission.receivers(router, message)
        else:
            match = router.sublist.find(view.buffer, view.subject, view.subject_end)
        forwarding: LeafForwarding = cython.cast(LeafForwarding, self._forwarding)
        frames: cython.int = 0
        elsewhere: list[bytes] | None = None
        junction: Junction | None = cython.cast(Junction, router.junction)
        if junction is not None:
            frames = junction.from_leaf(router, target, self._origin, match, queues, view)
            elsewhere = junction.elsewhere
        elif len(forwarding.targets) > 1:
            frames = forwarding.pass_on(router, target, match.queues, queues, view)
        if queues or match.groups:
            if queues and not frames:
                for queue in queues:
                    if queue not in match.queues:
                        self.groups_missed += 1
            if elsewhere is not None:
                queues = [queue for queue in queues if queue not in elsewhere]
            match = match.serving(queues, True)
        if match.plain or match.groups:
            route_arrival(router, target.outlet, match, view, False)
        return 0

    def deliver_run(self, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.bint:
        """Deliver `count` messages with the same line, `stride` bytes apart; False, and nothing is delivered, if that has
        to be done one by one.
        """
        if self._mappings() is not None or message.queues or message.reply != message.reply_end:
            return False
        router: Router = cython.cast(Router, self.router)
        target: LeafTarget = cython.cast(LeafTarget, self.target)
        if message.headers != message.payload and message.run_trace_mark(stride, count, router.samples_traces):
            return False
        match: Match = router.sublist.find(message.buffer, message.subject, message.subject_end)
        if match.groups:
            match = match.serving(_NO_QUEUES, True)
        if not match.separate or not self._may_come(message):
            return False
        junction: Junction | None = cython.cast(Junction, router.junction)
        if junction is not None:
            if junction.far(message):
                return False
            junction.spread_run(router, target, self._origin, message, stride, count)
        self._traffic.messages += count
        self._traffic.bytes += count * (message.end - message.headers)
        forwarding: LeafForwarding = cython.cast(LeafForwarding, self._forwarding)
        if junction is None and len(forwarding.targets) > 1:
            forwarding.send_run(router, target, match, message, stride, count)
        router.route_run_here(target.outlet, match, message, stride, count)
        return True

    def _mappings(self) -> "Mappings | None":
        """The account's current subject mappings; a reload may change them, so they are not stored."""
        return self._account.mappings if self._account is not None else None

    def _may_come(self, message: MessageView) -> cython.bint:
        """Whether a message may cross. If not, a sender whose user has permissions here gets an error."""
        if self._guard is not None and not self._guard.may_publish(message):
            subject: bytes = message.subject_bytes()
            if not subject.startswith((b"$LDS.", b"_GR_.")):
                self._on_denied(subject)
                return False
        if self._admission is not None and not self._admission.may_come(message):
            self.refused += 1
            return False
        return True
