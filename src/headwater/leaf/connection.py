"""One connection to a leaf node, or to a hub: parses its ops and dispatches them. It makes no decisions.

Documents and interest go to `service.LeafNodes`, messages to its `LeafArrivals`; that path is compiled.

Until the other end has joined an account its messages and interest are ignored.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.authorization.guard import Guard
    from cython.cimports.headwater.exchange.peer_connection import PeerConnection
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Outlet
    from cython.cimports.headwater.leaf.arrivals import LeafArrivals
    from cython.cimports.headwater.leaf.forwarding import LeafForwarding, LeafTarget
    from cython.cimports.headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser
else:
    from headwater.authorization.guard import Guard
    from headwater.exchange.peer_connection import PeerConnection
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Outlet
    from headwater.leaf.arrivals import LeafArrivals
    from headwater.leaf.forwarding import LeafForwarding, LeafTarget
    from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser

from typing import TYPE_CHECKING

from headwater.leaf.far_end import FarEnd
from headwater.leaf.permissions import Crossing
from headwater.model.message_trace import LEAF
from headwater.wire import error_texts, route_ops, violations
from headwater.wire.route_lines import PING, PONG
from headwater.wire.verbs import SUSPEND

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from headwater.exchange.account import Account
    from headwater.exchange.sublist import Outlet as AnyOutlet
    from headwater.leaf.interest import Neighbour
    from headwater.leaf.leaf_watch import LeafWatch
    from headwater.leaf.remote import Remote
    from headwater.net.link import Link

    class LeafRegister(Protocol):
        """What a connection needs from `service.LeafNodes`. For type checkers only."""

        clock: Callable[[], float]
        watch: LeafWatch

        def opened(self, leaf: "LeafConnection") -> None: ...
        def lost(self, leaf: "LeafConnection", error: Exception | None) -> None: ...
        def hold(self, leaf: "LeafConnection", congested: list[AnyOutlet]) -> None: ...
        def on_connect(self, leaf: "LeafConnection", json: bytes) -> bool: ...
        def on_info(self, leaf: "LeafConnection", json: bytes) -> None: ...
        def on_error(self, leaf: "LeafConnection", text: str) -> None: ...
        def on_early(self, leaf: "LeafConnection") -> None: ...
        def on_interest(self, leaf: "LeafConnection", subject: bytes, queue: bytes, weight: int) -> None: ...
        def publish_refused(self, leaf: "LeafConnection", subject: bytes) -> None: ...
        def fail(self, leaf: "LeafConnection", text: str, reason: str) -> None: ...


MAX_CONTROL_LINE: int = 1 << 16  # as in nats-server: 16 times the clients' limit


class LeafConnection(PeerConnection):
    """`remote`: the hub that we dialled; None for an accepted connection."""

    def __init__(self, nodes: "LeafRegister", number: int, max_payload: int, remote: "Remote | None" = None) -> None:
        PeerConnection.__init__(self, nodes.clock)
        self.nodes = nodes
        self.number = number
        self.remote = remote
        self.parser = RouteOpParser(self, b"", route_ops.LEAF, MAX_CONTROL_LINE, max_payload)
        self.arrivals = LeafArrivals(self.traffic, self._on_denied)
        self.far_end = FarEnd()
        self.nonce = ""  # that of our INFO
        self.account: Account | None = None
        self.neighbour: Neighbour | None = None
        self.websocket = False
        self.end_reason = ""
        self.joined = False

    # ── the link's owner ──

    def attach(self, link: "Link") -> None:
        """The connection is established."""
        self.established(link)
        self.nodes.opened(self)

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse input and write its deliveries; then pause reading if a local client is close to being disconnected."""
        router: Router | None = self.arrivals.router
        if router is None:
            return self.parser.parse(buffer, 0, filled)
        used = self.parse(router, buffer, filled)
        if router.flusher.congested:
            self.nodes.hold(self, router.flusher.congested)
        return used

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self.outlet is not None and self.outlet.closed:  # by the router
            self.end_reason = self.end_reason or "more than max_pending waits for it"
            self.nodes.watch.slow += 1
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

    def close(self, text: str = "", reason: str = "") -> None:
        """Close after the pending output; `text` is sent last, as -ERR. `reason` is our own, for the log."""
        self.end_reason = self.end_reason or text or reason
        if text:
            self.send(error_texts.encode_error(text))
        self.close_link()

    def join(self, account: "Account", forwarding: LeafForwarding, target: LeafTarget, headers: bool) -> None:
        """Join an account: messages are routed from now on."""
        self.account = account
        origin = self.neighbour.origin if self.neighbour is not None and not self.neighbour.is_hub else b""
        self.arrivals.join(account, forwarding, target, origin)
        target.outlet.headers = headers
        self.joined = True

    def allow(self, may_cross: Crossing, guard: Guard | None) -> None:
        """Set the permissions for incoming messages: `may_cross` for all, and `guard` for a user with permissions."""
        self.arrivals.allow(may_cross, guard)

    def joins_same_accounts(self, other: "LeafConnection") -> bool:
        """Whether both connections join the same account here to the same account of the same server."""
        return self.account is other.account and self.far_end.is_same_account(other.far_end)

    def standing(self) -> Outlet:
        """The outlet of an attached connection."""
        if self.outlet is None:
            raise AssertionError("the connection was never attached")
        return self.outlet

    @property
    def target(self) -> LeafTarget | None:
        """The other end as a receiver of messages; None until it has joined."""
        return self.arrivals.target

    # ── ops ──

    def on_connect(self, json: bytes) -> cython.int:
        return SUSPEND if self.nodes.on_connect(self, json) else 0

    def on_info(self, json: bytes) -> cython.int:
        if self._introduced():
            self.nodes.on_info(self, json)
        return 0

    def on_ping(self) -> cython.int:
        if self._introduced():
            self.send(PONG)
        return 0

    def on_pong(self) -> cython.int:
        if self._introduced():
            PeerConnection.on_pong(self)
        return 0

    def on_error(self, text: bytes) -> cython.int:
        if self._introduced():
            self.nodes.on_error(self, text.decode("utf-8", "replace"))
        return 0

    def _introduced(self) -> bool:
        """Whether a spoke has sent its CONNECT; it is refused otherwise."""
        if self.joined or self.remote is not None:
            return True
        self.nodes.on_early(self)
        return False

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
            if mark == 1 or (mark != 0 and cython.cast(Router, self.arrivals.router).samples_traces):
                return self._deliver_traced(message)
        return self.arrivals.deliver(message)

    def _deliver_traced(self, message: RouteMessage) -> int:
        """Deliver a message whose headers may request a trace."""
        from headwater.message_tracing.message_trace import Source, begin, deliver  # here: few programs trace a message

        arrivals: LeafArrivals = self.arrivals
        account = self.account
        if account is None:
            return arrivals.deliver(message)
        begun = begin(account, Source(LEAF, self.number, self.traced_name, arrivals.may_report), message)
        if begun.denied:  # only an error: the message itself is allowed
            denied = begun.denied.decode("utf-8", "surrogateescape")
            self.send(error_texts.encode_error(error_texts.publish_permission(denied)))
        if begun.skip:
            return 0
        deliver(message, begun.trace, lambda one: arrivals.deliver(message))
        return 0

    @property
    def traced_name(self) -> str:
        """The other end's name, for trace reports."""
        return self.far_end.traced_name

    @property
    def traces(self) -> bool:
        """Whether the other end continues traces."""
        return self.far_end.traces

    def on_message_run(self, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        if self.joined and self.arrivals.deliver_run(message, stride, count):
            return 0
        return RouteOpHandler.on_message_run(self, message, stride, count)

    def _on_denied(self, subject: bytes) -> None:
        self.nodes.publish_refused(self, subject)

    def on_violation(self, violation: cython.int) -> cython.int:
        text = violations.TEXTS.get(violation, "")
        self.nodes.fail(self, text, text or "arguments that cannot be read")
        return 1
