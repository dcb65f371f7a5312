"""The -ERR texts, character for character those of nats-server 2.15, because clients match on them.

An op is `-ERR '<text>'␍␊`. `CLOSING` has the texts after which the server closes the connection.
"""

import re

UNKNOWN_OPERATION = "Unknown Protocol Operation"
CONTROL_LINE_TOO_LONG = "maximum control line exceeded"
MAXIMUM_PAYLOAD = "Maximum Payload Violation"
AUTHORIZATION = "Authorization Violation"
AUTHENTICATION_TIMEOUT = "Authentication Timeout"
INVALID_SUBJECT = "Invalid Subject"
INVALID_PUBLISH_SUBJECT = "Invalid Publish Subject"
INVALID_CLIENT_PROTOCOL = "invalid client protocol"
NO_RESPONDERS_NEEDS_HEADERS = "no responders requires headers support"
MAXIMUM_CONNECTIONS = "maximum connections exceeded"
MAXIMUM_SUBSCRIPTIONS = "maximum subscriptions exceeded"
MAXIMUM_ACCOUNT_CONNECTIONS = "maximum account active connections exceeded"
USER_EXPIRED = "User Authentication Expired"
ACCOUNT_EXPIRED = "Account Authentication Expired"
USER_REVOKED = "User Authentication Revoked"
STALE_CONNECTION = "Stale Connection"

_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}

CLOSING = frozenset(
    {
        UNKNOWN_OPERATION,
        CONTROL_LINE_TOO_LONG,
        MAXIMUM_PAYLOAD,
        AUTHORIZATION,
        AUTHENTICATION_TIMEOUT,
        INVALID_CLIENT_PROTOCOL,
        NO_RESPONDERS_NEEDS_HEADERS,
        MAXIMUM_CONNECTIONS,
        MAXIMUM_ACCOUNT_CONNECTIONS,
        USER_EXPIRED,
        ACCOUNT_EXPIRED,
        USER_REVOKED,
        STALE_CONNECTION,
    }
)


def publish_permission(subject: str) -> str:
    """The text for a publish that is not allowed."""
    return f"Permissions Violation for Publish to {quote(subject)}"


def reply_permission(reply: str) -> str:
    """The text for a publish with a reply subject that is reserved for the server."""
    return f"Permissions Violation for Publish with Reply of {quote(reply)}"


def subscribe_permission(subject: str, queue: str = "") -> str:
    """The text for a subscription that is not allowed (the queue group `_sys_` is the server's own)."""
    text = f"Permissions Violation for Subscription to {quote(subject)}"
    return f"{text} using queue {quote(queue)}" if queue else text


def subscription_ended(subject: str, queue: str, sid: str) -> str:
    """The text for a subscription that is no longer allowed after a reload."""
    return f"{subscribe_permission(subject, queue)} (sid {quote(sid)})"


def too_many_tokens(subject: str) -> str:
    """The text for a subscription to a subject with more tokens than `max_subscription_tokens`."""
    return f"Permissions Violation for Subscription to {quote(subject)}, too many tokens"


def quote(name: str) -> str:
    """A subject as Go quotes it in a text (`%q`): in double quotes, unprintable characters as escapes.

    Bytes that are not UTF-8 are surrogates in `name` (surrogateescape).
    """
    if re.fullmatch(r"[!#-\[\]-~]*", name):  # ASCII that needs no escape: nearly all subjects
        return f'"{name}"'
    return '"' + "".join(map(_escape, name)) + '"'


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[letter]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if letter.isprintable():
        return letter
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def encode_error(text: str) -> bytes:
    """The whole op. Bytes that are not UTF-8 keep their values (surrogateescape)."""
    return f"-ERR '{text}'\r\n".encode("utf-8", "surrogateescape")
