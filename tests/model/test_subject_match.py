"""Patterns and subjects, compared as bytes, against the rule as it is read: token by token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater.errors import SubjectError
from headwater.model.subject import validate_subject
from headwater.model.subject_match import is_plain, matches, matches_one


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        (b"a.b", b"a.b", True),
        (b"a.b", b"a.c", False),
        (b"a.*", b"a.b", True),
        (b"a.*", b"a.b.c", False),
        (b"a.*", b"a", False),
        (b"a.>", b"a.b.c", True),
        (b"a.>", b"a", False),
        (b">", b"a", True),
        (b"*.b", b"a.b", True),
        (b">", b"a..b", False),
        (b">", b"a.", False),
        (b">", b"", False),
        (b"", b"", False),
        (b"a.*", b"a.", False),
        (b"foo.*", b"foo.*", True),
        (b"foo.x", b"foo.*", False),
        (b"foo*", b"foob", False),
        (b"*b", b"ab", False),
        (b">.a", b"b.a", False),
        (b"a.", b"a.b", False),
        (b"ab", b"a", False),
        (b"a", b"ab", False),
    ],
)
def test_a_pattern_matches_what_the_document_says(pattern: bytes, subject: bytes, expected: bool) -> None:
    assert matches(pattern, subject) is expected


def by_tokens(pattern: bytes, subject: bytes) -> bool:
    wanted, tokens = pattern.split(b"."), subject.split(b".")
    if b"" in tokens:
        return False
    enough = len(tokens) >= len(wanted) if wanted[-1] == b">" else len(tokens) == len(wanted)
    literal = wanted[:-1] if wanted[-1] == b">" else wanted
    return enough and all(one in (b"*", other) for one, other in zip(literal, tokens, strict=False))


texts = st.lists(st.sampled_from([b"a", b"ab", b"*", b">", b"", b".", b"a*"]), max_size=6)


@given(texts.map(b".".join), texts.map(b".".join))
def test_any_two_texts_match_as_their_tokens_do(pattern: bytes, subject: bytes) -> None:
    assert matches(pattern, subject) is by_tokens(pattern, subject)


def test_one_of_several_patterns_is_enough() -> None:
    assert matches_one((b"a.*", b"b.>"), b"b.c.d")
    assert not matches_one((b"a.*", b"b.>"), b"b")
    assert not matches_one((), b"a")


@given(texts.map(b".".join))
def test_a_plain_subject_is_one_that_a_program_may_publish_to(subject: bytes) -> None:
    try:
        validate_subject(subject.decode())
    except SubjectError:
        assert not is_plain(subject)
    else:
        assert is_plain(subject) is headwater.__compiled__


@pytest.mark.parametrize("subject", [b"a b", b"a\x7f", "ä".encode(), b"a\r\nPUB x"])
def test_what_is_not_printable_is_left_to_the_full_check(subject: bytes) -> None:
    assert not is_plain(subject)
