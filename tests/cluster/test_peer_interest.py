"""Peers' interest, as it begins and ends."""

from support.forwarding_bench import Bench, peers_want


def test_lost_peer_takes_its_interest_with_it() -> None:
    bench = Bench()
    _, peer = bench.peer()
    bench.forwarding.want(peer, b"foo", b"", 1)
    bench.forwarding.want(peer, b"foo", b"q", 2)
    assert bench.router.has_interest(b"foo")
    bench.forwarding.drop_peer(peer)
    assert not bench.router.has_interest(b"foo")
    assert bench.publish(b"foo") == 0
    bench.forwarding.want(peer, b"foo", b"", 1)  # still in flight
    assert peers_want(bench.forwarding) == []


def test_v1_unsub_with_a_maximum_counts_messages_since_sub() -> None:
    bench = Bench()
    link, peer = bench.peer(in_v1=True)
    bench.forwarding.want_one(peer, b"foo", b"", b"RSID:1:5")
    bench.forwarding.want_one(peer, b"bar", b"", b"RSID:1:5")  # a token in use keeps its subscription
    bench.publish(b"foo")
    bench.forwarding.limit_one(peer, b"RSID:1:5", 3)
    assert [bench.publish(b"foo") for _ in range(4)] == [1, 1, 0, 0]
    assert link.take_flushed().count(b"MSG") == 3
    bench.forwarding.want_one(peer, b"foo", b"", b"RSID:1:6")
    bench.forwarding.limit_one(peer, b"RSID:1:6", 0)
    assert bench.publish(b"foo") == 0


def test_interest_of_peers_is_one_table_of_peers_and_members() -> None:
    bench = Bench()
    peers = [bench.peer()[1], bench.peer()[1], bench.peer(in_v1=True)[1]]
    for peer in peers[:2]:
        bench.forwarding.want(peer, b"foo", b"", 1)
        bench.forwarding.want(peer, b"foo", b"q", 3)
    bench.forwarding.want(peers[1], b"foo", b"q", 1)
    bench.forwarding.want_one(peers[2], b"foo", b"", b"RSID:1:1")
    bench.forwarding.want_one(peers[2], b"foo", b"", b"RSID:1:2")
    bench.forwarding.want_one(peers[2], b"foo", b"q", b"QRSID:1:3")
    assert peers_want(bench.forwarding) == [(b"foo", b"", 3), (b"foo", b"q", 5)]
    assert bench.forwarding.wants_of(peers[2]) == [b"foo"] * 3
    bench.forwarding.want(peers[0], b"foo", b"", 0)
    bench.forwarding.want(peers[0], b"foo", b"q", 0)
    assert bench.forwarding.wants_of(peers[0]) == []
    assert peers_want(bench.forwarding) == [(b"foo", b"", 2), (b"foo", b"q", 2)]


def test_pending_is_the_largest_backlog_of_a_peer_with_interest() -> None:
    bench = Bench()
    for waiting, subject in ((5, b"foo"), (70, b"*"), (900, b"bar")):
        link, peer = bench.peer()
        bench.forwarding.want(peer, subject, b"", 1)
        link.waiting = waiting
    assert [bench.forwarding.pending(subject) for subject in (b"foo", b"bar", b"a.b")] == [70, 900, 0]
