"""Decisions of the rules about the subjects that brokers exchange."""

import pytest

from headwater.cluster.route_permissions import Filter
from headwater.options.access import SubjectRules
from headwater.wire.peer_documents import SubjectLists


@pytest.mark.parametrize(
    ("rules", "let_through", "kept"),
    [
        (None, [b">", b"a", b"*.b"], []),
        (SubjectRules(), [b">", b"a"], []),
        (SubjectRules(allow=("a.>",)), [b"a.b", b"a.*", b"a.>"], [b">", b"a", b"b.a", b"*.b"]),
        (SubjectRules(allow=()), [], [b"a", b">"]),
        (SubjectRules(deny=("s.>",)), [b">", b"*.x", b"a"], [b"s.x", b"s.*", b"s.>"]),
        (SubjectRules(allow=("a.*",), deny=("a.s",)), [b"a.*", b"a.b"], [b"a.s", b"a.>"]),
    ],
)
def test_a_subscription_is_allowed_if_all_its_subjects_are(
    rules: SubjectRules | None, let_through: list[bytes], kept: list[bytes]
) -> None:
    tested = Filter(rules)
    assert [pattern for pattern in let_through + kept if tested.lets(pattern)] == let_through


def test_denied_subjects_are_withheld_from_wider_subscriptions() -> None:
    denied = Filter(SubjectRules(deny=("s.>",))).denied
    assert denied is not None
    assert denied.has(b"s.x")
    assert not denied.has(b"a")
    assert Filter(SubjectRules(allow=("a",))).denied is None
    assert Filter(None).denied is None


def test_the_rules_are_announced_as_they_were_written() -> None:
    assert Filter(None).announced() is None
    assert Filter(SubjectRules(allow=("a.>",), deny=("a.b",))).announced() == SubjectLists(
        allow=("a.>",), deny=("a.b",)
    )
