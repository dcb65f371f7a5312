"""The -ERR texts, letter by letter as nats-server 2.15 sends them: clients match on them.

An op is `-ERR '<text>'␍␊`. Which of them end the connection is the sender's business; `CLOSING` names those that do.
"""

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
STALE_CONNECTION = "Stale Connection"

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
        STALE_CONNECTION,
    }
)


def queue_permission(subject: str, queue: str) -> str:
    """The text for a subscription that may not use this queue group (`_sys_` is the server's own)."""
    return f'Permissions Violation for Subscription to "{subject}" using queue "{queue}"'


def encode_error(text: str) -> bytes:
    """The whole op. Bytes that are no UTF-8 travel as they came (surrogateescape)."""
    return f"-ERR '{text}'\r\n".encode("utf-8", "surrogateescape")
