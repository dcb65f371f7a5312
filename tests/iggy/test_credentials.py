"""What is stored of passwords and tokens, and what a name must be."""

import pytest

from headwater.errors import IggyError
from headwater.iggy.credentials import (
    check_password,
    check_token_name,
    check_username,
    fits,
    hash_password,
    new_token,
    token_digest,
)


def counting(start: int) -> "Entropy":
    return Entropy(start)


class Entropy:
    """Bytes that count on."""

    def __init__(self, start: int) -> None:
        self._next = start

    def __call__(self, size: int) -> bytes:
        self._next += size
        return bytes((self._next + place) % 256 for place in range(size))


def test_a_password_fits_its_own_hash_and_no_other() -> None:
    entropy = counting(0)
    stored = hash_password("secret", entropy)
    assert fits("secret", stored) and not fits("Secret", stored) and not fits("", stored)
    assert b"secret" not in stored


def test_the_same_password_is_stored_differently_each_time() -> None:
    entropy = counting(0)
    assert hash_password("secret", entropy) != hash_password("secret", entropy)


def test_a_token_is_long_and_its_digest_says_nothing_of_it() -> None:
    entropy = counting(7)
    token, other = new_token(entropy), new_token(entropy)
    assert token != other and len(token) == 40
    assert token_digest(token) == token_digest(token) != token_digest(other)
    assert len(token_digest(token)) == 32


@pytest.mark.parametrize(
    ("check", "lowest", "highest", "number"),
    [(check_username, 3, 50, 43), (check_password, 3, 100, 44), (check_token_name, 3, 30, 50)],
)
def test_lengths_are_upstreams(check: object, lowest: int, highest: int, number: int) -> None:
    assert callable(check)
    check("x" * lowest)
    check("x" * highest)
    for wrong in ("x" * (lowest - 1), "x" * (highest + 1)):
        with pytest.raises(IggyError) as refused:
            check(wrong)
        assert refused.value.number == number


def test_a_user_name_is_measured_in_bytes() -> None:
    check_username("é" * 25)
    with pytest.raises(IggyError, match="50 bytes"):
        check_username("é" * 26)
