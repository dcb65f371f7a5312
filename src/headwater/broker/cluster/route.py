"""One connection to another broker, made or accepted: reads its ops and hands them on, pings it always.

Documents go to the mesh, interest and messages to the account's forwarding. A peer is pinged whatever else it says: a
route that swallows what we send, while it goes on talking, is found out only so (gnatsd 1.4.1 does not, and loses all
that it sends meanwhile). Nothing is decided here.
"""

from typing import TYPE_CHECKING

from headwater.broker.sublist import Outlet
from headwater.errors import RemoteProtocolError
from headwater.wire import error_texts, route_ops
from headwater.wire.route_lines import PING, PONG, decode_route_connect, decode_route_info
from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser

if TYPE_CHECKING:
    from headwater.broker.cluster.service import Cluster
    from headwater.net.link import Link

_SAID = {
    route_ops.UNKNOWN_OPERATION: error_texts.UNKNOWN_OPERATION,
    route_ops.CONTROL_LINE_TOO_LONG: error_texts.CONTROL_LINE_TOO_LONG,
    route_ops.PAYLOAD_TOO_LARGE: error_texts.MAXIMUM_PAYLOAD,
}


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
        self.in_messages = 0
        self.in_bytes = 0

    # the link's owner

    def attach(self, link: "Link") -> None:
        """The connection stands."""
        self.link = link
        self.outlet = Outlet(link, link.output)
        self.cluster.route_opened(self)

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Parse what came."""
        return self.parser.parse(buffer, 0, filled)

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
            self.link.close()

    # ops

    def on_connect(self, json: bytes) -> int:
        try:
            self.cluster.on_connect(self, decode_route_connect(json))
        except RemoteProtocolError as error:
            self.cluster.complain(self, error)
        return 0

    def on_info(self, json: bytes) -> int:
        try:
            self.cluster.on_info(self, decode_route_info(json))
        except RemoteProtocolError as error:
            self.cluster.complain(self, error)
        return 0

    def on_ping(self) -> int:
        self.send(PONG)
        return 0

    def on_pong(self) -> int:
        if self.pings_out:
            self.round_trip = self.cluster.clock() - self.pinged_at
        self.pings_out = 0
        return 0

    def on_error(self, text: bytes) -> int:
        self.cluster.on_error(self, text.decode("utf-8", "replace"))
        return 0

    def on_subscribe(self, subject: bytes, queue: bytes, token: bytes) -> int:
        self.cluster.on_subscribe(self, subject, queue, token)
        return 0

    def on_unsubscribe(self, token: bytes, maximum: int) -> int:
        self.cluster.on_unsubscribe(self, token, maximum)
        return 0

    def on_interest(self, account: bytes, subject: bytes, queue: bytes, weight: int) -> int:
        self.cluster.on_interest(self, account, subject, queue, weight if queue else 1)
        return 0

    def on_no_interest(self, account: bytes, subject: bytes, queue: bytes) -> int:
        self.cluster.on_interest(self, account, subject, queue, 0)
        return 0

    def on_message(self, buffer: bytearray, message: RouteMessage) -> int:
        self.in_messages += 1
        self.in_bytes += message.end - message.headers
        self.cluster.on_message(self, buffer, message)
        return 0

    def on_violation(self, violation: int) -> int:
        said = _SAID.get(violation)
        if said is not None:
            self.send(error_texts.encode_error(said))
        self.cluster.complain(self, RemoteProtocolError(said or "arguments that cannot be read"))
        return 1
