"""Permissions against a naive oracle that knows only literal subjects, and what a guard remembers."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from headwater.broker.auth.permissions import REMEMBERED, REPLIES, Guard, Rules
from headwater.broker.options import Permissions, ResponseRules, SubjectRules
from headwater.model.subject import matches

TOKENS = ["a", "b"]
SUBJECTS = [".".join(words).encode() for size in (1, 2, 3) for words in product(TOKENS, repeat=size)]
QUEUES = [b"", b"g", b"g.x"]

patterns = st.lists(st.sampled_from([*TOKENS, "*", ">"]), min_size=1, max_size=3).map(
    lambda words: ".".join(word if word != ">" or at == len(words) - 1 else "a" for at, word in enumerate(words))
)
entries = st.one_of(patterns, st.tuples(patterns, st.sampled_from(["g", "*", "g.*", "g.>"])).map(" ".join))
rules = st.builds(
    SubjectRules,
    allow=st.one_of(st.none(), st.lists(entries, max_size=3).map(tuple)),
    deny=st.lists(entries, max_size=3).map(tuple),
)
publish_rules = st.builds(
    SubjectRules,
    allow=st.one_of(st.none(), st.lists(patterns, max_size=3).map(tuple)),
    deny=st.lists(patterns, max_size=3).map(tuple),
)


def speaks_of(entry: str, subject: bytes, queue: bytes) -> bool:
    pattern, _, group = entry.partition(" ")
    return matches(pattern.encode(), subject) and (not group or (queue != b"" and matches(group.encode(), queue)))


def oracle(permitted: SubjectRules, subject: bytes, queue: bytes) -> bool:
    """Whether a subscriber with this queue group may hear a message, said for one message at a time."""
    if any(speaks_of(entry, subject, queue) for entry in permitted.deny):
        return False
    if permitted.allow is None:
        return True
    groups = [entry for entry in permitted.allow if " " in entry and matches(entry.split()[0].encode(), subject)]
    if queue and groups:
        return any(speaks_of(entry, subject, queue) for entry in groups)
    return any(" " not in entry and speaks_of(entry, subject, queue) for entry in permitted.allow)


@given(publish_rules)
def test_a_publish_is_allowed_exactly_when_the_lists_say_so(permitted: SubjectRules) -> None:
    made = Rules(Permissions(publish=permitted))
    for subject in SUBJECTS:
        assert made.may_publish(subject) == oracle(permitted, subject, b"")


@given(rules, patterns, st.sampled_from(QUEUES))
def test_no_subscription_ever_hears_what_its_user_may_not(permitted: SubjectRules, pattern: str, queue: bytes) -> None:
    guard = Guard(Rules(Permissions(subscribe=permitted)), lambda: 0.0)
    wanted = pattern.encode()
    if not guard.may_subscribe(wanted, queue):
        return
    for subject in SUBJECTS:
        if not matches(wanted, subject):
            continue
        heard = not guard.watches_deliveries or guard.lets_through(subject, queue, b"")
        denied = any(speaks_of(entry, subject, queue) for entry in permitted.deny)
        assert heard == (not denied)
        if permitted.allow is not None and (not queue or not any(" " in entry for entry in permitted.allow)):
            assert not heard or oracle(permitted, subject, queue)


@given(rules, st.sampled_from(SUBJECTS), st.sampled_from(QUEUES))
def test_a_literal_subscription_is_taken_exactly_when_its_messages_may_be_heard(
    permitted: SubjectRules, subject: bytes, queue: bytes
) -> None:
    guard = Guard(Rules(Permissions(subscribe=permitted)), lambda: 0.0)
    assert guard.may_subscribe(subject, queue) == oracle(permitted, subject, queue)


def responder(limits: ResponseRules) -> tuple[Guard, list[float]]:
    now = [0.0]
    return Guard(Rules(Permissions(responses=limits)), lambda: now[0]), now


def test_responses_are_counted_and_timed() -> None:
    guard, now = responder(ResponseRules(max_messages=2, expires=10.0))
    assert not guard.may_publish(b"r")
    assert guard.lets_through(b"service", b"", b"r")
    assert [guard.may_publish(b"r") for _ in range(3)] == [True, True, False]
    guard.lets_through(b"service", b"", b"r")
    now[0] = 10.5
    assert not guard.may_publish(b"r")


def test_limits_of_zero_or_less_are_none() -> None:
    guard, now = responder(ResponseRules(max_messages=-1, expires=-1.0))
    guard.lets_through(b"service", b"", b"r")
    now[0] = 1e9
    assert all(guard.may_publish(b"r") for _ in range(100))


def test_what_a_guard_remembers_is_bounded() -> None:
    guard, now = responder(ResponseRules())
    for number in range(REPLIES + 10):
        guard.lets_through(b"s", b"", b"r%d" % number)
    assert len(guard._replies) == REPLIES
    assert guard.may_publish(b"r%d" % (REPLIES + 9)), "the newest is never forgotten"
    assert not guard.may_publish(b"r0")
    now[0] = 1000.0
    guard.lets_through(b"s", b"", b"new")
    assert len(guard._replies) == 1, "nothing is kept that may not be answered any more"
    for number in range(3 * REMEMBERED):
        guard.may_publish(b"other.%d" % number)
    assert len(guard._publish) <= REMEMBERED


def test_a_guard_that_has_nothing_to_filter_is_not_asked_about_deliveries() -> None:
    free = Rules(Permissions(publish=SubjectRules(deny=("a",)), subscribe=SubjectRules(allow=("b",))))
    assert not Guard(free, lambda: 0.0).watches_deliveries
