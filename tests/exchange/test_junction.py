"""Which peers, leaf nodes and hubs get a message or an announcement of interest; the router is real, links are not."""

from collections import Counter

import pytest
from support.fake_link import FakeLink, make_outlet
from support.forwarding_bench import Bench, arrive

from headwater.exchange.junction import junction_of, meet
from headwater.exchange.router import Router
from headwater.exchange.sublist import Outlet, Subscription
from headwater.leaf.forwarding import LeafForwarding, LeafTarget
from headwater.leaf.permissions import Crossing
from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
from headwater.wire.message_view import MessageView, composed

Known = tuple[object, bytes, bytes, bytes, int]


class Announced:
    """The leaf nodes' side: records announcements."""

    def __init__(self) -> None:
        self.forwarding = LeafForwarding(1)
        self.received: list[Known] = []
        self.before: list[tuple[bytes, bytes, bytes, int]] = []

    def subscribed(self, subscription: Subscription) -> None:
        """Interest here, which these tests do not need."""

    unsubscribed = subscribed

    def peer_wants(self, peer: Outlet, origin: bytes, subject: bytes, queue: bytes, weight: int) -> None:
        self.received.append((peer, origin, subject, queue, weight))

    def peer_left(self, peer: Outlet) -> None:
        self.received.append((peer, b"", b"", b"", 0))

    def leafs_wanted(self) -> list[tuple[bytes, bytes, bytes, int]]:
        return self.before


class Crossroads(Bench):
    """A node of a cluster with a peer, two spokes of different clusters and a hub; each has interest in `foo`."""

    def __init__(self, groups: str = "", subject: bytes = b"foo") -> None:
        super().__init__()
        self.leafs = LeafForwarding(3)
        self.reported = Announced()
        self.wanted: list[tuple[bytes, bytes, bytes, int]] = []
        self.reported.forwarding = self.leafs
        self.router.join_leafs(self.leafs, self.reported)
        meet(self.router)
        self.links: dict[str, FakeLink] = {}
        self.targets: dict[str, LeafTarget] = {}
        for name, cluster in (("spoke a", b"a"), ("spoke b", b"b"), ("hub", b"")):
            link, outlet = make_outlet(headers=True)
            target = LeafTarget(outlet, Crossing(()), cluster, is_hub=name == "hub")
            self.leafs.add(target)
            self.leafs.want(outlet, subject, b"q" if name in groups else b"", 1)
            self.links[name], self.targets[name] = link, target
        self.links["peer"], self.at_peer = self.peer(knows_leafs=True)
        self.forwarding.want(self.at_peer, subject, b"q" if "peer" in groups else b"", 1)

    def leafs_want(self, origin: bytes, subject: bytes, queue: bytes, change: int) -> None:
        self.wanted.append((origin, subject, queue, change))

    def received(self) -> dict[str, bytes]:
        """Remove and return the messages that each got."""
        self.router.flush()
        return {name: flushed for name, link in self.links.items() if (flushed := link.take_flushed())}

    def from_leaf(self, name: str, queues: list[bytes]) -> None:
        message = composed(b"foo", b"", b"", b"hi")
        match = self.router.sublist.match(b"foo")
        junction = junction_of(self.router)
        assert junction is not None
        origin = self.targets[name].cluster
        junction.from_leaf(self.router, self.targets[name], origin, match, queues, message)


LMSG = b"LMSG foo 2\r\nhi\r\n"


def test_a_clients_message_goes_to_all() -> None:
    bench = Crossroads()
    assert bench.publish(b"foo") == 4
    assert bench.received() == {"spoke a": LMSG, "spoke b": LMSG, "hub": LMSG, "peer": b"RMSG $G foo 2\r\nhi\r\n"}


def test_a_peers_message_goes_to_spokes_of_other_clusters() -> None:
    bench = Crossroads()
    arrive(bench, b"RMSG $G foo 2\r\nhi\r\n")
    assert bench.received() == {"spoke a": LMSG, "spoke b": LMSG}
    arrive(bench, b"LMSG b $G foo 0 2\r\nhi\r\n")
    assert bench.received() == {"spoke a": LMSG}


def test_a_spokes_message_goes_to_peers_with_its_cluster_and_to_the_others() -> None:
    bench = Crossroads()
    bench.from_leaf("spoke a", [])
    assert bench.received() == {"spoke b": LMSG, "hub": LMSG, "peer": b"LMSG a $G foo 0 2\r\nhi\r\n"}


def test_a_hubs_message_does_not_go_to_peers() -> None:
    bench = Crossroads()
    bench.from_leaf("hub", [])
    assert bench.received() == {"spoke a": LMSG, "spoke b": LMSG}


def test_an_answer_that_crosses_accounts_at_a_peer_goes_to_a_hub_too() -> None:
    bench = Crossroads(subject=b"_R_.*")
    arrive(bench, b"RMSG $G _R_.x 2\r\nhi\r\n")
    assert set(bench.received()) == {"spoke a", "spoke b", "hub"}


def test_messages_of_the_leaf_nodes_that_want_them_at_a_peer_are_not_sent_back_there() -> None:
    bench = Crossroads()
    bench.forwarding.want(bench.at_peer, b"foo", b"", 0)
    bench.forwarding.want(bench.at_peer, b"foo", b"", 1, b"a")
    bench.from_leaf("spoke a", [])
    assert set(bench.received()) == {"spoke b", "hub"}
    bench.from_leaf("spoke b", [])
    assert set(bench.received()) == {"spoke a", "hub", "peer"}


def test_members_in_the_cluster_come_before_leaf_nodes() -> None:
    bench = Crossroads("spoke a, spoke b, hub, peer")
    for _ in range(20):
        bench.publish(b"foo")
        assert bench.received() == {"peer": b"RMSG $G foo | q 2\r\nhi\r\n"}
        bench.from_leaf("spoke a", [b"q"])
        assert bench.received() == {"peer": b"LMSG a $G foo | q 0 2\r\nhi\r\n"}
    here = bench.client(b"foo", b"q")
    arrive(bench, b"RMSG $G foo | q 2\r\nhi\r\n")
    assert here.take_flushed()
    assert not bench.received()


def test_a_group_at_leaf_nodes_alone_gets_each_message_once_wherever_they_are() -> None:
    bench = Crossroads("spoke a, spoke b, hub")
    bench.forwarding.want(bench.at_peer, b"foo", b"", 0)
    bench.forwarding.want(bench.at_peer, b"foo", b"q", 2, b"c")
    chosen: Counter[str] = Counter()
    for _ in range(200):
        bench.publish(b"foo")
        ((name, frame),) = bench.received().items()
        assert b" | q " in frame
        chosen[name] += 1
    assert set(chosen) == {"spoke a", "spoke b", "hub", "peer"}
    assert chosen["peer"] > chosen["hub"], "it has two members"


def test_a_group_of_a_peers_frame_is_served_by_a_leaf_node_where_no_member_is_left() -> None:
    bench = Crossroads("spoke a")
    bench.leafs.want(bench.targets["spoke b"].outlet, b"foo", b"", 0)
    arrive(bench, b"RMSG $G foo | q 2\r\nhi\r\n")
    assert bench.received() == {"spoke a": b"LMSG foo | q 2\r\nhi\r\n"}
    assert bench.arrivals.groups_missed == 0
    arrive(bench, b"LMSG a $G foo | q 0 2\r\nhi\r\n")
    assert not bench.received(), "it came from there"
    assert bench.arrivals.groups_missed == 1


@pytest.mark.parametrize("groups", ["", "spoke a", "peer"])
def test_a_run_comes_as_its_messages_one_by_one(groups: str) -> None:
    frames = b"RMSG $G foo 2\r\nhi\r\n" * 3
    whole, alone = Crossroads(groups), Crossroads(groups)
    arrive(whole, frames)
    for _ in range(3):
        arrive(alone, b"RMSG $G foo 2\r\nhi\r\n")
    assert whole.received() == alone.received()


def test_new_and_existing_interest_is_announced_across() -> None:
    bench = Crossroads()
    junction = junction_of(bench.router)
    assert junction is not None
    junction.peer_wants(bench.at_peer, b"", b"x", b"", 1)
    junction.peer_left(bench.at_peer)
    assert bench.reported.received == [(bench.at_peer, b"", b"x", b"", 1), (bench.at_peer, b"", b"", b"", 0)]
    junction.leafs_want(b"a", b"y", b"", 1)
    assert bench.wanted == [(b"a", b"y", b"", 1)]
    again, later, side = Router(bench.scheduled.append, 7), Announced(), Crossroads()
    later.before = [(b"a", b"z", b"q", 2)]
    side.forwarding.want(side.at_peer, b"w", b"g", 3, b"b")
    again.join_leafs(later.forwarding, later)
    again.join(side.forwarding, side)
    meet(again)
    assert side.wanted == later.before
    assert (side.at_peer, b"b", b"w", b"g", 3) in later.received


def test_interest_anywhere_counts() -> None:
    bench = Crossroads()
    assert bench.router.has_interest(b"foo")
    assert not bench.router.has_interest(b"bar")
    bench.forwarding.want(bench.at_peer, b"bar", b"q", 1, b"c")
    assert bench.router.has_interest(b"bar")


def test_a_delivery_of_a_stream_bears_its_subject_behind_the_acknowledgement() -> None:
    bench, ack = Crossroads(), b"$JS.ACK.s.c.1.2.3.4.5"
    message = composed(b"orders.eu", ack, b"", b"hi")
    assert bench.router.route_under(b"foo", bench.router.sublist.match(b"foo"), message) == 4
    shown = ack + b"@orders.eu 2\r\nhi\r\n"
    leaf = b"LMSG foo " + shown
    assert bench.received() == {"spoke a": leaf, "spoke b": leaf, "hub": leaf, "peer": b"RMSG $G foo " + shown}


def test_a_spokes_message_goes_to_a_peer_of_the_first_dialect_as_well() -> None:
    bench = Crossroads()
    bench.links["old"], old = bench.peer(in_v1=True)
    bench.forwarding.want_one(old, b"foo", b"", b"RSID:4:9")
    bench.from_leaf("spoke a", [])
    assert bench.received()["old"] == b"MSG foo RSID:4:9 2\r\nhi\r\n"


def test_many_messages_of_a_spoke_go_to_peers_with_its_cluster() -> None:
    bench = Crossroads()
    junction = junction_of(bench.router)

    class Spoke(ClientOpHandler):
        def on_publish_run(self, message: MessageView, stride: int, count: int) -> int:
            source = bench.targets["spoke a"]
            assert junction is not None
            assert junction.spread_run(bench.router, source, b"a", message, stride, count) == 3
            return 0

    read = 3 * b"PUB foo 2\r\nhi\r\n"
    assert ClientOpParser(Spoke(), 4096, 1 << 20).parse(bytearray(read), 0, len(read)) == len(read)
    assert bench.received() == {"spoke b": 3 * LMSG, "hub": 3 * LMSG, "peer": 3 * b"LMSG a $G foo 0 2\r\nhi\r\n"}
