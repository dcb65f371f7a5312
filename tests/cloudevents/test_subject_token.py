"""Partition keys as subject tokens: legal, distinct, reversible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cloudevents import CloudEventError, key_of_token, subject_token
from headwater.model.subject import validate_subject


@pytest.mark.parametrize(
    ("key", "token"),
    [
        ("customer-7", "customer-7"),
        ("", "%"),
        ("%", "%25"),
        ("a.b", "a%2Eb"),
        ("*", "%2A"),
        (">", "%3E"),
        ("two words\t", "two%20words%09"),
        ("$SYS", "%24SYS"),
        ("é", "%C3%A9"),
        ("\0", "%00"),
    ],
)
def test_key_becomes_a_token(key: str, token: str) -> None:
    assert subject_token(key) == token
    assert key_of_token(token) == key


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_key_gives_a_legal_token_and_comes_back(key: str) -> None:
    token = subject_token(key)
    assert validate_subject(f"orders.{token}") == f"orders.{token}"
    assert "." not in token
    assert key_of_token(token) == key


@given(st.text("%2Ea.é~4150\n") | st.text())
def test_any_token_is_one_of_a_key_or_refused(token: str) -> None:
    try:
        key = key_of_token(token)
    except CloudEventError as error:
        assert error.rule == "not a subject token of a key"
    else:
        assert subject_token(key) == token


@pytest.mark.parametrize("token", ["", "a.b", "%2e", "%41", "%FF", "a%", "é", "a\n"])
def test_token_that_no_key_gives_is_refused(token: str) -> None:
    with pytest.raises(CloudEventError):
        key_of_token(token)


def test_key_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(CloudEventError, match="unpaired surrogate"):
        subject_token("\ud800")
