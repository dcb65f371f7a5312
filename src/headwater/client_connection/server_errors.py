"""Maps -ERR to an exception, and decides whether it ends the connection.

nats-server closes the connection after most of its errors; after those about one subject, or one permission, it goes
on. Texts are matched without regard to case, as nats.go does: older servers spell some of them otherwise.
"""

import re
from typing import NamedTuple

from headwater.errors import AuthorizationError, ServerError
from headwater.wire import error_texts

_CLOSING = frozenset(text.lower() for text in error_texts.CLOSING)
# "User Authentication Expired", "Account Authentication Revoked" and their like end the connection; a missing
# permission does not.
_CREDENTIALS = ("authorization ", "authentication ", "user authentication ", "account authentication ")
_PERMISSIONS = ("permissions violation",)
_ABOUT_LOGIN = "a user and password, a token, an nkey or credentials are missing or wrong"
_REFUSED = re.compile(
    r'permissions violation for (?:(?P<publish>publish)|subscription) (?:to|with reply of) "(?P<subject>.*?)"'
    r'(?: using queue "(?P<queue>.*)")?',
    re.IGNORECASE | re.DOTALL,
)


class Refusal(NamedTuple):
    """An operation refused by permissions: publishing on a subject or with it as the reply, or subscribing."""

    publishing: bool
    subject: str
    queue: str


def refusal_of(text: str) -> Refusal | None:
    """The refused operation in the text of -ERR; None for other errors."""
    found = _REFUSED.fullmatch(text)
    return Refusal(found["publish"] is not None, found["subject"], found["queue"] or "") if found else None


def server_error(text: str) -> ServerError:
    """The exception for the text of -ERR; its `value` is that text."""
    kind = AuthorizationError if text.lower().startswith(_CREDENTIALS + _PERMISSIONS) else ServerError
    hint = _ABOUT_LOGIN if text.lower() == error_texts.AUTHORIZATION.lower() else ""
    return kind(f"the server says: {text}", value=text, hint=hint)


def ends_the_connection(text: str) -> bool:
    """Whether the server closes the connection after this -ERR."""
    low = text.lower()
    return low in _CLOSING or low.startswith(_CREDENTIALS)
