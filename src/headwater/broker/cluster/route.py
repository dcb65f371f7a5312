"""One connection to another broker, made or accepted: reads its ops and hands them on, pings it always.

Documents go to the mesh, interest to the cluster, messages straight to their account's arrivals: that way is compiled,
and takes messages with the same line together. Nothing is decided here.

Until the peer is registered nothing that it says about messages counts. Interest is kept for then (real brokers may send it
before their INFO), messages are dropped; and who has not shown CONNECT where that is owed gets no further at all.

A peer is pinged whatever else it says: a route that swallows what we send, while it goes on talking, is found out only so
(gnatsd 1.4.1 does not, and loses all that it sends meanwhile).
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.broker.cluster.arrivals import Arrivals
    from cython.cimports.headwater.broker.router import Router
    from cython.cimports.headwater.broker.sublist import Outlet
    from cython.cimports.headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser
else:
    from headwater.broker.cluster.arrivals import Arrivals
    from headwater.broker.router import Router
    from headwater.broker.sublist import Outlet
    from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser

from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import RemoteProtocolError
from headwater.wire import error_texts, route_ops
from headwater.wire.route_lines import PING, PONG, decode_route_connect, decode_route_info

if TYPE_CHECKING:
    from headwater.broker.cluster.service import Cluster
    from headwater.net.link import Link

_SAID = {
    route_ops.UNKNOWN_OPERATION: error_texts.UNKNOWN_OPERATION,
    route_ops.CONTROL_LINE_TOO_LONG: error_texts.CONTROL_LINE_TOO_LONG,
    route_ops.PAYLOAD_TOO_LARGE: error_texts.MAXIMUM_PAYLOAD,
}
MAX_EARLY: int = 1 << 16  # ops of interest kept for a peer that is not registered; real ones send a handful


class Interest(NamedTuple):
    """What a peer wants, or not any more. v2: `number` members of `queue`, 0 for the end; v1: a subscription under `token`,
    or, without a subject, its end after `number` messages (0: now).
    """

    account: bytes
    subject: bytes
    queue: bytes
    token: bytes
    number: int


class Route(RouteOpHandler):
    """`dialled` is the URL that led here, empty when the peer came to us."""

    def __init__(self, cluster: "Cluster", number: int, dialled: str = "") -> None:
        self.cluster = cluster
        self.number = number
        self.dialled = dialled
        self.link: Link | None = None
        self.outlet: Outlet | None = None
        self.parser = RouteOpParser(self)
        self.pings_out = 0
        self.round_trip = 0.0
        self.pinged_at = 0.0
        self.opened = cluster.clock()
        self.last_read = self.opened
        self.in_messages = 0
        self.in_bytes = 0
        self.registered = False
        self._early: list[Interest] = []
        # Where the last message went: most go there again.
        self._account: bytes | None = None
        self._router: Router | None = None
        self._arrivals: Arrivals | None = None

    # the link's owner

    def attach(self, link: "Link") -> None:
        """The connection stands."""
        self.link = link
        self.outlet = Outlet(link, link.output)
        self.outlet.is_route = True
        self.cluster.route_opened(self)

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse what came, and write what it led to; then wait a moment when a client here is about to be cut off."""
        self.last_read = self.cluster.clock()
        router: Router | None = self._router
        if router is None:
            return self.parser.parse(buffer, 0, filled)
        router.begin_read()
        try:
            used = self.parser.parse(buffer, 0, filled)
        finally:
            router.end_read()
        if router.congested:
            self.cluster.hold_route(self, router.congested)
        return used

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self.parser.stopped = True
        if self.outlet is not None:
            self.outlet.closed = True
        self.cluster.route_lost(self)

    # what is written

    def send(self, data: bytes) -> None:
        """Write soon."""
        if self.link is not None and not self.link.closing:
            self.link.output.append(data)
            self.link.flush_soon()

    def ping(self, most: int, now: float) -> bool:
        """Ask for a sign of life; False when `most` are without one already."""
        if self.pings_out >= most:
            self.send(error_texts.encode_error(error_texts.STALE_CONNECTION))
            self.close()
            return False
        self.pings_out += 1
        self.pinged_at = now
        self.send(PING)
        return True

    def close(self) -> None:
        """End it, after what was sent."""
        self.parser.stopped = True
        if self.link is not None:
            self.link.resume_reading()  # it may wait for a verdict; the end of a link is read
            self.link.close()

    def go_on(self) -> None:
        """The verdict on CONNECT is there: parse on, if it let the peer in."""
        if self.parser.suspended and self.link is not None and not self.link.closing:
            self.parser.stopped = self.parser.suspended = False
            self.link.resume_reading()
            self.link.read_on()

    def register(self) -> None:
        """The peer is part of the cluster: what it has said of its interest counts, from now on at once."""
        self.registered = True
        early, self._early = self._early, []
        for interest in early:
            self.cluster.on_interest(self, interest)

    # ops

    def on_connect(self, json: bytes) -> cython.int:
        try:
            suspends: cython.bint = self.cluster.on_connect(self, decode_route_connect(json))
            return route_ops.SUSPEND if suspends else 0
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
        if self.registered or self.cluster.is_proved(self):
            self.send(PONG)
        return 0

    def on_pong(self) -> cython.int:
        if self.pings_out:
            self.round_trip = self.cluster.clock() - self.pinged_at
        self.pings_out = 0
        return 0

    def on_error(self, text: bytes) -> cython.int:
        self.cluster.on_error(self, text.decode("utf-8", "replace"))
        return 0

    def on_subscribe(self, subject: bytes, queue: bytes, token: bytes) -> cython.int:
        return self._hear_interest(Interest(b"", subject, queue, token, 1))

    def on_unsubscribe(self, token: bytes, maximum: cython.Py_ssize_t) -> cython.int:
        return self._hear_interest(Interest(b"", b"", b"", token, maximum))

    def on_interest(self, account: bytes, subject: bytes, queue: bytes, weight: cython.Py_ssize_t) -> cython.int:
        return self._hear_interest(Interest(account, subject, queue, b"", weight if queue else 1))

    def on_no_interest(self, account: bytes, subject: bytes, queue: bytes) -> cython.int:
        return self._hear_interest(Interest(account, subject, queue, b"", 0))

    def _hear_interest(self, interest: Interest) -> cython.int:
        if self.registered:
            self.cluster.on_interest(self, interest)
        elif self.cluster.is_proved(self):
            self._early.append(interest)
            if len(self._early) > MAX_EARLY:
                self.cluster.complain(self, RemoteProtocolError("too much interest before INFO"))
        return 0

    def on_message(self, buffer: bytearray, message: RouteMessage) -> cython.int:
        return self.on_message_run(buffer, message, 0, 1)

    def on_message_run(
        self, buffer: bytearray, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.int:
        if not self.registered:
            self.cluster.is_proved(self)
            return 0
        self.in_messages += count
        self.in_bytes += count * (message.end - message.headers)
        if message.account is not self._account and not self._find_account(message.account):
            return 0
        arrivals: Arrivals = cython.cast(Arrivals, self._arrivals)
        if message.token and message.token.startswith(b"QRSID:"):
            arrivals.deliver_to_member(buffer, message, stride, count)
        elif count == 1:
            arrivals.deliver(buffer, message)
        else:
            arrivals.deliver_run(buffer, message, stride, count)
        return 0

    def _find_account(self, account: bytes) -> cython.bint:
        """Whether messages of `account` go anywhere here."""
        space = self.cluster.find_space(account)
        if space is None:
            return False
        self._account = account
        self._router = space.router
        self._arrivals = space.arrivals
        return True

    def on_violation(self, violation: cython.int) -> cython.int:
        said = _SAID.get(violation)
        if said is not None:
            self.send(error_texts.encode_error(said))
        self.cluster.complain(self, RemoteProtocolError(said or "arguments that cannot be read"))
        return 1
