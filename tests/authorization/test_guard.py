"""A guard's caches of decisions, and its reply subjects."""

from headwater.authorization.guard import REMEMBERED, REPLIES, Guard
from headwater.authorization.permissions import Rules
from headwater.options.access import Permissions, ResponseRules, SubjectRules
from headwater.wire.message_view import composed


def publish(guard: Guard, subject: bytes) -> bool:
    return guard.may_publish(composed(subject, b"", b"", b""))


def receive(guard: Guard, subject: bytes, reply: bytes, queue: bytes = b"") -> bool:
    """Deliver a message; False if the guard withholds it."""
    return guard.lets_through(composed(subject, reply, b"", b""), queue)


def responder(limits: ResponseRules) -> tuple[Guard, list[float]]:
    now = [0.0]
    return Guard(Rules(Permissions(responses=limits)), lambda: now[0]), now


def test_responses_are_counted_and_timed() -> None:
    guard, now = responder(ResponseRules(max_messages=2, expires=10.0))
    assert not publish(guard, b"r")
    assert receive(guard, b"service", b"r")
    assert [publish(guard, b"r") for _ in range(3)] == [True, True, False]
    receive(guard, b"service", b"r")
    now[0] = 10.5
    assert not publish(guard, b"r")


def test_limits_of_zero_or_less_mean_no_limit() -> None:
    guard, now = responder(ResponseRules(max_messages=-1, expires=-1.0))
    receive(guard, b"service", b"r")
    now[0] = 1e9
    assert all(publish(guard, b"r") for _ in range(100))


def test_the_caches_of_a_guard_are_bounded() -> None:
    guard, now = responder(ResponseRules())
    for number in range(REPLIES + 10):
        receive(guard, b"s", b"r%d" % number)
    assert len(guard._replies) == REPLIES
    assert publish(guard, b"r%d" % (REPLIES + 9)), "the newest is never forgotten"
    assert not publish(guard, b"r0")
    now[0] = 1000.0
    receive(guard, b"s", b"new")
    assert len(guard._replies) == 1, "nothing is kept that may not be answered any more"
    for number in range(3 * REMEMBERED):
        publish(guard, b"other.%d" % number)
    assert len(guard._published) <= REMEMBERED


def test_a_guard_without_filters_does_not_watch_deliveries() -> None:
    free = Rules(Permissions(publish=SubjectRules(deny=("a",)), subscribe=SubjectRules(allow=("b",))))
    assert not Guard(free, lambda: 0.0).watches_deliveries


def test_the_last_answer_is_not_taken_for_another_subject_or_queue_group() -> None:
    rules = Rules(Permissions(publish=SubjectRules(allow=("a", "ab")), subscribe=SubjectRules(deny=("x", "y q"))))
    guard = Guard(rules, lambda: 0.0)
    for subject, allowed in ((b"a", True), (b"b", False), (b"ab", True), (b"a", True), (b"", False), (b"abc", False)):
        assert publish(guard, subject) is allowed
    for subject, queue, received in (
        (b"x", b"", False),
        (b"y", b"", True),
        (b"y", b"q", False),
        (b"y", b"r", True),
        (b"x", b"r", False),
    ):
        assert receive(guard, subject, b"", queue) is received
