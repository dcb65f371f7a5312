"""Passwords and personal access tokens: their stored form, and how a login is checked.

A password is stored as salt and scrypt hash, a token as a hash alone (40 random characters cannot be guessed). Both are
compared in constant time. Checking a password is slow on purpose, so it belongs in a worker thread.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Final

from headwater.iggy_wire.error_numbers import refusal

ROOT: Final = "iggy"  # upstream's well-known first user and password
ROOT_ID: Final = 0  # as upstream counts; a store of an earlier release is renumbered at its first start
ROOT_ID_BEFORE: Final = 1
_SALT: Final = 16
_COST: Final = 1 << 14  # scrypt n: 16 MiB and some 40 ms, the usual interactive setting
_TOKEN_BYTES: Final = 30
_NAME: Final = (3, 50)
_PASSWORD: Final = (3, 100)
_TOKEN_NAME: Final = (3, 30)

Entropy = Callable[[int], bytes]


def hash_password(password: str, entropy: Entropy) -> bytes:
    """Salt and hash. Slow on purpose."""
    salt = entropy(_SALT)
    return salt + _scrypt(password, salt)


def fits(password: str, stored: bytes) -> bool:
    """Whether this is the password. Slow on purpose."""
    return hmac.compare_digest(_scrypt(password, stored[:_SALT]), stored[_SALT:])


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=_COST, r=8, p=1, dklen=32, maxmem=64 << 20)


def new_token(entropy: Entropy) -> str:
    return base64.urlsafe_b64encode(entropy(_TOKEN_BYTES)).decode()


def token_digest(token: str) -> bytes:
    return hashlib.blake2b(token.encode(), digest_size=32).digest()


def check_username(name: str) -> None:
    """Raises IggyError."""
    if not _NAME[0] <= len(name.encode()) <= _NAME[1]:
        raise refusal("invalid_username", f"a user name has {_NAME[0]} to {_NAME[1]} bytes")


def check_password(password: str) -> None:
    """Raises IggyError."""
    if not _PASSWORD[0] <= len(password) <= _PASSWORD[1]:
        raise refusal("invalid_password", f"a password has {_PASSWORD[0]} to {_PASSWORD[1]} characters")


def check_token_name(name: str) -> None:
    """Raises IggyError."""
    if not _TOKEN_NAME[0] <= len(name) <= _TOKEN_NAME[1]:
        raise refusal("invalid_personal_access_token_name", f"{_TOKEN_NAME[0]} to {_TOKEN_NAME[1]} characters")
