"""Kinds of violation of the protocol, as the parsers of clients and peers report them to `on_violation`.

A violation with a text is answered with that -ERR before the connection is closed, one without is not answered: so do
gnatsd 1.2 and later.
"""

from headwater.wire import error_texts

UNKNOWN_OPERATION: int = 1
CONTROL_LINE_TOO_LONG: int = 2
PAYLOAD_TOO_LARGE: int = 3
BAD_ARGUMENTS: int = 4
NOT_CONNECTED: int = 5  # a client's op before CONNECT on a server that requires credentials

TEXTS = {
    UNKNOWN_OPERATION: error_texts.UNKNOWN_OPERATION,
    CONTROL_LINE_TOO_LONG: error_texts.CONTROL_LINE_TOO_LONG,
    PAYLOAD_TOO_LARGE: error_texts.MAXIMUM_PAYLOAD,
    NOT_CONNECTED: error_texts.AUTHORIZATION,
}
