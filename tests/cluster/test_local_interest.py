"""Announcements of local interest to peers, in both dialects."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.local_interest import NO_CHANGE, InterestChange, LocalInterest
from headwater.exchange.sublist import Subscription


def test_v2_announces_the_first_and_the_last_subscription_and_v1_each() -> None:
    local = LocalInterest(b"$G")
    one, two = Subscription(b"foo", sid=b"1"), Subscription(b"foo", sid=b"2")
    assert local.add(one) == InterestChange(b"SUB foo  RSID:1:1\r\n", b"RS+ $G foo\r\n")
    assert local.add(two) == InterestChange(b"SUB foo  RSID:2:1\r\n", b"")
    assert local.remove(one) == InterestChange(b"UNSUB RSID:1:1\r\n", b"")
    assert local.remove(two) == InterestChange(b"UNSUB RSID:2:1\r\n", b"RS- $G foo\r\n")


def test_every_change_of_a_group_is_announced_with_its_weight() -> None:
    local = LocalInterest(b"$G")
    one, two = Subscription(b"work", b"wkrs"), Subscription(b"work", b"wkrs")
    assert [local.add(each).v2 for each in (one, two)] == [b"RS+ $G work wkrs 1\r\n", b"RS+ $G work wkrs 2\r\n"]
    assert local.queue_of(b"QRSID:2:1") == b"wkrs"
    assert local.remove(two) == InterestChange(b"UNSUB QRSID:2:1\r\n", b"RS+ $G work wkrs 1\r\n")
    assert local.queue_of(b"QRSID:2:1") == b"wkrs"  # messages for it may be in flight
    assert local.remove(one).v2 == b"RS- $G work wkrs\r\n"


def test_the_servers_own_subjects_and_those_not_imported_are_not_announced() -> None:
    local = LocalInterest(b"$G", imports=lambda subject: subject != b"secret")
    for subject in (b"_SYS.x", b"secret"):
        subscription = Subscription(subject)
        assert local.add(subscription) == NO_CHANGE
        assert local.remove(subscription) == NO_CHANGE
    assert local.wanted() == []


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([b"a", b"b.*"]), st.sampled_from([b"", b"q"])), max_size=30))
def test_new_peer_gets_the_sum_of_all_changes(changes: list[tuple[bool, bytes, bytes]]) -> None:
    local = LocalInterest(b"$G")
    received: dict[tuple[bytes, ...], int] = {}
    here: list[Subscription] = []
    for add, subject, queue in changes:
        if add:
            here.append(Subscription(subject, queue))
            line = local.add(here[-1]).v2
        elif here:
            line = local.remove(here.pop()).v2
        else:
            continue
        words = tuple(line.split())
        if words and words[0] == b"RS+":
            received[words[2:4]] = int(words[4]) if len(words) > 4 else 1
        elif words:
            del received[words[2:4]]
    lines = [tuple(line.split()) for line in local.all_v2()]
    reported = {words[2:4]: int(words[4]) if len(words) > 4 else 1 for words in lines}
    assert reported == received
    assert len(list(local.all_v1())) == len(here)


def test_member_that_has_left_is_remembered_until_the_second_time_of_forgetting() -> None:
    local = LocalInterest(b"$G")
    member = Subscription(b"work", b"wkrs")
    local.add(member)
    assert not local.has_departed(b"wkrs")
    local.remove(member)
    for _ in range(2):
        assert local.has_departed(b"wkrs")
        assert local.queue_of(b"QRSID:1:1") == b"wkrs"
        local.forget_departed()
    assert not local.has_departed(b"wkrs")
    assert local.queue_of(b"QRSID:1:1") is None


def test_announced_interest_is_withdrawn_line_by_line() -> None:
    local = LocalInterest(b"$G")
    for subject, queue in ((b"a", b""), (b"a", b""), (b"b", b"q")):
        local.add(Subscription(subject, queue))
    assert list(local.none_v2()) == [b"RS- $G a\r\n", b"RS- $G b q\r\n"]
    assert list(local.none_v1()) == [b"UNSUB RSID:1:1\r\n", b"UNSUB RSID:2:1\r\n", b"UNSUB QRSID:3:1\r\n"]


def test_interest_of_leaf_nodes_is_announced_with_their_cluster_and_in_total() -> None:
    local = LocalInterest(b"$G", imports=lambda subject: subject != b"secret")
    assert local.add_of_leafs(b"c", b"foo", b"", 1) == InterestChange(b"", b"", b"LS+ c $G foo\r\n")
    assert local.add_of_leafs(b"c", b"foo", b"", 1) == NO_CHANGE
    assert local.add_of_leafs(b"d", b"foo", b"", 1).leaf == b"LS+ d $G foo\r\n"
    assert local.add_of_leafs(b"c", b"foo", b"q", 2).leaf == b"LS+ c $G foo q 2\r\n"
    assert local.add_of_leafs(b"c", b"foo", b"q", 1).leaf == b"LS+ c $G foo q 3\r\n"
    reported = [b"LS+ c $G foo\r\n", b"LS+ d $G foo\r\n", b"LS+ c $G foo q 3\r\n"]
    assert list(local.all_of_leafs(wanted=True)) == reported
    assert list(local.all_of_leafs(wanted=False))[2] == b"LS- c $G foo q\r\n"
    assert local.add_of_leafs(b"c", b"foo", b"q", -3).leaf == b"LS- c $G foo q\r\n"
    assert local.add_of_leafs(b"c", b"foo", b"", -1) == NO_CHANGE
    assert local.add_of_leafs(b"c", b"foo", b"", -1).leaf == b"LS- c $G foo\r\n"
    assert local.add_of_leafs(b"c", b"secret", b"", 1) == NO_CHANGE
    assert list(local.all_v2()) == []
