"""Messages that cross in series arrive as if each had crossed alone: what a client publishes, and what a peer sends."""

from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from support.fake_link import FakeLink, make_outlet
from support.forwarding_bench import Bench
from support.session_desk import PLAIN, Desk

from headwater.authorization.permissions import SubjectSet
from headwater.cluster.forwarding import Forwarding
from headwater.cluster.route import Route
from headwater.exchange.session import Session
from headwater.exchange.sides import RoutesSide
from headwater.exchange.sublist import Outlet, Subscription

PATTERNS = [b">", b"a.>", b"a.*", b"*.b", b"a.b", b"a.b.c", b"b", b"_INBOX.x.*", b"_INBOX.>", b"a.*.>", b"a.b.*"]
SUBJECTS = [
    b"a.b",
    b"a.c",
    b"a.b.c",
    b"a.b.d",
    b"a.b.c.d",
    b"b",
    b"d.b",
    b"a",
    b"a.",
    b"a..b",
    b"_INBOX.x.1",
    b"_INBOX.x.22",
]
REPLIES = [
    b"",
    b"",
    b"",
    b"r.1",
    b"r.22",
    b"_INBOX.x.9",
    b"_R_.1",
    b"$JS.ACK.s.c.1.2.3.4.5@a.b",
    b"7",
    b"| q",
    b"+ r q",
]
PAYLOADS = [b"", b"x", b"RMSG $G a.b 1\r\n", b"PUB a.b 1\r\n", b"z" * 90]
QUEUES = [b"", b"", b"", b"q"]
Sent = list[tuple[bytes, bytes, bytes, bool]]

sent_messages = st.lists(
    st.tuples(
        st.sampled_from(SUBJECTS), st.sampled_from(REPLIES), st.sampled_from(PAYLOADS), st.integers(0, 9).map(bool)
    ),
    max_size=40,
)
local_interest = st.lists(
    st.tuples(st.sampled_from(PATTERNS), st.sampled_from(QUEUES), st.sampled_from([0, 0, 0, 2])), max_size=4
)


def frames(messages: Sent) -> list[bytes]:
    """What a peer sends for them; a few have headers."""
    made = []
    for subject, reply, payload, bare in messages:
        words = b"$G " + subject + (b" " + reply if reply else b"")
        if bare:
            made.append(b"RMSG %b %d\r\n%b\r\n" % (words, len(payload), payload))
        else:
            made.append(b"HMSG %b 12 %d\r\nNATS/1.0\r\n\r\n%b\r\n" % (words, 12 + len(payload), payload))
    return made


class Arriving:
    """A route of a peer, and clients with this interest."""

    def __init__(self, interest: list[tuple[bytes, bytes, int]]) -> None:
        self.bench = Bench()
        self.subscriptions: list[Subscription] = []
        self.links: list[FakeLink] = []
        for number, (pattern, queue, maximum) in enumerate(interest):
            link, outlet = make_outlet()
            subscription = Subscription(pattern, queue, b"%d" % number, outlet)
            subscription.maximum = maximum
            self.bench.router.subscribe(subscription)
            self.subscriptions.append(subscription)
            self.links.append(link)
        space = SimpleNamespace(router=self.bench.router, arrivals=self.bench.arrivals)
        register = SimpleNamespace(
            clock=lambda: 1.0,
            route_opened=lambda route: None,
            find_space=lambda account: space,
            find_peer=lambda route: None,
        )
        self.route = Route(register, 1)
        self.route.attach(FakeLink())  # type: ignore[arg-type]
        self.route.registered = True

    def take(self, data: bytes) -> None:
        assert self.route.receive(bytearray(data), len(data)) == len(data)

    def outcome(self) -> list[object]:
        self.bench.router.flush()
        counts = [(each.delivered, cast(Outlet, each.outlet).out_bytes) for each in self.subscriptions]
        traffic = self.route.traffic
        return [*(link.take_flushed() for link in self.links), counts, traffic.messages, traffic.bytes]


@given(local_interest, sent_messages, st.integers(1, 8))
def test_frames_that_arrive_together_are_delivered_as_if_each_had_arrived_alone(
    interest: list[tuple[bytes, bytes, int]], messages: Sent, times: int
) -> None:
    together, alone = Arriving(interest), Arriving(interest)
    sent = frames([message for message in messages for _ in range(times)])
    together.take(b"".join(sent))
    for frame in sent:
        alone.take(frame)
    assert together.outcome() == alone.outcome()


class Crossing:
    """A client that publishes, one that listens, and two peers with interest."""

    def __init__(
        self, here: list[tuple[bytes, bytes, int]], there: list[tuple[int, bytes, bytes]], denied: bool
    ) -> None:
        self.desk = Desk(max_payload=80)
        self.forwarding = Forwarding(b"$G", 11)
        self.desk.router.join(self.forwarding, cast(RoutesSide, Bench()))
        self.forwarding.withheld = SubjectSet([b"a.c"]) if denied else None
        self.clients: list[tuple[Session, FakeLink]] = [self.desk.connect(PLAIN), self.desk.connect(PLAIN)]
        for sid, (pattern, queue, maximum) in enumerate(here):
            # No group has two members here: the router chooses by a seed of its own.
            group = queue + b"%d " % sid if queue and sid else queue and queue + b" "
            text = b"SUB %b %b%d\r\n" % (pattern, group, sid)
            self.desk.feed(self.clients[sid % 2][0], text + (b"UNSUB %d %d\r\n" % (sid, maximum) if maximum else b""))
        self.peers = []
        for _ in range(2):
            link, outlet = make_outlet()
            self.forwarding.add_peer(outlet, False)
            self.peers.append((link, outlet))
        for which, pattern, queue in there:
            self.forwarding.want(self.peers[which][1], pattern, queue, 1)

    def outcome(self) -> list[object]:
        self.desk.router.flush()
        clients = [
            (link.take_flushed(), session.traffic.messages, session.traffic.bytes) for session, link in self.clients
        ]
        peers = [(link.take_flushed(), outlet.out_messages, outlet.out_bytes) for link, outlet in self.peers]
        return [*clients, *peers]


@given(
    local_interest,
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from(PATTERNS), st.sampled_from(QUEUES)), max_size=4),
    sent_messages,
    st.integers(1, 8),
    st.booleans(),
)
def test_publishes_that_arrive_together_cross_as_if_each_had_arrived_alone(
    here: list[tuple[bytes, bytes, int]],
    there: list[tuple[int, bytes, bytes]],
    messages: Sent,
    times: int,
    denied: bool,
) -> None:
    sent = []
    for subject, reply, payload, bare in messages:
        words = subject + (b" " + reply if reply and b" " not in reply else b"")
        if bare:
            op = b"PUB %b %d\r\n%b\r\n" % (words, len(payload[:70]), payload[:70])
        else:
            op = b"HPUB %b 12 12\r\nNATS/1.0\r\n\r\n\r\n" % words
        sent += [op] * times
    together, alone = Crossing(here, there, denied), Crossing(here, there, denied)
    together.desk.feed(together.clients[0][0], b"".join(sent))
    for op in sent:
        alone.desk.feed(alone.clients[0][0], op)
    assert together.outcome() == alone.outcome()


def test_subjects_under_one_wildcard_cross_with_one_look_at_the_interest() -> None:
    crossing = Crossing([], [(0, b"n.*", b"")], False)
    sent = [b"PUB n.%d %br.%d 2\r\nhi\r\n" % (number, b"", number) for number in range(600)]
    crossing.desk.feed(crossing.clients[0][0], b"".join(sent))
    crossing.desk.router.flush()
    expected = b"".join(b"RMSG $G n.%d r.%d 2\r\nhi\r\n" % (number, number) for number in range(600))
    (link, outlet), (other, _) = crossing.peers
    assert link.take_flushed() == expected
    assert (outlet.out_messages, outlet.out_bytes, other.take_flushed()) == (600, 1200, b"")


def test_interest_that_one_of_the_subjects_has_here_keeps_the_others_apart() -> None:
    crossing = Crossing([(b"n.7", b"", 0)], [(0, b"n.*", b"")], False)
    sent = b"".join(b"PUB n.%d %d\r\n%b\r\n" % (number, number, b"x" * number) for number in range(20))
    crossing.desk.feed(crossing.clients[0][0], sent)
    crossing.desk.router.flush()
    assert crossing.clients[0][1].take_flushed() == b"MSG n.7 0 7\r\nxxxxxxx\r\n"
    assert crossing.peers[0][0].take_flushed().count(b"RMSG $G n.") == 20


def test_a_table_knows_what_none_of_its_subscriptions_can_match() -> None:
    bench = Bench()
    reaches = bench.router.sublist.reaches
    assert not reaches(b"a.")
    bench.client(b"a.*.c")
    assert reaches(b"a.")
    assert reaches(b"a.x.")
    assert not reaches(b"a.x.c.d.")
    assert not reaches(b"b.")
    bench.client(b"b.>")
    assert reaches(b"b.")
    assert reaches(b"b.x.y.")
