"""What comes over a leaf node connection: whether it may, and who gets it."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.exchange.router import Router
from headwater.leaf.admission import Admission
from headwater.leaf.permissions import Crossing
from headwater.options.access import SubjectRules
from headwater.wire.message_view import composed

DELIVERY = b"$JS.ACK.S.C.1.1.1.1.0"
SUBJECTS = [b"a", b"b", b"$JS.S.a", b"$JS.S.b", b"$JS.API.INFO"]


def router() -> Router:
    return Router(lambda flush: None, 1)


@given(
    rules=st.sampled_from([None, SubjectRules(allow=("a", "$JS.>")), SubjectRules(deny=("$JS.S.b",))]),
    messages=st.lists(st.tuples(st.sampled_from(SUBJECTS), st.sampled_from([b"", DELIVERY, b"_INBOX.1"])), max_size=12),
)
def test_what_may_come_depends_on_its_subject_alone(
    rules: SubjectRules | None, messages: list[tuple[bytes, bytes]]
) -> None:
    crossing, there = Crossing([b"$JS.API.>"], [rules]), router()
    admission = Admission(crossing)
    for subject, reply in messages:
        message = composed(subject, reply, b"", b"x")
        assert admission.may_come(message) == crossing.has(subject)
        if crossing.has(subject):
            assert admission.receivers(there, message) is there.sublist.match(subject)


def test_a_delivery_has_the_receivers_of_this_moment() -> None:
    admission, there = Admission(Crossing([])), router()
    message = composed(b"$JS.S.a", DELIVERY, b"", b"x")
    assert admission.receivers(there, message).plain == []
    subscription = there.subscribe_internal(b"$JS.S.a", lambda *parts: None)
    assert admission.receivers(there, message).plain == [subscription]
    assert admission.receivers(there, composed(b"$JS.S.b", DELIVERY, b"", b"x")).plain == []
    there.unsubscribe(subscription)
    assert admission.receivers(there, message).plain == []
