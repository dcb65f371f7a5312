"""One connection to another broker, dialled or accepted: parses its ops, dispatches them, and pings the peer.

Documents go to the mesh, interest to the cluster, messages directly to their account's arrivals; that path is compiled,
and handles messages with the same line together. It makes no decisions.

Until the peer is registered its messages are dropped and its interest is queued (real brokers may send it before their
INFO). A peer that sends anything else before its CONNECT is disconnected.

A peer is pinged even while it sends: only that detects a route that loses our output but still delivers the peer's
(gnatsd 1.4.1 does not ping, and loses everything that it sends meanwhile).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.cluster.arrivals import SERIES, Arrivals
    from cython.cimports.headwater.cluster.run_intake import RunIntake
    from cython.cimports.headwater.exchange.peer_connection import PeerConnection
    from cython.cimports.headwater.exchange.router import Router
    from cython.cimports.headwater.exchange.sublist import Outlet
    from cython.cimports.headwater.wire.route_ops import RouteMessage
    from cython.cimports.headwater.wire.run_announcement import Announced
else:
    from headwater.cluster.arrivals import SERIES, Arrivals
    from headwater.cluster.run_intake import RunIntake
    from headwater.exchange.peer_connection import PeerConnection
    from headwater.exchange.router import Router
    from headwater.exchange.sublist import Outlet
    from headwater.wire.route_ops import RouteMessage
    from headwater.wire.run_announcement import Announced

from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import HeadwaterError, RemoteProtocolError
from headwater.model.message_trace import ROUTE
from headwater.net.local_sockets import LocalLink
from headwater.wire import error_texts, violations
from headwater.wire.route_lines import PING, PONG, decode_route_connect, decode_route_info
from headwater.wire.verbs import SUSPEND

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from headwater.cluster.mesh import Peer
    from headwater.cluster.route_watch import RouteWatch
    from headwater.exchange.account import Account
    from headwater.net.link import Link
    from headwater.wire.route_lines import RouteConnect, RouteInfo

    class AccountArrivals(Protocol):
        """The receiver of one account's messages; `spaces.Space` implements it."""

        account: Account
        router: Router
        arrivals: Arrivals

        def takes(self, subject: bytes) -> bool: ...

    class RouteRegister(Protocol):
        """What a route needs from its cluster; `service.Cluster` implements it. For type checkers only."""

        clock: Callable[[], float]
        watch: RouteWatch

        def route_opened(self, route: "Route") -> None: ...
        def route_lost(self, route: "Route") -> None: ...
        def hold_route(self, route: "Route", congested: list[Outlet]) -> None: ...
        def complain(self, route: "Route", error: HeadwaterError) -> None: ...
        def on_connect(self, route: "Route", connect: RouteConnect) -> bool: ...
        def on_info(self, route: "Route", info: RouteInfo) -> None: ...
        def on_error(self, route: "Route", text: str) -> None: ...
        def on_interest(self, route: "Route", interest: "Interest") -> None: ...
        def is_proved(self, route: "Route") -> bool: ...
        def find_space(self, account: bytes) -> "AccountArrivals | None": ...
        def find_peer(self, route: "Route") -> "Peer | None": ...


MAX_EARLY: int = 1 << 16  # interest ops kept for a peer that is not registered; real ones send a handful


class Interest(NamedTuple):
    """A change of a peer's interest. v2: `number` members of `queue`, 0 to end it. v1: a subscription with `token`, or,
    if `subject` is empty, its end after `number` messages (0 for now). `origin`: the cluster of the leaf nodes that
    have the interest.
    """

    account: bytes
    subject: bytes
    queue: bytes
    token: bytes
    number: int
    origin: bytes = b""


class Destination:
    """Cache of the destination of a route's last message, because most of the next ones have the same."""

    def __init__(self) -> None:
        self.account: bytes | None = None
        self.router: Router | None = None
        self.arrivals: Arrivals | None = None


class Route(PeerConnection):
    """`dialled` is the URL that we dialled, "" if the peer dialled us."""

    def __init__(self, cluster: "RouteRegister", number: int, dialled: str = "") -> None:
        PeerConnection.__init__(self, cluster.clock)
        self.cluster = cluster
        self.number = number
        self.dialled = dialled
        self.last_read = self.opened
        self.registered = False
        self._early: list[Interest] = []
        self._last = Destination()
        self.intake: RunIntake | None = None

    # the link's owner

    def attach(self, link: "Link") -> None:
        """The connection is established."""
        self.established(link)
        if isinstance(link, LocalLink):
            self.intake = RunIntake(link)
        self.cluster.route_opened(self)

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse input and write its deliveries; then pause reading if a local client is close to being disconnected."""
        self.last_read = self.clock()
        router: Router | None = self._last.router
        if router is None:
            return self.parse_all(buffer, filled)
        router.begin_read()
        try:
            used = self.parse_all(buffer, filled)
        finally:
            router.end_read()
        if router.flusher.congested:
            self.cluster.hold_route(self, router.flusher.congested)
        return used

    def parse_all(self, buffer: bytearray, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse input, and take in the runs of another worker between; returns the number of bytes used."""
        intake: RunIntake | None = self.intake
        if intake is None:
            return self.parser.parse(buffer, 0, filled)
        position: cython.Py_ssize_t = 0
        while True:
            if intake.announced is not None:
                position += intake.take(buffer, position, filled)
                if intake.missing > 0:
                    break
                self._deliver_announced(intake)
                if position == filled:
                    break
            position = self.parser.parse(buffer, position, filled)
            if intake.announced is None:
                begun: cython.bint = position < filled and buffer[position] == 33  # with !, the next announcement
                intake.runs_follow = intake.runs_follow and begun
                break
            self.parser.stopped = self.parser.suspended = False
        intake.expect(filled - position)
        return position

    def takes_runs(self) -> cython.bint:
        return self.intake is not None

    def on_run(self, announced: bytes) -> cython.int:
        if not self._introduced():
            return 1
        try:
            run = Announced(announced)
        except ValueError as error:
            self.cluster.complain(self, RemoteProtocolError(f"{error}: {announced.strip()[:80]!r}"))
            return 1
        intake: RunIntake = cython.cast(RunIntake, self.intake)
        known: cython.bint = self.registered and (run.account == self._last.account or self._find_account(run.account))
        intake.begin(run, self._last.router if known else None)
        return SUSPEND

    def _deliver_announced(self, intake: RunIntake) -> cython.int:
        """A run is here: in the pages of a pipe, or in memory."""
        run: Announced = cython.cast(Announced, intake.announced)
        if intake.hand_on():
            self.traffic.messages += run.count
            self.traffic.bytes += run.count * run.size
            return 0
        message: RouteMessage | None = intake.message()
        if message is None:
            self.cluster.complain(self, RemoteProtocolError(f"a run that is not as announced: {run.head!r}"))
            return 0
        return self.on_message_run(message, run.stride, run.count)

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self.outlet is not None and self.outlet.closed:  # by the router, because it was too slow
            self.cluster.watch.slow += 1
        if self.intake is not None:
            self.intake.close()
        self.ended()
        self.cluster.route_lost(self)

    # what is written

    def ping(self, most: int, now: float) -> bool:
        """Send a PING. If `most` of them are unanswered, close the route and return False."""
        if not self.pulse.beat(most, now):
            self.send(error_texts.encode_error(error_texts.STALE_CONNECTION))
            self.close()
            return False
        self.send(PING)
        return True

    def close(self) -> None:
        """Close the route after its pending output."""
        self.close_link()

    @property
    def traced_name(self) -> str:
        """The peer's name, for trace reports."""
        peer = self.cluster.find_peer(self)
        return peer.name if peer is not None else ""

    @property
    def traces(self) -> bool:
        """Whether the peer continues traces."""
        peer = self.cluster.find_peer(self)
        return peer is not None and peer.dialect != "v1" and peer.traces

    def register(self) -> None:
        """The peer has joined the cluster: apply its queued interest; further interest is applied at once."""
        self.registered = True
        early, self._early = self._early, []
        for interest in early:
            self.cluster.on_interest(self, interest)

    # ops

    def on_connect(self, json: bytes) -> cython.int:
        try:
            suspends: cython.bint = self.cluster.on_connect(self, decode_route_connect(json))
            return SUSPEND if suspends else 0
        except RemoteProtocolError as error:
            self.cluster.complain(self, error)
        return 0

    def on_info(self, json: bytes) -> cython.int:
        try:
            self.cluster.on_info(self, decode_route_info(json))
        except RemoteProtocolError as error:
            self.cluster.complain(self, error)
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
            self.cluster.on_error(self, text.decode("utf-8", "replace"))
        return 0

    def _introduced(self) -> bool:
        """Whether the peer has sent its CONNECT; it is refused otherwise."""
        return self.registered or self.cluster.is_proved(self)

    def on_subscribe(self, subject: bytes, queue: bytes, token: bytes) -> cython.int:
        return self._take_interest(Interest(b"", subject, queue, token, 1))

    def on_unsubscribe(self, token: bytes, maximum: cython.Py_ssize_t) -> cython.int:
        return self._take_interest(Interest(b"", b"", b"", token, maximum))

    def on_interest(self, account: bytes, subject: bytes, queue: bytes, weight: cython.Py_ssize_t) -> cython.int:
        return self._take_interest(Interest(account, subject, queue, b"", weight if queue else 1))

    def on_no_interest(self, account: bytes, subject: bytes, queue: bytes) -> cython.int:
        return self._take_interest(Interest(account, subject, queue, b"", 0))

    def on_leaf_interest(
        self, origin: bytes, account: bytes, subject: bytes, queue: bytes, weight: cython.Py_ssize_t
    ) -> cython.int:
        return self._take_interest(Interest(account, subject, queue, b"", weight, origin))

    def _take_interest(self, interest: Interest) -> cython.int:
        if self.registered:
            self.cluster.on_interest(self, interest)
        elif self.cluster.is_proved(self):
            self._early.append(interest)
            if len(self._early) > MAX_EARLY:
                self.cluster.complain(self, RemoteProtocolError("too much interest before INFO"))
        return 0

    def on_message(self, message: RouteMessage) -> cython.int:
        return self.on_message_run(message, 0, 1)

    def on_message_run(self, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        if not self.registered:
            self.cluster.is_proved(self)
            return 0
        self.traffic.messages += count
        self.traffic.bytes += count * (message.end - message.headers)
        if message.account is not self._last.account and not self._find_account(message.account):
            return 0
        arrivals: Arrivals = cython.cast(Arrivals, self._last.arrivals)
        if message.headers != message.payload and message.run_trace_mark(stride, count, arrivals.router.samples_traces):
            return self._deliver_traced(arrivals, message, stride, count)
        return self._deliver(arrivals, message, stride, count)

    def _deliver(
        self, arrivals: Arrivals, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.int:
        if message.token and message.token.startswith(b"QRSID:"):
            arrivals.deliver_to_member(message, stride, count)
        elif count > 1:
            arrivals.deliver_run(message, stride, count)
        else:
            together: cython.Py_ssize_t = arrivals.deliver_series(message, self.parser)
            if together == 0:
                arrivals.deliver(message)
            else:  # the first is counted
                self.traffic.messages += together - 1
                self.traffic.bytes += SERIES.payload - (message.end - message.payload)
        return 0

    def _deliver_traced(self, arrivals: Arrivals, message: RouteMessage, stride: int, count: int) -> int:
        """`_deliver`, one by one, for messages whose headers may request traces."""
        from headwater.message_tracing.message_trace import Source, begin, deliver  # here: few programs trace a message

        space = self.cluster.find_space(message.account)
        if space is None:
            return 0
        source = Source(ROUTE, self.number, self.traced_name, space.takes)
        for _ in range(count):
            begun = begin(space.account, source, message)
            if not begun.skip:
                deliver(message, begun.trace, lambda one: self._deliver(arrivals, message, 0, 1))
            message.advance(stride)
        return 0

    def _find_account(self, account: bytes) -> cython.bint:
        """Whether this broker has `account`, which then becomes the cached one."""
        space = self.cluster.find_space(account)
        if space is None:
            return False
        self._last.account = account
        self._last.router = space.router
        self._last.arrivals = space.arrivals
        return True

    def on_violation(self, violation: cython.int) -> cython.int:
        text = violations.TEXTS.get(violation)
        if text is not None:
            self.send(error_texts.encode_error(text))
        self.cluster.complain(self, RemoteProtocolError(text or "arguments that cannot be read"))
        return 1
