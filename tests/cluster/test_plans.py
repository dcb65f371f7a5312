"""Plans, computed once for all messages with the same interest of peers."""

import pytest
from support.fake_link import make_outlet

from headwater.cluster.frames import Target
from headwater.cluster.plans import Plan
from headwater.exchange.sublist import Outlet, Sublist, Subscription


def plan_of(*wanted: tuple[int, bytes], in_v1: bool = False, maximum: int = 0) -> Plan:
    """The plan for a subject in which these peers, by number, have interest, with these queue groups."""
    outlets = [make_outlet()[1] for _ in range(3)]
    targets: dict[Outlet, Target] = {outlet: Target(outlet, in_v1, b"$G", True) for outlet in outlets}
    interest = Sublist()
    for number, (at, queue) in enumerate(wanted):
        subscription = Subscription(b"foo", queue, b"RSID:%d:1" % number, outlets[at])
        subscription.maximum = maximum
        interest.insert(subscription)
    return Plan(interest.match(b"foo"), targets)


@pytest.mark.parametrize(
    ("wanted", "v2", "v1"),
    [
        ([(0, b"")], 1, 1),
        ([(0, b""), (1, b"")], 2, 2),
        ([(0, b""), (0, b"a")], 1, 2),
        ([(0, b"a"), (0, b"a")], 1, None),
        ([(0, b"a"), (0, b"b"), (1, b"c")], 2, 3),
        ([(0, b"a"), (1, b"a")], None, None),
        ([(2, b""), (0, b"a"), (1, b"a")], None, None),
    ],
)
def test_frames_are_settled_without_a_choice(wanted: list[tuple[int, bytes]], v2: int | None, v1: int | None) -> None:
    for in_v1, frames in ((False, v2), (True, v1)):
        settled = plan_of(*wanted, in_v1=in_v1).settled
        assert (None if settled is None else len(settled)) == frames


def test_a_plan_with_a_limited_subscription_is_not_settled() -> None:
    for wanted in ((0, b""), (0, b"a")):
        plan = plan_of(wanted, in_v1=True, maximum=5)
        assert plan.limited
        assert plan.settled is None
        assert not plan_of(wanted, in_v1=True).limited


def test_a_peer_is_reached_once_for_plain_interest_and_a_group_has_an_entry_for_each_member() -> None:
    plan = plan_of((0, b""), (0, b""), (1, b""), (0, b"a"), (1, b"a"), (1, b"a"))
    assert len(plan.firsts) == len(plan.first_targets) == 2
    assert [(choice.queue, len(choice.entries), len(choice.targets)) for choice in plan.choices] == [(b"a", 3, 3)]
