"""Announcements of interest to neighbours, without a socket."""

from headwater.leaf.interest import HEAVIEST, Interest, Neighbour
from headwater.leaf.permissions import Crossing
from headwater.options.access import SubjectRules

ALL = Crossing(())
MARK = b"$LDS.mark"


def spoke(cluster: str = "", *, isolated: bool = False, may_announce: Crossing = ALL) -> Neighbour:
    return Neighbour(is_hub=False, cluster=cluster, isolated=isolated, may_announce=may_announce)


def hub() -> Neighbour:
    return Neighbour(is_hub=True, may_announce=ALL)


def joined(*neighbours: Neighbour) -> Interest:
    interest = Interest(MARK)
    for neighbour in neighbours:
        assert interest.join(neighbour) == b"LS+ $LDS.mark\r\n"
    return interest


def test_a_subject_is_announced_once_and_withdrawn_with_the_last_subscription() -> None:
    there = spoke()
    interest = joined(there)
    assert interest.add(b"a", b"") == [(there, b"LS+ a\r\n")]
    assert interest.add(b"a", b"") == []
    assert interest.remove(b"a", b"") == []
    assert interest.remove(b"a", b"") == [(there, b"LS- a\r\n")]
    assert interest.remove(b"a", b"") == []


def test_a_group_is_always_announced_with_all_its_members() -> None:
    there = spoke()
    interest = joined(there)
    assert interest.add(b"a", b"q") == [(there, b"LS+ a q 1\r\n")]
    assert interest.add(b"a", b"q") == [(there, b"LS+ a q 2\r\n")]
    assert interest.remove(b"a", b"q") == [(there, b"LS+ a q 1\r\n")]
    assert interest.remove(b"a", b"q") == [(there, b"LS- a q\r\n")]


def test_a_later_neighbour_gets_all_interest() -> None:
    first, second = spoke(), spoke()
    interest = joined(first)
    interest.add(b"a", b"")
    interest.want(first, b"b", b"q", 3)
    assert interest.join(second) == b"LS+ $LDS.mark\r\nLS+ a\r\nLS+ b q 3\r\n"


def test_spokes_get_each_others_interest_but_not_their_own() -> None:
    one, other = spoke(), spoke()
    interest = joined(one, other)
    assert interest.want(one, b"a", b"", 1) == [(other, b"LS+ a\r\n")]
    assert interest.want(other, b"a", b"", 1) == [(one, b"LS+ a\r\n")]
    assert interest.want(one, b"a", b"", 1) == []
    assert interest.leave(one) == [(other, b"LS- a\r\n")]


def test_the_weight_of_a_group_excludes_the_receiving_neighbours_members() -> None:
    one, other = spoke(), spoke()
    interest = joined(one, other)
    interest.add(b"a", b"q")
    assert interest.want(one, b"a", b"q", 3) == [(other, b"LS+ a q 4\r\n")]
    assert interest.want(other, b"a", b"q", 5) == [(one, b"LS+ a q 6\r\n")]
    assert interest.want(one, b"a", b"q", 0) == [(other, b"LS+ a q 1\r\n")]


def test_a_hub_gets_the_interest_of_our_spokes_and_not_of_another_hub() -> None:
    one, other, below = hub(), hub(), spoke()
    interest = joined(one, other, below)
    assert interest.want(one, b"a", b"", 1) == [(below, b"LS+ a\r\n")]
    assert interest.want(below, b"b", b"", 1) == [(one, b"LS+ b\r\n"), (other, b"LS+ b\r\n")]


def test_a_spokes_weight_of_a_group_has_our_members_and_those_of_our_hubs() -> None:
    above, below = hub(), spoke()
    interest = joined(above, below)
    interest.add(b"x", b"q")
    assert interest.want(above, b"x", b"q", 2) == [(below, b"LS+ x q 3\r\n")]
    assert interest.remove(b"x", b"q") == [(above, b"LS- x q\r\n"), (below, b"LS+ x q 2\r\n")]


def test_an_isolated_spoke_gets_no_interest_of_other_spokes_and_they_get_its_own() -> None:
    lonely, other, above = spoke(isolated=True), spoke(), hub()
    interest = joined(lonely, other, above)
    assert interest.want(other, b"a", b"", 1) == [(above, b"LS+ a\r\n")]
    assert interest.want(above, b"h", b"", 1) == [(lonely, b"LS+ h\r\n"), (other, b"LS+ h\r\n")]
    assert interest.want(lonely, b"b", b"", 1) == [(other, b"LS+ b\r\n"), (above, b"LS+ b\r\n")]
    assert interest.add(b"c", b"")[0] == (lonely, b"LS+ c\r\n")


def test_spokes_of_one_cluster_do_not_get_each_others_interest() -> None:
    one, two, other = spoke("edge"), spoke("edge"), spoke("far")
    interest = joined(one, two, other)
    assert interest.want(one, b"a", b"q", 2) == [(other, b"LS+ a q 2\r\n")]
    assert interest.want(other, b"a", b"q", 4) == [(one, b"LS+ a q 4\r\n"), (two, b"LS+ a q 4\r\n")]


def test_interest_that_may_not_cross_is_not_announced_until_it_may() -> None:
    there = spoke(may_announce=Crossing((b"$JS.API.>",), [SubjectRules(allow=("open.>",))]))
    interest = Interest(MARK)
    interest.join(there)
    assert interest.add(b"secret", b"") == []
    assert interest.add(b"$JS.API.>", b"") == []
    assert interest.add(b"open.a", b"") == [(there, b"LS+ open.a\r\n")]
    assert interest.add(b">", b"") == [(there, b"LS+ >\r\n")]
    there.may_announce = Crossing((), [SubjectRules(allow=("secret",))])
    assert sorted(interest.renew(there).splitlines()) == [b"LS+ secret", b"LS- open.a"]


def test_an_impossible_weight_is_capped() -> None:
    one, other = spoke(), spoke()
    interest = joined(one, other)
    assert interest.want(one, b"a", b"q", 999_999_999) == [(other, b"LS+ a q %d\r\n" % HEAVIEST)]
    assert interest.leave(one) == [(other, b"LS- a q\r\n")]
    assert interest.leave(one) == []


def test_interest_of_peers_in_our_cluster_is_announced_to_spokes_but_not_to_hubs() -> None:
    one, other, above = spoke("a"), spoke("b"), hub()
    interest = joined(one, other, above)
    assert interest.peer_wants("p", b"", b"x", b"", 1) == [(one, b"LS+ x\r\n"), (other, b"LS+ x\r\n")]
    assert interest.peer_wants("p", b"", b"x", b"", 1) == []
    assert interest.peer_wants("p", b"a", b"y", b"q", 2) == [(other, b"LS+ y q 2\r\n")]
    assert interest.peer_wants("q", b"a", b"y", b"q", 1) == [(other, b"LS+ y q 3\r\n")]
    assert interest.peer_left("p") == [(one, b"LS- x\r\n"), (other, b"LS- x\r\n"), (other, b"LS+ y q 1\r\n")]
    assert interest.peer_left("p") == []


def test_a_loop_is_found_across_a_cluster() -> None:
    below, above = spoke("a"), hub()
    interest = joined(below, above)
    assert interest.peer_wants("p", b"b", b"$LDS.x", b"", 1) == [(below, b"LS+ $LDS.x\r\n"), (above, b"LS+ $LDS.x\r\n")]


def test_an_isolated_spoke_gets_the_interest_of_peers_but_not_of_their_spokes() -> None:
    there = spoke("a", isolated=True)
    interest = joined(there)
    assert interest.peer_wants("p", b"b", b"x", b"", 1) == []
    assert interest.peer_wants("p", b"", b"x", b"", 1) == [(there, b"LS+ x\r\n")]
    interest.leave(there)
    late = spoke("c")
    assert interest.join(late) == b"LS+ $LDS.mark\r\nLS+ x\r\n"
