"""Subject rules, with the cases of nats-server's own table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import SubjectError
from headwater.model.subject import is_literal, is_valid_subject, is_within, patterns_overlap, validate_subject
from headwater.model.subject_match import matches


@pytest.mark.parametrize(
    "subject", [b"a", b"a.b.c", b"a.*", b"*", b">", b"a.>", b"foo*", b">>", b"a.b*.>", b"\x00\xff"]
)
def test_a_valid_subject_is_accepted(subject: bytes) -> None:
    assert is_valid_subject(subject)


@pytest.mark.parametrize(
    "subject", [b"", b".", b".a", b"a.", b"a..b", b">.a", b"a.>.b", b"a b", b"a\tb", b"a\r", b"a\n"]
)
def test_an_invalid_subject_is_refused(subject: bytes) -> None:
    assert not is_valid_subject(subject)


@pytest.mark.parametrize(("subject", "literal"), [(b"a.b", True), (b"a.*", False), (b"a.>", False), (b"a*.>b", True)])
def test_only_a_whole_token_is_a_wildcard(subject: bytes, literal: bool) -> None:
    assert is_literal(subject) is literal


tokens = st.sampled_from([b"a", b"b", b"*"])
patterns = st.tuples(st.lists(tokens, min_size=1, max_size=3), st.booleans()).map(
    lambda made: b".".join([*made[0], *([b">"] if made[1] else [])])
)


@given(patterns, patterns, st.lists(st.sampled_from([b"a", b"b"]), min_size=1, max_size=5).map(b".".join))
def test_patterns_that_share_a_subject_overlap(left: bytes, right: bytes, subject: bytes) -> None:
    if matches(left, subject) and matches(right, subject):
        assert patterns_overlap(left, right)


@given(patterns, patterns)
def test_overlapping_patterns_share_some_subject(left: bytes, right: bytes) -> None:
    import itertools

    every = (b".".join(made) for size in range(1, 6) for made in itertools.product([b"a", b"b"], repeat=size))
    assert patterns_overlap(left, right) == any(matches(left, s) and matches(right, s) for s in every)


@given(patterns, patterns, st.lists(st.sampled_from([b"a", b"b"]), min_size=1, max_size=5).map(b".".join))
def test_what_a_narrower_pattern_matches_is_matched_by_the_wider(narrow: bytes, wide: bytes, subject: bytes) -> None:
    if is_within(narrow, wide) and matches(narrow, subject):
        assert matches(wide, subject)


@given(patterns, patterns)
def test_a_pattern_whose_subjects_are_all_matched_is_within(narrow: bytes, wide: bytes) -> None:
    import itertools

    # A token that no pattern names stands for all others.
    every = (b".".join(made) for size in range(1, 6) for made in itertools.product([b"a", b"b", b"x"], repeat=size))
    assert is_within(narrow, wide) == all(matches(wide, subject) for subject in every if matches(narrow, subject))


@pytest.mark.parametrize("subject", ["", "a b", "a..b", ".a", "a.*", "a.>", "a\r\nPUB x"])
def test_a_program_hears_what_is_wrong_with_its_subject(subject: str) -> None:
    with pytest.raises(SubjectError) as caught:
        validate_subject(subject)
    assert caught.value.value == subject


def test_wildcards_are_for_subscriptions() -> None:
    assert validate_subject("a.*.>", wildcards=True) == "a.*.>"
    with pytest.raises(SubjectError):
        validate_subject("a.>.b", wildcards=True)
