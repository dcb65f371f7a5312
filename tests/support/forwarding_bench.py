"""The cluster's side of one account for tests: the router is real, links are not."""

from support.fake_link import FakeLink, make_outlet

from headwater.cluster.arrivals import Arrivals
from headwater.cluster.forwarding import Forwarding
from headwater.exchange.router import Router
from headwater.exchange.sublist import Outlet, Subscription
from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
from headwater.wire.message_view import MessageView
from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser

BLOCK = b"NATS/1.0\r\nA: 1\r\n\r\n"
MEMBERS = {b"QRSID:1:1": b"wkrs"}  # v1's token of a member here, and its group


def peers_want(forwarding: Forwarding) -> list[tuple[bytes, bytes, int]]:
    """All announced (subject, queue, number), sorted; the number counts members of a group, peers otherwise."""
    members: dict[tuple[bytes, bytes], int] = {}
    peers: dict[tuple[bytes, bytes], set[Outlet]] = {}
    for outlet, _, subject, queue, count in forwarding.entries():
        members[subject, queue] = members.get((subject, queue), 0) + count
        peers.setdefault((subject, queue), set()).add(outlet)
    return sorted((*key, count if key[1] else len(peers[key])) for key, count in members.items())


class Bench:
    """A router in a cluster, its clients and its peers."""

    def __init__(self) -> None:
        self.scheduled: list[object] = []
        self.router = Router(self.scheduled.append, 7)
        self.left: set[bytes] = set()  # groups of which a member has left
        self.forwarding = Forwarding(b"$G", 11)
        self.arrivals = Arrivals(self.router, self.forwarding, self.left.__contains__, MEMBERS.get)
        self.router.join(self.forwarding, self)

    def subscribed(self, subscription: Subscription) -> None:
        """The cluster's observer, which these tests do not need."""

    unsubscribed = subscribed

    def leafs_want(self, origin: bytes, subject: bytes, queue: bytes, change: int) -> None:
        """The same for the interest of leaf nodes."""

    def peers_wanted(self) -> list[tuple[Outlet, bytes, bytes, bytes, int]]:
        return self.forwarding.entries()

    def peer(
        self, in_v1: bool = False, headers: bool = True, ours: bool = False, knows_leafs: bool = False
    ) -> tuple[FakeLink, Outlet]:
        link, outlet = make_outlet(headers=headers and not in_v1)
        self.forwarding.add_peer(outlet, in_v1, ours, knows_leafs)
        return link, outlet

    def client(self, subject: bytes, queue: bytes = b"") -> FakeLink:
        link, outlet = make_outlet()
        self.router.subscribe(Subscription(subject, queue, b"1", outlet))
        return link

    def publish(self, subject: bytes, reply: bytes = b"", block: bytes = b"", payload: bytes = b"hi") -> int:
        deliveries = self.router.publish(subject, reply, block, payload)
        self.router.flush()
        return deliveries


class Delivering(RouteOpHandler):
    """What a route does with messages."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def on_message(self, message: RouteMessage) -> int:
        if message.token.startswith(b"QRSID:"):
            return self.on_message_run(message, 0, 1)
        self.bench.arrivals.deliver(message)
        return 0

    def on_message_run(self, message: RouteMessage, stride: int, count: int) -> int:
        if message.token.startswith(b"QRSID:"):
            self.bench.arrivals.deliver_to_member(message, stride, count)
        else:
            self.bench.arrivals.deliver_run(message, stride, count)
        return 0


def arrive(bench: Bench, frame: bytes) -> None:
    """A peer sends `frame`."""
    RouteOpParser(Delivering(bench)).parse(bytearray(frame), 0, len(frame))
    bench.router.flush()


class Publishing(ClientOpHandler):
    """What a session does with PUB, as far as routes are concerned."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def on_publish(self, message: MessageView) -> int:
        router = self.bench.router
        match = router.sublist.find(message.buffer, message.subject, message.subject_end)
        router.route(None, match, message)
        return 0

    def on_publish_run(self, message: MessageView, stride: int, count: int) -> int:
        router = self.bench.router
        match = router.sublist.find(message.buffer, message.subject, message.subject_end)
        router.route_run(None, match, message, stride, count)
        return 0


def forward(bench: Bench, pieces: list[bytes]) -> None:
    """A client publishes `pieces`, one read each."""
    parser = ClientOpParser(Publishing(bench), 4096, 1 << 20)
    for piece in pieces:
        assert parser.parse(bytearray(piece), 0, len(piece)) == len(piece)
    bench.router.flush()
