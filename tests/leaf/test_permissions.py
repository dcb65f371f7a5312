"""The subjects that may cross, in one direction."""

import pytest

from headwater.leaf.permissions import (
    REMEMBERED,
    Crossing,
    lists_of,
    never,
    rules_of,
    without_queues,
)
from headwater.options.access import SubjectRules
from headwater.wire.peer_documents import SubjectLists


@pytest.mark.parametrize(
    ("subject", "crosses"),
    [
        (b"up.a", True),
        (b"up.no", False),
        (b"other", False),
        (b"$LDS.x", True),
        (b"_GR_.x", True),
        (b"$JS.API.INFO", False),
        (b"$KV.b.k", False),
    ],
)
def test_a_message_crosses_when_every_list_lets_it(subject: bytes, crosses: bool) -> None:
    crossing = Crossing(
        never("", system=False), [SubjectRules(allow=("up.>", "$JS.>", "$KV.>"), deny=("up.no",)), None]
    )
    assert crossing.has(subject) is crosses
    assert crossing.has(subject) is crosses


@pytest.mark.parametrize(
    ("pattern", "announced"),
    [
        (b"up.a", True),
        (b"up.no", False),
        (b"up.*", True),
        (b">", True),
        (b"*.a", True),
        (b"down.>", False),
        (b"$LDS.*", True),
        (b"up.deep.>", False),
    ],
)
def test_interest_is_announced_where_some_message_might_cross(pattern: bytes, announced: bool) -> None:
    assert Crossing((b"up.deep.>",), [SubjectRules(allow=("up.>",), deny=("up.no",))]).lets(pattern) is announced


def test_both_the_hubs_list_and_our_own_apply() -> None:
    crossing = Crossing((), [SubjectRules(allow=("a.>",)), SubjectRules(allow=("*.b",))])
    assert crossing.has(b"a.b")
    assert not crossing.has(b"a.c")
    assert not crossing.has(b"c.b")


def test_only_subjects_of_the_server_need_a_check_if_no_other_is_denied() -> None:
    assert Crossing(never("leafy", system=True)).is_open
    assert not Crossing((b"a",)).is_open
    assert not Crossing((), [SubjectRules(allow=("a",))]).is_open


def test_the_api_of_our_own_domain_does_not_cross() -> None:
    assert never("leafy", system=False) == (b"$JS.API.>", b"$KV.>", b"$OBJ.>", b"$JS.leafy.API.>")
    assert b"$NRG.>" in never("", system=True)


def test_a_flood_of_subjects_does_not_grow_the_cache() -> None:
    crossing = Crossing((), [SubjectRules(allow=("a.>",))])
    for number in range(3 * REMEMBERED):
        assert crossing.has(b"a.%d" % number)
    assert len(crossing._known) <= REMEMBERED


def test_lists_of_info_are_rules_and_back() -> None:
    assert rules_of(None) is None
    assert lists_of(None) is None
    assert rules_of(SubjectLists(deny=("a",))) == SubjectRules(allow=None, deny=("a",))
    assert lists_of(SubjectRules(allow=("a",), deny=("b",))) == SubjectLists(allow=("a",), deny=("b",))


def test_an_entry_for_a_queue_group_counts_for_its_subject() -> None:
    assert without_queues(None) is None
    rules = SubjectRules(allow=("a q1", "a q2", "b"), deny=("c", "d q"))
    assert without_queues(rules) == SubjectRules(allow=("a", "b"), deny=("c",))
