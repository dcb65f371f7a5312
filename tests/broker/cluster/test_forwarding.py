"""Frames to peers, and what a peer's frame reaches here; the router is real, links are not."""

from collections import Counter

import pytest
from support.fake_link import FakeLink, make_outlet

from headwater.broker.cluster.arrivals import Arrivals
from headwater.broker.cluster.forwarding import Forwarding
from headwater.broker.cluster.frames import PASSED_ON
from headwater.broker.router import Router
from headwater.broker.sublist import Outlet, Subscription
from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
from headwater.wire.route_ops import RouteMessage, RouteOpHandler, RouteOpParser

BLOCK = b"NATS/1.0\r\nA: 1\r\n\r\n"


class Bench:
    """A router in a cluster, its clients and its peers."""

    def __init__(self) -> None:
        self.scheduled: list[object] = []
        self.router = Router(self.scheduled.append, 7)
        self.left: set[bytes] = set()  # groups of which a member has left
        self.forwarding = Forwarding(b"$G", 11)
        self.arrivals = Arrivals(self.router, self.forwarding, self.left.__contains__)
        self.router.join(self.forwarding, self)

    def subscribed(self, subscription: Subscription) -> None:
        """The cluster's observer, which these tests do not need."""

    unsubscribed = subscribed

    def peer(self, in_v1: bool = False, headers: bool = True, ours: bool = False) -> tuple[FakeLink, Outlet]:
        link, outlet = make_outlet(headers=headers and not in_v1)
        self.forwarding.add_peer(outlet, in_v1, ours)
        return link, outlet

    def client(self, subject: bytes, queue: bytes = b"") -> FakeLink:
        link, outlet = make_outlet()
        self.router.subscribe(Subscription(subject, queue, b"1", outlet))
        return link

    def publish(self, subject: bytes, reply: bytes = b"", block: bytes = b"", payload: bytes = b"hi") -> int:
        deliveries = self.router.publish(subject, reply, block, payload)
        self.router.flush()
        return deliveries


def test_peer_gets_one_copy_however_many_of_its_subjects_match() -> None:
    bench = Bench()
    link, peer = bench.peer()
    for subject in (b"foo.bar", b"foo.*", b">"):
        bench.forwarding.want(peer, subject, b"", 1)
    assert bench.publish(b"foo.bar", b"answer") == 1
    assert link.said() == b"RMSG $G foo.bar answer 2\r\nhi\r\n"


def test_headers_travel_to_peers_that_take_them_and_are_counted_where_not() -> None:
    bench = Bench()
    modern, plain, old = bench.peer(), bench.peer(headers=False), bench.peer(in_v1=True)
    bench.forwarding.want(modern[1], b"foo", b"", 1)
    bench.forwarding.want(plain[1], b"foo", b"", 1)
    bench.forwarding.want_one(old[1], b"foo", b"", b"RSID:4:9")
    assert bench.publish(b"foo", b"answer", BLOCK) == 3
    assert modern[0].said() == b"HMSG $G foo answer 18 20\r\n" + BLOCK + b"hi\r\n"
    assert plain[0].said() == b"RMSG $G foo answer 2\r\nhi\r\n"
    assert old[0].said() == b"MSG foo RSID:4:9 answer 2\r\nhi\r\n"
    assert bench.forwarding.headers_dropped == 2


@pytest.mark.parametrize("in_v1", [False, True])
def test_one_member_of_a_group_in_the_whole_cluster_gets_each_message(in_v1: bool) -> None:
    bench = Bench()
    here = bench.client(b"work", b"wkrs")
    links = [here]
    for number in range(2):
        link, peer = bench.peer(in_v1)
        links.append(link)
        if in_v1:
            bench.forwarding.want_one(peer, b"work", b"wkrs", b"QRSID:%d:1" % number)
        else:
            bench.forwarding.want(peer, b"work", b"wkrs", 1)
    got: Counter[int] = Counter()
    for _ in range(300):
        assert bench.publish(b"work") == 1
        said = [at for at, link in enumerate(links) if link.said()]
        assert len(said) == 1
        got.update(said)
    assert min(got[at] for at in range(3)) > 60  # a fair choice gives 100 each, one in a million runs less than 60


def test_weight_makes_a_peer_as_likely_as_its_members() -> None:
    bench = Bench()
    here = bench.client(b"work", b"wkrs")
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"work", b"wkrs", 3)
    ours = 0
    for _ in range(400):
        bench.publish(b"work")
        ours += bool(here.said())
        link.said()
    assert 60 < ours < 140
    bench.forwarding.want(peer, b"work", b"wkrs", 0)
    bench.publish(b"work")
    assert here.said()


def test_plain_interest_and_groups_of_a_v2_peer_share_a_frame_and_of_a_v1_peer_do_not() -> None:
    bench = Bench()
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"work", b"", 1)
    bench.forwarding.want(peer, b"work", b"a", 1)
    bench.forwarding.want(peer, b"*", b"b", 1)
    old_link, old = bench.peer(in_v1=True)
    bench.forwarding.want_one(old, b"work", b"", b"RSID:1:1")
    bench.forwarding.want_one(old, b"work", b"c", b"QRSID:1:2")
    bench.publish(b"work")
    assert link.said() in (b"RMSG $G work | a b 2\r\nhi\r\n", b"RMSG $G work | b a 2\r\nhi\r\n")
    assert old_link.said() == b"MSG work RSID:1:1 2\r\nhi\r\nMSG work QRSID:1:2 2\r\nhi\r\n"
    bench.publish(b"work", b"answer", BLOCK)
    assert link.said().startswith((b"HMSG $G work + answer a b 18 20\r\n", b"HMSG $G work + answer b a 18 20\r\n"))


def test_lost_peer_takes_its_interest_with_it() -> None:
    bench = Bench()
    _, peer = bench.peer()
    bench.forwarding.want(peer, b"foo", b"", 1)
    bench.forwarding.want(peer, b"foo", b"q", 2)
    assert bench.router.has_interest(b"foo")
    bench.forwarding.drop_peer(peer)
    assert not bench.router.has_interest(b"foo")
    assert bench.publish(b"foo") == 0
    bench.forwarding.want(peer, b"foo", b"", 1)  # what was still on the way
    assert bench.forwarding.peers_want() == []


def test_v1_unsub_with_a_maximum_counts_what_was_sent_since_sub() -> None:
    bench = Bench()
    link, peer = bench.peer(in_v1=True)
    bench.forwarding.want_one(peer, b"foo", b"", b"RSID:1:5")
    bench.forwarding.want_one(peer, b"bar", b"", b"RSID:1:5")  # a token in use is left alone
    bench.publish(b"foo")
    bench.forwarding.limit_one(peer, b"RSID:1:5", 3)
    assert [bench.publish(b"foo") for _ in range(4)] == [1, 1, 0, 0]
    assert link.said().count(b"MSG") == 3
    bench.forwarding.want_one(peer, b"foo", b"", b"RSID:1:6")
    bench.forwarding.limit_one(peer, b"RSID:1:6", 0)
    assert bench.publish(b"foo") == 0


class Delivering(RouteOpHandler):
    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def on_message(self, buffer: bytearray, message: RouteMessage) -> int:
        if message.token.startswith(b"Q"):
            again = message.token.endswith(PASSED_ON)
            self.bench.arrivals.deliver_to_queue(buffer, message, b"wkrs", again)
        else:
            self.bench.arrivals.deliver(buffer, message)
        return 0

    def on_message_run(self, buffer: bytearray, message: RouteMessage, stride: int, count: int) -> int:
        self.bench.arrivals.deliver_run(buffer, message, stride, count)
        return 0


def arrive(bench: Bench, frame: bytes) -> None:
    RouteOpParser(Delivering(bench)).parse(bytearray(frame), 0, len(frame))
    bench.router.flush()


def test_what_came_over_a_route_never_leaves_over_one() -> None:
    bench = Bench()
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"foo", b"", 1)
    bench.forwarding.want(peer, b"foo", b"wkrs", 1)
    here = bench.client(b"foo")
    arrive(bench, b"RMSG $G foo | wkrs 2\r\nhi\r\n")
    assert here.said() == b"MSG foo 1 2\r\nhi\r\n"
    assert link.said() == b""
    assert bench.arrivals.groups_missed == 1


def test_frame_reaches_plain_subscriptions_and_the_groups_it_names() -> None:
    bench = Bench()
    plain, named, other = bench.client(b"*"), bench.client(b"foo", b"a"), bench.client(b"foo", b"b")
    arrive(bench, b"HMSG $G foo + answer a 18 20\r\n" + BLOCK + b"hi\r\n")
    assert plain.said() == b"HMSG foo 1 answer 18 20\r\n" + BLOCK + b"hi\r\n"
    assert named.said() == b"HMSG foo 1 answer 18 20\r\n" + BLOCK + b"hi\r\n"
    assert other.said() == b""


def test_frame_without_a_list_reaches_no_group() -> None:
    bench = Bench()
    plain, member = bench.client(b"foo"), bench.client(b"foo", b"a")
    arrive(bench, b"RMSG $G foo 2\r\nhi\r\n")
    assert plain.said() and not member.said()


def test_v1_message_for_a_member_reaches_its_group_alone_and_only_on_its_subject() -> None:
    bench = Bench()
    plain, member = bench.client(b"work"), bench.client(b"work", b"wkrs")
    arrive(bench, b"MSG work QRSID:1:1 2\r\nhi\r\nMSG other QRSID:1:1 2\r\nhi\r\n")
    assert member.said() == b"MSG work 1 2\r\nhi\r\n"
    assert plain.said() == b""
    assert bench.arrivals.groups_missed == 1


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("in_v1", [False, True])
def test_message_for_a_group_whose_member_has_left_goes_to_a_member_elsewhere_once(in_v1: bool, ours: bool) -> None:
    bench = Bench()
    bench.left.add(b"wkrs")
    link, peer = bench.peer(in_v1, ours=ours)
    if in_v1:
        bench.forwarding.want_one(peer, b"work", b"wkrs", b"QRSID:7:1")
        arrive(bench, b"MSG work QRSID:1:1 answer 2\r\nhi\r\n")
        token = b"QRSID:7:1:2" if ours else b"QRSID:7:1"
        assert link.said() == b"MSG work " + token + b" answer 2\r\nhi\r\n"
        again = b"MSG work QRSID:1:1:2 2\r\nhi\r\n"
    else:
        bench.forwarding.want(peer, b"*", b"wkrs", 2)
        arrive(bench, b"HMSG $G work + answer wkrs 18 20\r\n" + BLOCK + b"hi\r\n")
        groups = b"wkrs wkrs" if ours else b"wkrs"
        assert link.said() == b"HMSG $G work + answer " + groups + b" 18 20\r\n" + BLOCK + b"hi\r\n"
        again = b"RMSG $G work | wkrs wkrs 2\r\nhi\r\n"
    assert (bench.arrivals.passed_on, bench.arrivals.groups_missed) == (1, 0)
    arrive(bench, again)  # it was passed on to us: it ends here, whoever else there may be
    assert link.said() == b""
    assert (bench.arrivals.passed_on, bench.arrivals.groups_missed) == (1, 1)


def test_what_was_passed_on_reaches_the_group_and_no_plain_subscription_again() -> None:
    bench = Bench()
    plain, member = bench.client(b"work"), bench.client(b"work", b"wkrs")
    arrive(bench, b"RMSG $G work | wkrs wkrs 2\r\nhi\r\n")
    assert member.said() == b"MSG work 1 2\r\nhi\r\n"
    assert plain.said() == b""


def test_nothing_is_passed_on_that_never_was_here_or_that_a_real_server_would_also_deliver_twice() -> None:
    bench = Bench()
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"work", b"wkrs", 1)
    arrive(bench, b"RMSG $G work | wkrs 2\r\nhi\r\n")  # no member has left: this is no accident of timing
    bench.left.add(b"wkrs")
    bench.forwarding.want(peer, b"work", b"", 1)
    arrive(bench, b"RMSG $G work | wkrs 2\r\nhi\r\n")  # its plain subscriptions have had the message
    assert link.said() == b""
    assert bench.arrivals.groups_missed == 2


class Publishing(ClientOpHandler):
    """What a session does with PUB, as far as routes are concerned."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def on_publish(
        self,
        buffer: bytearray,
        subject: int,
        subject_end: int,
        reply: int,
        reply_end: int,
        tail: int,
        headers: int,
        payload: int,
        end: int,
    ) -> int:
        router = self.bench.router
        match = router.sublist.find(buffer, subject, subject_end)
        router.route(None, match, True, buffer, subject, subject_end, reply, reply_end, tail, headers, payload, end)
        return 0

    def on_publish_run(
        self,
        buffer: bytearray,
        subject: int,
        subject_end: int,
        reply: int,
        reply_end: int,
        tail: int,
        headers: int,
        payload: int,
        end: int,
        stride: int,
        count: int,
    ) -> int:
        router = self.bench.router
        match = router.sublist.find(buffer, subject, subject_end)
        at = (subject, subject_end, reply, reply_end, tail, headers, payload, end)
        router.route_run(None, match, buffer, *at, stride, count)
        return 0


@pytest.mark.parametrize("block", [b"", BLOCK])
@pytest.mark.parametrize("queue", [b"", b"wkrs"])
def test_run_of_messages_is_forwarded_as_the_same_messages_one_by_one(block: bytes, queue: bytes) -> None:
    """To a v2 peer, one without headers, a v1 peer, one whose subscription ends in the middle, and a client here."""
    head = b"HPUB foo %d %d\r\n" % (len(block), len(block) + 2) if block else b"PUB foo 2\r\n"
    ops = [head + block + b"%02d\r\n" % number for number in range(12)]
    heard: list[list[bytes]] = []
    for pieces in ([b"".join(ops)], ops):
        bench = Bench()
        links = [bench.client(b"foo")]
        for in_v1, headers, maximum in ((False, True, 0), (False, False, 0), (True, True, 0), (True, True, 5)):
            link, peer = bench.peer(in_v1, headers)
            links.append(link)
            if in_v1:
                bench.forwarding.want_one(peer, b"foo", b"", b"RSID:%d:1" % len(links))
                bench.forwarding.limit_one(peer, b"RSID:%d:1" % len(links), maximum or 99)
            else:
                bench.forwarding.want(peer, b"foo", b"", 1)
                bench.forwarding.want(peer, b"foo", queue, 1)
        parser = ClientOpParser(Publishing(bench), 4096, 1 << 20)
        for piece in pieces:
            assert parser.parse(bytearray(piece), 0, len(piece)) == len(piece)
        bench.router.flush()
        heard.append([link.said() for link in links])
    assert [said.count(b"foo") for said in heard[0]] == [12, 12, 12, 12, 5]
    if not queue:  # who is chosen among members is another each time
        assert heard[0] == heard[1]


@pytest.mark.parametrize("line", [b"RMSG $G foo 2\r\n", b"RMSG $G foo answer 2\r\n", b"RMSG $G foo | wkrs 2\r\n"])
def test_run_of_a_peer_is_delivered_as_the_same_messages_one_by_one(line: bytes) -> None:
    frames = [line + b"%02d\r\n" % number for number in range(12)]
    heard = []
    for pieces in ([b"".join(frames)], frames):
        bench = Bench()
        plain, wild, member = bench.client(b"foo"), bench.client(b">"), bench.client(b"foo", b"wkrs")
        for piece in pieces:
            arrive(bench, piece)
        heard.append([link.said() for link in (plain, wild, member)])
    assert heard[0] == heard[1]
    assert heard[0][0].count(b"MSG foo 1") == 12
    assert heard[0][2].count(b"MSG") == (12 if b"wkrs" in line else 0)


def forward(bench: Bench, pieces: list[bytes]) -> None:
    parser = ClientOpParser(Publishing(bench), 4096, 1 << 20)
    for piece in pieces:
        assert parser.parse(bytearray(piece), 0, len(piece)) == len(piece)
    bench.router.flush()


@pytest.mark.parametrize("block", [b"", BLOCK])
@pytest.mark.parametrize("reply", [b"", b"answer "])
@pytest.mark.parametrize("wanted", [[b"a"], [b"a", b"b"], [b"", b"a"], [b"", b"a", b"b"]])
@pytest.mark.parametrize("kind", ["v2", "no headers", "v1"])
def test_run_for_groups_of_one_peer_is_the_same_messages_one_by_one(
    kind: str, wanted: list[bytes], reply: bytes, block: bytes
) -> None:
    """Nothing is to be chosen then. In v1 a peer has one member of each group, elsewhere two."""
    sizes = b"%d %d\r\n" % (len(block), len(block) + 2) if block else b"2\r\n"
    head = (b"HPUB foo " if block else b"PUB foo ") + reply + sizes
    ops = [head + block + b"%02d\r\n" % number for number in range(12)]
    heard = []
    for pieces in ([b"".join(ops)], ops):
        bench = Bench()
        link, peer = bench.peer(kind == "v1", kind == "v2")
        for number, queue in enumerate(wanted):
            if kind == "v1":
                bench.forwarding.want_one(peer, b"foo", queue, b"QRSID:%d:1" % number)
            else:
                bench.forwarding.want(peer, b"foo", queue, 2 if queue else 1)
        forward(bench, pieces)
        heard.append(link.said())
    frames = 12 * len(wanted) if kind == "v1" else 12
    assert [said.count(b"MSG ") for said in heard] == [frames, frames]
    if kind == "v1":  # a run writes the frames of one subscription after those of the other
        assert sorted(heard[0].split(b"MSG ")) == sorted(heard[1].split(b"MSG "))
    else:
        assert heard[0] == heard[1]
        listed = b" ".join([queue for queue in wanted if queue])
        sign = b" + answer " if reply else b" | "
        assert heard[0].count(b"MSG $G foo" + sign + listed + b" ") == 12


def test_run_for_a_group_of_several_peers_goes_to_one_each_and_in_order() -> None:
    bench = Bench()
    links = []
    for _ in range(3):
        link, peer = bench.peer()
        bench.forwarding.want(peer, b"foo", b"a", 2)
        links.append(link)
    watcher, peer = bench.peer()
    bench.forwarding.want(peer, b"foo", b"", 1)
    forward(bench, [b"".join(b"PUB foo 3\r\n%03d\r\n" % number for number in range(300))])
    got = [[int(frame[-5:]) for frame in link.said().split(b"RMSG ")[1:]] for link in links]
    assert sorted(number for numbers in got for number in numbers) == list(range(300))
    assert all(numbers == sorted(numbers) and len(numbers) > 60 for numbers in got)
    assert watcher.said() == b"".join(b"RMSG $G foo 3\r\n%03d\r\n" % number for number in range(300))


def test_limit_that_comes_after_messages_were_sent_holds_and_so_does_other_interest() -> None:
    bench = Bench()
    link, peer = bench.peer(in_v1=True)
    bench.forwarding.want_one(peer, b"foo", b"a", b"QRSID:1:1")
    ops = [b"PUB foo 2\r\nhi\r\n" * 4]
    forward(bench, ops)
    bench.forwarding.limit_one(peer, b"QRSID:1:1", 6)
    forward(bench, ops)
    assert link.said().count(b"MSG foo QRSID:1:1") == 6
    other, newer = bench.peer()
    bench.forwarding.want(newer, b"*", b"a", 1)
    forward(bench, ops)
    assert (link.said().count(b"MSG"), other.said().count(b"RMSG $G foo | a 2")) == (0, 4)


def test_frames_with_other_lists_of_groups_reach_other_members() -> None:
    bench = Bench()
    members = {queue: bench.client(b"foo", queue) for queue in (b"a", b"b")}
    second = bench.client(b"*", b"b")
    for listed in (b"a", b"b", b"a b", b"b a", b"a"):
        arrive(bench, b"".join(b"RMSG $G foo | %b 2\r\n%02d\r\n" % (listed, number) for number in range(20)))
        said = {queue: link.said().count(b"MSG foo") for queue, link in members.items()}
        said[b"b"] += second.said().count(b"MSG foo")
        assert said == {queue: 20 if queue in listed else 0 for queue in members}
