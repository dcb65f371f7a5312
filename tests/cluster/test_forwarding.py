"""The peers that get a published message; the router is real, links are not."""

from collections import Counter

import pytest
from support.forwarding_bench import BLOCK, Bench, Publishing, forward

from headwater.authorization.permissions import SubjectSet
from headwater.wire.client_ops import ClientOpParser


def test_peer_gets_one_copy_however_many_of_its_subjects_match() -> None:
    bench = Bench()
    link, peer = bench.peer()
    for subject in (b"foo.bar", b"foo.*", b">"):
        bench.forwarding.want(peer, subject, b"", 1)
    assert bench.publish(b"foo.bar", b"answer") == 1
    assert link.take_flushed() == b"RMSG $G foo.bar answer 2\r\nhi\r\n"


def test_headers_travel_to_peers_that_take_them_and_are_counted_where_not() -> None:
    bench = Bench()
    modern, plain, old = bench.peer(), bench.peer(headers=False), bench.peer(in_v1=True)
    bench.forwarding.want(modern[1], b"foo", b"", 1)
    bench.forwarding.want(plain[1], b"foo", b"", 1)
    bench.forwarding.want_one(old[1], b"foo", b"", b"RSID:4:9")
    assert bench.publish(b"foo", b"answer", BLOCK) == 3
    assert modern[0].take_flushed() == b"HMSG $G foo answer 18 20\r\n" + BLOCK + b"hi\r\n"
    assert plain[0].take_flushed() == b"RMSG $G foo answer 2\r\nhi\r\n"
    assert old[0].take_flushed() == b"MSG foo RSID:4:9 answer 2\r\nhi\r\n"
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
        sent = [at for at, link in enumerate(links) if link.take_flushed()]
        assert len(sent) == 1
        got.update(sent)
    assert min(got[at] for at in range(3)) > 60  # a fair choice gives 100 each, one in a million runs less than 60


def test_weight_makes_a_peer_as_likely_as_its_members() -> None:
    bench = Bench()
    here = bench.client(b"work", b"wkrs")
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"work", b"wkrs", 3)
    ours = 0
    for _ in range(400):
        bench.publish(b"work")
        ours += bool(here.take_flushed())
        link.take_flushed()
    assert 60 < ours < 140
    bench.forwarding.want(peer, b"work", b"wkrs", 0)
    bench.publish(b"work")
    assert here.take_flushed()


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
    assert link.take_flushed() in (b"RMSG $G work | a b 2\r\nhi\r\n", b"RMSG $G work | b a 2\r\nhi\r\n")
    assert old_link.take_flushed() == b"MSG work RSID:1:1 2\r\nhi\r\nMSG work QRSID:1:2 2\r\nhi\r\n"
    bench.publish(b"work", b"answer", BLOCK)
    assert link.take_flushed().startswith(
        (b"HMSG $G work + answer a b 18 20\r\n", b"HMSG $G work + answer b a 18 20\r\n")
    )


@pytest.mark.parametrize("block", [b"", BLOCK])
@pytest.mark.parametrize("queue", [b"", b"wkrs"])
def test_run_of_messages_is_forwarded_as_the_same_messages_one_by_one(block: bytes, queue: bytes) -> None:
    """To a v2 peer, one without headers, a v1 peer, one whose subscription ends within the run, and a local client."""
    head = b"HPUB foo %d %d\r\n" % (len(block), len(block) + 2) if block else b"PUB foo 2\r\n"
    ops = [head + block + b"%02d\r\n" % number for number in range(12)]
    received: list[list[bytes]] = []
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
        received.append([link.take_flushed() for link in links])
    assert [sent.count(b"foo") for sent in received[0]] == [12, 12, 12, 12, 5]
    if not queue:  # the choice among members differs each time
        assert received[0] == received[1]


@pytest.mark.parametrize("block", [b"", BLOCK])
@pytest.mark.parametrize("reply", [b"", b"answer "])
@pytest.mark.parametrize("wanted", [[b"a"], [b"a", b"b"], [b"", b"a"], [b"", b"a", b"b"]])
@pytest.mark.parametrize("kind", ["v2", "no headers", "v1"])
def test_run_for_groups_of_one_peer_is_the_same_messages_one_by_one(
    kind: str, wanted: list[bytes], reply: bytes, block: bytes
) -> None:
    """There is no choice then. In v1 the peer has one member of each group, otherwise two."""
    sizes = b"%d %d\r\n" % (len(block), len(block) + 2) if block else b"2\r\n"
    head = (b"HPUB foo " if block else b"PUB foo ") + reply + sizes
    ops = [head + block + b"%02d\r\n" % number for number in range(12)]
    received = []
    for pieces in ([b"".join(ops)], ops):
        bench = Bench()
        link, peer = bench.peer(kind == "v1", kind == "v2")
        for number, queue in enumerate(wanted):
            if kind == "v1":
                bench.forwarding.want_one(peer, b"foo", queue, b"QRSID:%d:1" % number)
            else:
                bench.forwarding.want(peer, b"foo", queue, 2 if queue else 1)
        forward(bench, pieces)
        received.append(link.take_flushed())
    frames = 12 * len(wanted) if kind == "v1" else 12
    assert [sent.count(b"MSG ") for sent in received] == [frames, frames]
    if kind == "v1":  # a run writes the frames of one subscription after those of the other
        assert sorted(received[0].split(b"MSG ")) == sorted(received[1].split(b"MSG "))
    else:
        assert received[0] == received[1]
        listed = b" ".join([queue for queue in wanted if queue])
        sign = b" + answer " if reply else b" | "
        assert received[0].count(b"MSG $G foo" + sign + listed + b" ") == 12


def test_run_for_a_group_at_several_peers_goes_to_one_member_per_message_in_order() -> None:
    bench = Bench()
    links = []
    for _ in range(3):
        link, peer = bench.peer()
        bench.forwarding.want(peer, b"foo", b"a", 2)
        links.append(link)
    watcher, peer = bench.peer()
    bench.forwarding.want(peer, b"foo", b"", 1)
    forward(bench, [b"".join(b"PUB foo 3\r\n%03d\r\n" % number for number in range(300))])
    got = [[int(frame[-5:]) for frame in link.take_flushed().split(b"RMSG ")[1:]] for link in links]
    assert sorted(number for numbers in got for number in numbers) == list(range(300))
    assert all(numbers == sorted(numbers) and len(numbers) > 60 for numbers in got)
    assert watcher.take_flushed() == b"".join(b"RMSG $G foo 3\r\n%03d\r\n" % number for number in range(300))


def test_limit_set_after_messages_were_sent_applies_and_other_interest_stays() -> None:
    bench = Bench()
    link, peer = bench.peer(in_v1=True)
    bench.forwarding.want_one(peer, b"foo", b"a", b"QRSID:1:1")
    ops = [b"PUB foo 2\r\nhi\r\n" * 4]
    forward(bench, ops)
    bench.forwarding.limit_one(peer, b"QRSID:1:1", 6)
    forward(bench, ops)
    assert link.take_flushed().count(b"MSG foo QRSID:1:1") == 6
    other, newer = bench.peer()
    bench.forwarding.want(newer, b"*", b"a", 1)
    forward(bench, ops)
    assert (link.take_flushed().count(b"MSG"), other.take_flushed().count(b"RMSG $G foo | a 2")) == (0, 4)


ACK = b"$JS.ACK.s.c.1.2.3.4.5"


def deliver(bench: Bench, inbox: bytes, block: bytes = b"") -> int:
    deliveries = bench.router.deliver(inbox, b"orders.eu", ACK, block, b"hi")
    bench.router.flush()
    return deliveries


def test_delivery_to_an_inbox_goes_to_peers_with_interest_in_it_and_its_subject_follows_the_reply() -> None:
    bench = Bench()
    here = bench.client(b"_INBOX.1")
    link, peer = bench.peer()
    other_link, other = bench.peer()
    bench.forwarding.want(peer, b"_INBOX.*", b"", 1)
    bench.forwarding.want(other, b"orders.*", b"", 1)
    assert deliver(bench, b"_INBOX.1", BLOCK) == 2
    assert link.take_flushed() == b"HMSG $G _INBOX.1 " + ACK + b"@orders.eu 18 20\r\n" + BLOCK + b"hi\r\n"
    assert other_link.take_flushed() == b""
    assert here.take_flushed() == b"HMSG orders.eu 1 " + ACK + b" 18 20\r\n" + BLOCK + b"hi\r\n"
    assert deliver(bench, b"_INBOX.2") == 1
    assert link.take_flushed() == b"RMSG $G _INBOX.2 " + ACK + b"@orders.eu 2\r\nhi\r\n"
    bench.forwarding.want(peer, b"_INBOX.*", b"", 0)
    assert deliver(bench, b"_INBOX.2") == 0
    assert link.take_flushed() == b""


def test_interest_in_an_inbox_counts_as_soon_as_it_comes_or_goes_however_often_it_is_answered() -> None:
    bench = Bench()
    link, peer = bench.peer()
    for wanted in (0, 1, 0):
        bench.forwarding.want(peer, b"_INBOX.1", b"", wanted)
        for _ in range(2):
            assert bench.publish(b"_INBOX.1") == wanted
            assert bench.publish(b"_INBOX.12") == 0
            assert deliver(bench, b"_INBOX.1") == wanted
            assert bench.publish(b"_INBOX.1") == wanted
            assert link.take_flushed().count(b"_INBOX.1 ") == 3 * wanted


def test_delivery_without_an_ack_subject_shows_the_inbox_to_peers() -> None:
    bench = Bench()
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"_INBOX.1", b"", 1)
    assert bench.router.deliver(b"_INBOX.1", b"orders.eu", b"", b"", b"hi") == 1
    bench.router.flush()
    assert link.take_flushed() == b"RMSG $G _INBOX.1 2\r\nhi\r\n"


def test_gnatsd_is_spared_the_subject_behind_the_reply() -> None:
    bench = Bench()
    ours, gnatsd = bench.peer(in_v1=True, ours=True), bench.peer(in_v1=True)
    for _, peer in (ours, gnatsd):
        bench.forwarding.want_one(peer, b"_INBOX.1", b"", b"RSID:1:1")
    assert deliver(bench, b"_INBOX.1") == 2
    assert ours[0].take_flushed() == b"MSG _INBOX.1 RSID:1:1 " + ACK + b"@orders.eu 2\r\nhi\r\n"
    assert gnatsd[0].take_flushed() == b"MSG _INBOX.1 RSID:1:1 " + ACK + b" 2\r\nhi\r\n"
    assert deliver(bench, b"_INBOX.1", BLOCK) == 2
    assert ours[0].take_flushed() == b"MSG _INBOX.1 RSID:1:1 " + ACK + b"@orders.eu 2\r\nhi\r\n"
    assert gnatsd[0].take_flushed() == b"MSG _INBOX.1 RSID:1:1 " + ACK + b" 2\r\nhi\r\n"


def test_one_member_of_a_deliver_group_in_the_whole_cluster_gets_each_delivery() -> None:
    bench = Bench()
    here = bench.client(b"deliver", b"group")
    link, peer = bench.peer()
    bench.forwarding.want(peer, b"deliver", b"group", 1)
    there = 0
    for _ in range(100):
        assert deliver(bench, b"deliver") == 1
        sent = link.take_flushed()
        assert bool(sent) != bool(here.take_flushed())
        there += bool(sent)
        assert sent in (b"", b"RMSG $G deliver + " + ACK + b"@orders.eu group 2\r\nhi\r\n")
    assert 20 < there < 80


def test_withheld_subjects_are_not_delivered_to_inboxes_at_peers() -> None:
    bench = Bench()
    link, peer = bench.peer()
    bench.forwarding.want(peer, b">", b"", 1)
    bench.forwarding.withheld = SubjectSet([b"secret.>"])
    assert deliver(bench, b"secret.1") == 0
    assert deliver(bench, b"open.1") == 1
    assert link.take_flushed().startswith(b"RMSG $G open.1 ")
