"""One connection to a leaf node, or to a hub: parses its ops and dispatches them. It makes no decisions.

Documents and interest go to `service.LeafNodes`. Messages go directly to the account's router and the other neighbours;
that path is compiled, and handles messages with the same line together.

Until the other end has joined an account its messages and interest are ignored.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.exchange.auth.guard import Guard
    from cython.cimports.headwater.exchange.junction import Junction
    from cython.cimports.headwater.exchange.peer_connection import PeerConnection
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.shown_subject import route_arrival
    from cython.cimports.headwater.exchange.sublist import Match, Outlet
    from cython.cimports.headwater.leaf.forwarding import LeafForwarding, LeafTarget
    from cython.cimports.headwater.wire.message_view import MessageView, renamed
    from cython.cimports.headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser
else:
    from headwater.exchange.auth.guard import Guard
    from headwater.exchange.junction import Junction
    from headwater.exchange.peer_connection import PeerConnection
    from headwater.exchange.router import Router
    from headwater.exchange.shown_subject import route_arrival
    from headwater.exchange.sublist import Match, Outlet
    from headwater.leaf.forwarding import LeafForwarding, LeafTarget
    from headwater.wire.message_view import MessageView, renamed
    from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser

import time
from typing import TYPE_CHECKING

from headwater.exchange.auth.identity import Identity
from headwater.leaf.permissions import Crossing
from headwater.model.message_trace import LEAF
from headwater.wire import error_texts, route_ops
from headwater.wire.route_lines import PING, PONG, TRACING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from headwater.exchange.account import Account
    from headwater.exchange.mappings import Mappings
    from headwater.exchange.sublist import Outlet as AnyOutlet
    from headwater.leaf.interest import Neighbour
    from headwater.leaf.remote import Remote
    from headwater.net.link import Link
    from headwater.wire.leaf_lines import LeafConnect, LeafInfo

    class LeafRegister(Protocol):
        """What a connection needs from `service.LeafNodes`. For type checkers only."""

        clock: Callable[[], float]

        def opened(self, leaf: "LeafConnection") -> None: ...
        def lost(self, leaf: "LeafConnection", error: Exception | None) -> None: ...
        def hold(self, leaf: "LeafConnection", congested: list[AnyOutlet]) -> None: ...
        def on_connect(self, leaf: "LeafConnection", json: bytes) -> bool: ...
        def on_info(self, leaf: "LeafConnection", json: bytes) -> None: ...
        def on_error(self, leaf: "LeafConnection", text: str) -> None: ...
        def on_early(self, leaf: "LeafConnection") -> None: ...
        def on_interest(self, leaf: "LeafConnection", subject: bytes, queue: bytes, weight: int) -> None: ...
        def publish_refused(self, leaf: "LeafConnection", subject: bytes) -> None: ...
        def broke(self, leaf: "LeafConnection", said: str, reason: str) -> None: ...


MAX_CONTROL_LINE: int = 1 << 16  # as in nats-server: 16 times the clients' limit
_SAID = {
    route_ops.UNKNOWN_OPERATION: error_texts.UNKNOWN_OPERATION,
    route_ops.CONTROL_LINE_TOO_LONG: error_texts.CONTROL_LINE_TOO_LONG,
    route_ops.PAYLOAD_TOO_LARGE: error_texts.MAXIMUM_PAYLOAD,
}
_NO_QUEUES: list[bytes] = []


class LeafConnection(PeerConnection):
    """`remote`: the hub that we dialled; None for an accepted connection."""

    def __init__(self, nodes: "LeafRegister", number: int, max_payload: int, remote: "Remote | None" = None) -> None:
        PeerConnection.__init__(self, nodes.clock)
        self.nodes = nodes
        self.number = number
        self.remote = remote
        self.parser = RouteOpParser(self, b"", route_ops.LEAF, MAX_CONTROL_LINE, max_payload)
        # The other end's announcements about itself.
        self.nonce = ""
        self.connect: LeafConnect | None = None
        self.info: LeafInfo | None = None
        self.identity = Identity()
        self.account: Account | None = None
        self.name = ""
        self.server_id = ""
        self.cluster = ""
        self.remote_account = ""
        self.neighbour: Neighbour | None = None
        self.websocket = False
        self.since = time.time_ns()
        self.refused = 0  # received messages that were not allowed to cross
        self.groups_missed = 0  # received messages for a group whose members had all left
        self.end_reason = ""
        # The destinations of messages, once the other end has joined.
        self.joined = False
        self._router: Router | None = None
        self._forwarding: LeafForwarding | None = None
        self._target: LeafTarget | None = None
        self._origin = b""  # a spoke's cluster
        self._guard: Guard | None = None
        self._hears: Crossing | None = None

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        """The connection is established."""
        self.established(link)
        self.nodes.opened(self)

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse input and write its deliveries; then pause reading if a local client is close to being disconnected."""
        router: Router | None = self._router
        if router is None:
            return self.parser.parse(buffer, 0, filled)
        used = self.parse(router, buffer, filled)
        if router.flusher.congested:
            self.nodes.hold(self, router.flusher.congested)
        return used

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self.ended()
        self.nodes.lost(self, error)

    # ── what is written ──

    def ping(self, most: int, now: float) -> bool:
        """Send a PING. If `most` of them are unanswered, close the connection and return False."""
        if not self.pulse.beat(most, now):
            self.close(error_texts.STALE_CONNECTION)
            return False
        self.send(PING)
        return True

    def close(self, said: str = "", reason: str = "") -> None:
        """Close after the pending output; a text in `said` is sent last, as -ERR."""
        self.end_reason = self.end_reason or said or reason
        if said:
            self.send(error_texts.encode_error(said))
        self.close_link()

    def join(self, account: "Account", forwarding: LeafForwarding, target: LeafTarget, headers: bool) -> None:
        """Join an account: messages are routed from now on."""
        self.account = account
        self._router = account.router
        self._forwarding = forwarding
        self._target = target
        self._origin = self.neighbour.origin if self.neighbour is not None and not self.neighbour.is_hub else b""
        target.outlet.headers = headers
        self.joined = True

    def allow(self, hears: Crossing, guard: Guard | None) -> None:
        """Set the permissions for incoming messages: `hears` for all, and `guard` for a user with permissions."""
        self._hears = hears
        self._guard = guard

    def leads_where(self, other: "LeafConnection") -> bool:
        """Whether both connections join the same account here to the same account of the same server."""
        return (
            bool(self.server_id)
            and self.server_id == other.server_id
            and self.account is other.account
            and self.remote_account == other.remote_account
        )

    def standing(self) -> Outlet:
        """The outlet of an attached connection."""
        if self.outlet is None:
            raise AssertionError("a leaf node that was never attached said something")
        return self.outlet

    @property
    def target(self) -> LeafTarget | None:
        """The other end as a receiver of messages; None until it has joined."""
        return self._target

    # ── ops ──

    def on_connect(self, json: bytes) -> cython.int:
        return route_ops.SUSPEND if self.nodes.on_connect(self, json) else 0

    def on_info(self, json: bytes) -> cython.int:
        self.nodes.on_info(self, json)
        return 0

    def on_ping(self) -> cython.int:
        if self.joined or self.remote is not None:
            self.send(PONG)
        else:
            self.nodes.on_early(self)
        return 0

    def on_error(self, text: bytes) -> cython.int:
        self.nodes.on_error(self, text.decode("utf-8", "replace"))
        return 0

    def on_interest(self, account: bytes, subject: bytes, queue: bytes, weight: cython.Py_ssize_t) -> cython.int:
        if not self.joined:
            self.nodes.on_early(self)
            return 0
        self.nodes.on_interest(self, subject, queue, weight if queue else 1)
        return 0

    def on_no_interest(self, account: bytes, subject: bytes, queue: bytes) -> cython.int:
        if not self.joined:
            self.nodes.on_early(self)
            return 0
        self.nodes.on_interest(self, subject, queue, 0)
        return 0

    def on_message(self, message: RouteMessage) -> cython.int:
        if not self.joined:
            self.nodes.on_early(self)
            return 0
        if message.headers != message.payload:
            mark: cython.int = message.trace_mark()
            if mark == 1 or (mark != 0 and cython.cast(Router, self._router).samples_traces):
                return self._take_traced(message)
        return self._take(message)

    def _take(self, message: RouteMessage) -> cython.int:
        self.traffic.messages += 1
        self.traffic.bytes += message.end - message.headers
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
        router: Router = cython.cast(Router, self._router)
        match: Match = router.sublist.find(view.buffer, view.subject, view.subject_end)
        forwarding: LeafForwarding = cython.cast(LeafForwarding, self._forwarding)
        frames: cython.int = 0
        elsewhere: list[bytes] | None = None
        junction: Junction | None = cython.cast(Junction, router.junction)
        if junction is not None:
            target: LeafTarget = cython.cast(LeafTarget, self._target)
            frames = junction.from_leaf(router, target, self._origin, match, queues, view)
            elsewhere = junction.elsewhere
        elif len(forwarding.targets) > 1:
            frames = forwarding.pass_on(router, cython.cast(LeafTarget, self._target), match.queues, queues, view)
        if queues or match.groups:
            if queues and not frames:
                for queue in queues:
                    if queue not in match.queues:
                        self.groups_missed += 1
            if elsewhere is not None:
                queues = [queue for queue in queues if queue not in elsewhere]
            match = match.serving(queues, True)
        if match.plain or match.groups:
            route_arrival(router, self.outlet, match, view, False)
        return 0

    def _take_traced(self, message: RouteMessage) -> int:
        """`_take` for a message whose headers may request a trace."""
        from headwater.message_tracing.message_trace import Source, begin, deliver  # here: few programs trace a message

        account = self.account
        if account is None:
            return self._take(message)
        begun = begin(account, Source(LEAF, self.number, self.traced_name, self._may_be_reported), message)
        if begun.denied:  # only an error: the message itself is allowed
            denied = begun.denied.decode("utf-8", "surrogateescape")
            self.send(error_texts.encode_error(error_texts.publish_permission(denied)))
        if begun.skip:
            return 0
        deliver(message, begun.trace, lambda one: self._take(message))
        return 0

    def _may_be_reported(self, subject: bytes) -> bool:
        """Whether the other end might publish on `subject` itself."""
        from headwater.message_tracing.message_trace import allowed_by

        return allowed_by(self._guard)(subject) and (self._hears is None or self._hears.has(subject))

    @property
    def traced_name(self) -> str:
        """The other end's name, for trace reports."""
        if self.info is not None:
            return self.info.server_name
        return self.connect.name if self.connect is not None else ""

    @property
    def traces(self) -> bool:
        """Whether the other end continues traces."""
        proto = self.info.proto if self.info is not None else self.connect.protocol if self.connect is not None else 0
        return proto >= TRACING

    def on_message_run(self, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        if not self.joined or self._mappings() is not None or message.queues or message.reply != message.reply_end:
            return RouteOpHandler.on_message_run(self, message, stride, count)
        router: Router = cython.cast(Router, self._router)
        if message.headers != message.payload and message.run_trace_mark(stride, count, router.samples_traces):
            return RouteOpHandler.on_message_run(self, message, stride, count)
        match: Match = router.sublist.find(message.buffer, message.subject, message.subject_end)
        if match.groups:
            match = match.serving(_NO_QUEUES, True)
        if not match.separate or not self._may_come(message):
            return RouteOpHandler.on_message_run(self, message, stride, count)
        junction: Junction | None = cython.cast(Junction, router.junction)
        if junction is not None:
            if junction.far(message):
                return RouteOpHandler.on_message_run(self, message, stride, count)
            junction.spread_run(router, self._target, self._origin, message, stride, count)
        self.traffic.messages += count
        self.traffic.bytes += count * (message.end - message.headers)
        forwarding: LeafForwarding = cython.cast(LeafForwarding, self._forwarding)
        if junction is None and len(forwarding.targets) > 1:
            forwarding.send_run(router, self._target, match, message, stride, count)
        router.route_run_here(self.outlet, match, message, stride, count)
        return 0

    def _mappings(self) -> "Mappings | None":
        """The account's current subject mappings; a reload may change them, so they are not stored."""
        return self.account.mappings if self.account is not None else None

    def _may_come(self, message: MessageView) -> cython.bint:
        """Whether a message may cross. If not, a sender whose user has permissions here gets an error."""
        if self._guard is not None and not self._guard.may_publish(message):
            subject: bytes = message.subject_bytes()
            if not subject.startswith((b"$LDS.", b"_GR_.")):
                self.nodes.publish_refused(self, subject)
                return False
        hears = self._hears
        if hears is not None and (message.buffer[message.subject] == 36 or not hears.is_open):  # $
            if not hears.has(message.subject_bytes()):
                self.refused += 1
                return False
        return True

    def on_violation(self, violation: cython.int) -> cython.int:
        said = _SAID.get(violation, "")
        self.nodes.broke(self, said, said or "arguments that cannot be read")
        return 1
