"""Permissions against a naive oracle that knows only literal subjects."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from headwater.authorization.guard import Guard
from headwater.authorization.permissions import Rules
from headwater.model.subject_match import matches
from headwater.options.access import Permissions, SubjectRules
from headwater.wire.message_view import composed

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
    """Whether a subscriber with this queue group may receive a message on this literal subject."""
    if any(speaks_of(entry, subject, queue) for entry in permitted.deny):
        return False
    if permitted.allow is None:
        return True
    groups = [entry for entry in permitted.allow if " " in entry and matches(entry.split()[0].encode(), subject)]
    if queue and groups:
        return any(speaks_of(entry, subject, queue) for entry in groups)
    return any(" " not in entry and speaks_of(entry, subject, queue) for entry in permitted.allow)


@given(publish_rules)
def test_a_publish_is_allowed_exactly_when_the_lists_allow_it(permitted: SubjectRules) -> None:
    made = Rules(Permissions(publish=permitted))
    for subject in SUBJECTS:
        assert made.may_publish(subject) == oracle(permitted, subject, b"")


@given(rules, patterns, st.sampled_from(QUEUES))
def test_no_subscription_receives_what_its_user_may_not(permitted: SubjectRules, pattern: str, queue: bytes) -> None:
    guard = Guard(Rules(Permissions(subscribe=permitted)), lambda: 0.0)
    wanted = pattern.encode()
    if not guard.may_subscribe(wanted, queue):
        return
    for subject in SUBJECTS:
        if not matches(wanted, subject):
            continue
        received = not guard.watches_deliveries or guard.lets_through(composed(subject, b"", b"", b""), queue)
        denied = any(speaks_of(entry, subject, queue) for entry in permitted.deny)
        assert received == (not denied)
        if permitted.allow is not None and (not queue or not any(" " in entry for entry in permitted.allow)):
            assert not received or oracle(permitted, subject, queue)


@given(rules, st.sampled_from(SUBJECTS), st.sampled_from(QUEUES))
def test_a_literal_subscription_is_allowed_exactly_when_its_messages_are(
    permitted: SubjectRules, subject: bytes, queue: bytes
) -> None:
    guard = Guard(Rules(Permissions(subscribe=permitted)), lambda: 0.0)
    assert guard.may_subscribe(subject, queue) == oracle(permitted, subject, queue)
