"""The local receivers of a peer's frame; the router is real, links are not."""

import pytest
from support.forwarding_bench import BLOCK, Bench, arrive


def test_messages_from_a_route_are_never_sent_over_one() -> None:
    bench = Bench()
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"foo", b"", 1)
    bench.forwarding.want(peer, b"foo", b"wkrs", 1)
    here = bench.client(b"foo")
    arrive(bench, b"RMSG $G foo | wkrs 2\r\nhi\r\n")
    assert here.take_flushed() == b"MSG foo 1 2\r\nhi\r\n"
    assert link.take_flushed() == b""
    assert bench.arrivals.groups_missed == 1


def test_messages_published_by_a_callback_for_a_peers_message_count_as_local() -> None:
    bench = Bench()
    router = bench.arrivals.router
    seen: list[tuple[bytes, bool]] = []

    def answer(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        seen.append((subject, router.over_route))
        if subject == b"asked":
            router.publish(b"answered", b"", b"", b"")

    for subject in (b"asked", b"answered"):
        router.subscribe_internal(subject, answer)
    arrive(bench, b"RMSG $G asked 2\r\nhi\r\n")
    assert seen == [(b"asked", True), (b"answered", False)]
    assert not router.over_route


def test_frame_reaches_plain_subscriptions_and_the_groups_it_names() -> None:
    bench = Bench()
    plain, named, other = bench.client(b"*"), bench.client(b"foo", b"a"), bench.client(b"foo", b"b")
    arrive(bench, b"HMSG $G foo + answer a 18 20\r\n" + BLOCK + b"hi\r\n")
    assert plain.take_flushed() == b"HMSG foo 1 answer 18 20\r\n" + BLOCK + b"hi\r\n"
    assert named.take_flushed() == b"HMSG foo 1 answer 18 20\r\n" + BLOCK + b"hi\r\n"
    assert other.take_flushed() == b""


def test_frame_without_a_list_reaches_no_group() -> None:
    bench = Bench()
    plain, member = bench.client(b"foo"), bench.client(b"foo", b"a")
    arrive(bench, b"RMSG $G foo 2\r\nhi\r\n")
    assert plain.take_flushed() and not member.take_flushed()


def test_v1_message_for_a_member_reaches_its_group_alone_and_only_on_its_subject() -> None:
    bench = Bench()
    plain, member = bench.client(b"work"), bench.client(b"work", b"wkrs")
    arrive(bench, b"MSG work QRSID:1:1 2\r\nhi\r\nMSG other QRSID:1:1 2\r\nhi\r\n")
    assert member.take_flushed() == b"MSG work 1 2\r\nhi\r\n"
    assert plain.take_flushed() == b""
    assert bench.arrivals.groups_missed == 1


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("in_v1", [False, True])
def test_message_for_a_group_whose_member_has_left_is_passed_on_once(in_v1: bool, ours: bool) -> None:
    bench = Bench()
    bench.left.add(b"wkrs")
    link, peer = bench.peer(in_v1, ours=ours)
    if in_v1:
        bench.forwarding.want_one(peer, b"work", b"wkrs", b"QRSID:7:1")
        arrive(bench, b"MSG work QRSID:1:1 answer 2\r\nhi\r\n")
        token = b"QRSID:7:1:2" if ours else b"QRSID:7:1"
        assert link.take_flushed() == b"MSG work " + token + b" answer 2\r\nhi\r\n"
        again = b"MSG work QRSID:1:1:2 2\r\nhi\r\n"
    else:
        bench.forwarding.want(peer, b"*", b"wkrs", 2)
        arrive(bench, b"HMSG $G work + answer wkrs 18 20\r\n" + BLOCK + b"hi\r\n")
        groups = b"wkrs wkrs" if ours else b"wkrs"
        assert link.take_flushed() == b"HMSG $G work + answer " + groups + b" 18 20\r\n" + BLOCK + b"hi\r\n"
        again = b"RMSG $G work | wkrs wkrs 2\r\nhi\r\n"
    assert (bench.arrivals.passed_on, bench.arrivals.groups_missed) == (1, 0)
    arrive(bench, again)  # it was passed on to us, so it ends here, even if other members exist
    assert link.take_flushed() == b""
    assert (bench.arrivals.passed_on, bench.arrivals.groups_missed) == (1, 1)


def test_passed_on_message_reaches_the_group_and_no_plain_subscription_again() -> None:
    bench = Bench()
    plain, member = bench.client(b"work"), bench.client(b"work", b"wkrs")
    arrive(bench, b"RMSG $G work | wkrs wkrs 2\r\nhi\r\n")
    assert member.take_flushed() == b"MSG work 1 2\r\nhi\r\n"
    assert plain.take_flushed() == b""


def test_messages_for_unknown_groups_or_that_a_real_server_would_deliver_twice_are_not_passed_on() -> None:
    bench = Bench()
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"work", b"wkrs", 1)
    arrive(bench, b"RMSG $G work | wkrs 2\r\nhi\r\n")  # no member has left, so the frame did not just miss one
    bench.left.add(b"wkrs")
    bench.forwarding.want(peer, b"work", b"", 1)
    arrive(bench, b"RMSG $G work | wkrs 2\r\nhi\r\n")  # its plain subscriptions have received the message
    assert link.take_flushed() == b""
    assert bench.arrivals.groups_missed == 2


@pytest.mark.parametrize("line", [b"RMSG $G foo 2\r\n", b"RMSG $G foo answer 2\r\n", b"RMSG $G foo | wkrs 2\r\n"])
def test_run_of_a_peer_is_delivered_as_the_same_messages_one_by_one(line: bytes) -> None:
    frames = [line + b"%02d\r\n" % number for number in range(12)]
    received = []
    for pieces in ([b"".join(frames)], frames):
        bench = Bench()
        plain, wild, member = bench.client(b"foo"), bench.client(b">"), bench.client(b"foo", b"wkrs")
        for piece in pieces:
            arrive(bench, piece)
        received.append([link.take_flushed() for link in (plain, wild, member)])
    assert received[0] == received[1]
    assert received[0][0].count(b"MSG foo 1") == 12
    assert received[0][2].count(b"MSG") == (12 if b"wkrs" in line else 0)


def test_frames_with_other_lists_of_groups_reach_other_members() -> None:
    bench = Bench()
    members = {queue: bench.client(b"foo", queue) for queue in (b"a", b"b")}
    second = bench.client(b"*", b"b")
    for listed in (b"a", b"b", b"a b", b"b a", b"a"):
        arrive(bench, b"".join(b"RMSG $G foo | %b 2\r\n%02d\r\n" % (listed, number) for number in range(20)))
        sent = {queue: link.take_flushed().count(b"MSG foo") for queue, link in members.items()}
        sent[b"b"] += second.take_flushed().count(b"MSG foo")
        assert sent == {queue: 20 if queue in listed else 0 for queue in members}


@pytest.mark.parametrize("reply", [b"", b"answer "])
@pytest.mark.parametrize("members", [0, 1, 2])
@pytest.mark.parametrize("token", [b"QRSID:1:1", b"QRSID:1:1:2", b"QRSID:9:9"])
def test_run_for_a_member_of_a_group_is_the_same_messages_one_by_one(token: bytes, members: int, reply: bytes) -> None:
    frames = [b"MSG work %b %b2\r\n%02d\r\n" % (token, reply, number) for number in range(12)]
    known = token != b"QRSID:9:9"
    received = []
    for pieces in ([b"".join(frames)], frames):
        bench = Bench()
        plain, links = bench.client(b"work"), [bench.client(b"work", b"wkrs") for _ in range(members)]
        for piece in pieces:
            arrive(bench, piece)
        assert plain.take_flushed() == b""
        assert bench.arrivals.groups_missed == (0 if known and members else 12)
        received.append(sorted(b"".join(link.take_flushed() for link in links).split(b"MSG ")))
    assert received[0] == received[1]
    assert len(received[0]) == (13 if known and members else 1)


ACK = b"$JS.ACK.s.c.1.2.3.4.5"


def test_delivery_of_another_brokers_stream_bears_the_subject_behind_its_reply() -> None:
    bench = Bench()
    here, other = bench.client(b"_INBOX.1"), bench.client(b"orders.eu")
    long = b"orders." + b"x" * 300  # longer than inbox and reply together
    arrive(
        bench,
        b"RMSG $G _INBOX.1 " + ACK + b"@orders.eu 2\r\nhi\r\n"
        b"HMSG $G _INBOX.1 " + ACK + b"@" + long + b" 18 20\r\n" + BLOCK + b"hi\r\n"
        b"RMSG $G _INBOX.1 " + ACK + b" 2\r\nhi\r\n",
    )
    assert here.take_flushed() == (
        b"MSG orders.eu 1 " + ACK + b" 2\r\nhi\r\n"
        b"HMSG " + long + b" 1 " + ACK + b" 18 20\r\n" + BLOCK + b"hi\r\n"
        b"MSG _INBOX.1 1 " + ACK + b" 2\r\nhi\r\n"
    )
    assert other.take_flushed() == b""


@pytest.mark.parametrize("in_v1", [False, True])
def test_delivery_to_a_group_bears_the_subject_behind_its_reply(in_v1: bool) -> None:
    bench = Bench()
    member = bench.client(b"deliver", b"wkrs")
    frame = b"MSG deliver QRSID:1:1 %b@a.b 2\r\nhi\r\n" if in_v1 else b"RMSG $G deliver + %b@a.b wkrs 2\r\nhi\r\n"
    arrive(bench, frame % ACK + frame % ACK)
    assert member.take_flushed() == 2 * (b"MSG a.b 1 " + ACK + b" 2\r\nhi\r\n")


def test_delivery_for_a_group_whose_member_has_left_is_passed_on_with_its_subject() -> None:
    bench = Bench()
    bench.left.add(b"wkrs")
    link, peer = bench.peer(ours=True)
    bench.forwarding.want(peer, b"deliver", b"wkrs", 1)
    arrive(bench, b"RMSG $G deliver + " + ACK + b"@a.b wkrs 2\r\nhi\r\n")
    assert link.take_flushed() == b"RMSG $G deliver + " + ACK + b"@a.b wkrs wkrs 2\r\nhi\r\n"
