"""Passwords and tokens, as configured, against what a client shows. Comparing takes the same time wherever they differ.

A stored password may be a bcrypt hash ("$2a$11$..."). Checking one takes a tenth of a second and more of CPU, on
purpose: `is_correct` must then run off the event loop's thread. No error and no log line quotes either side.
"""

from typing import TYPE_CHECKING

from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from types import ModuleType

_BCRYPT = tuple(f"$2{kind}$" for kind in "abxy")
_BCRYPT_BYTES = 72  # bcrypt looks at no more of a password


def is_hashed(stored: str) -> bool:
    """Whether `stored` is a bcrypt hash, so that checking against it is slow."""
    return stored.startswith(_BCRYPT) and stored[4:6].isdecimal() and stored[6:7] == "$"


def is_correct(stored: str, shown: str) -> bool:
    """Whether `shown` is the password. Slow when `stored` is hashed. Raises EnvironmentProblem without bcrypt."""
    given = shown.encode("utf-8", "surrogatepass")
    if not is_hashed(stored):
        import hmac  # here: it brings OpenSSL along, and most servers know no password

        return hmac.compare_digest(stored.encode("utf-8", "surrogatepass"), given)
    try:
        return bool(_bcrypt().checkpw(given[:_BCRYPT_BYTES], stored.encode("ascii")))
    except ValueError:  # a hash that is none, or a password that no hash can be made of
        return False


def require_bcrypt() -> None:
    """Raises EnvironmentProblem when hashed passwords cannot be checked here; ask before the first client does."""
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
