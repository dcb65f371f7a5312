"""Passwords and tokens: plain, hashed, and nearly correct."""

import bcrypt
import pytest

from headwater.model.passwords import is_correct, is_hashed

SECRET = "correct horse"
HASHES = [bcrypt.hashpw(SECRET.encode(), bcrypt.gensalt(4, prefix)).decode() for prefix in (b"2a", b"2b")]
NEARLY = ["", SECRET[:-1], SECRET + " ", SECRET + "\0", SECRET.upper(), "\0", "\ud800", "x" * 100_000]


@pytest.mark.parametrize("stored", [SECRET, *HASHES, HASHES[0].replace("$2a$", "$2y$")])
def test_only_the_password_itself_is_correct(stored: str) -> None:
    assert is_correct(stored, SECRET)
    assert not any(is_correct(stored, shown) for shown in (*NEARLY, *HASHES))


def test_a_hash_is_known_by_its_form() -> None:
    assert all(is_hashed(stored) for stored in HASHES)
    assert not any(is_hashed(stored) for stored in ("", SECRET, "$2a", "$2a$x", "$1$ab$cd", "2a$04$"))


@pytest.mark.parametrize("broken", ["$2a$04$short", "$2a$99$" + "a" * 53, "$2a$04$" + "ä" * 53])
def test_an_invalid_hash_matches_no_password(broken: str) -> None:
    assert not is_correct(broken, SECRET)


def test_bytes_that_bcrypt_ignores_do_not_raise() -> None:
    stored = bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()
    assert is_correct(stored, "x" * 80), "as with nats-server, whose bcrypt takes 72 bytes too"
