"""Compares configured passwords and tokens with those that a client sends, in constant time.

A stored password may be a bcrypt hash ("$2a$11$..."). Checking one takes a tenth of a second of CPU or more, by design,
so `is_correct` must then run outside the event loop's thread. No error and no log line quotes a password.
"""

from typing import TYPE_CHECKING

from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from types import ModuleType

_BCRYPT = tuple(f"$2{kind}$" for kind in "abxy")
_BCRYPT_BYTES = 72  # bcrypt ignores the rest of a password


def is_hashed(stored: str) -> bool:
    """Whether `stored` is a bcrypt hash, which is slow to check."""
    return stored.startswith(_BCRYPT) and stored[4:6].isdecimal() and stored[6:7] == "$"


def is_correct(stored: str, shown: str) -> bool:
    """Whether `shown` is the password. Slow if `stored` is hashed. Raises EnvironmentProblem without bcrypt."""
    given = shown.encode("utf-8", "surrogatepass")
    if not is_hashed(stored):
        import hmac  # here: it imports OpenSSL, and most servers have no password

        return hmac.compare_digest(stored.encode("utf-8", "surrogatepass"), given)
    try:
        return bool(_bcrypt().checkpw(given[:_BCRYPT_BYTES], stored.encode("ascii")))
    except ValueError:  # an invalid hash, or a password that cannot be hashed
        return False


def require_bcrypt() -> None:
    """Raises EnvironmentProblem if hashed passwords cannot be checked here; call this at the start, before clients
    connect.
    """
    _bcrypt()


def _bcrypt() -> "ModuleType":
    try:
        import bcrypt
    except ImportError as error:
        raise EnvironmentProblem(
            "a password in the configuration is a bcrypt hash, and the package bcrypt is not installed",
            hint="pip install 'headwater[auth]'",
        ) from error
    return bcrypt
