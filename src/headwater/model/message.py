"""One message as a program sees it: a plain value, its header block still bytes.

Headers are decoded on first access, once (ADR-4). A malformed block therefore disturbs no reader of anything else:
`headers` and `status` raise HeaderError, the rest of the message is whole.

Compiled, a message is one object of 6 pointers; nothing else is made when one arrives.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from headwater.errors import LocalProtocolError
from headwater.model.header_block import parse_status
from headwater.model.headers import Headers, HeaderSource
from headwater.model.status import Status

_SETTLED = "messages that are settled come from `jetstream.pull_consumer(...)`, `push_consumer` or `ordered_consumer`"
_ADVICE = {
    **dict.fromkeys(("ack", "ack_sync", "nak", "term", "in_progress", "metadata", "is_acked"), _SETTLED),
    "header": "it is `message.headers` here",
    "sid": "it is `subscription.sid` here",
}
"""For programs that come from nats-py."""


class Channel(Protocol):
    """The connection of a message, through which it is answered."""

    def respond(self, reply: str, data: bytes, headers: HeaderSource | Headers | None) -> Awaitable[None]:
        """Publish `data` to `reply`."""


class Message:
    """`subject` and `reply` as str (bytes that are no UTF-8 as surrogate escapes); `reply` is empty when absent.

    `data` is the payload, `header_block` the `NATS/1.0` block as it travelled, empty when absent. A message can be pickled,
    for another process; there it has no connection to be answered through.
    """

    __slots__ = ("_headers", "channel", "data", "header_block", "reply", "subject")

    def __init__(
        self, subject: str, data: bytes, reply: str = "", header_block: bytes = b"", channel: Channel | None = None
    ) -> None:
        self.subject = subject
        self.data = data
        self.reply = reply
        self.header_block = header_block
        self.channel = channel
        self._headers: Headers | None = None

    @property
    def headers(self) -> Headers:
        """The headers, empty when the message has none. Raises HeaderError for a malformed block."""
        if self._headers is None:
            self._headers = Headers.parse(self.header_block) if self.header_block else Headers()
        return self._headers

    @property
    def has_changed_headers(self) -> bool:
        """Whether `headers` are no longer those of `header_block`: a program has changed them."""
        headers = self._headers
        return headers is not None and headers.raw is None and bool(self.header_block or headers)

    @property
    def status(self) -> Status | None:
        """The inline status (`NATS/1.0 503 ...`), or None. Raises HeaderError for a malformed first line."""
        return parse_status(self.header_block) if self.header_block else None

    def respond(self, data: bytes = b"", *, headers: HeaderSource | Headers | None = None) -> Awaitable[None]:
        """Publish an answer, with `headers`, to the reply subject; the result may be awaited, as that of `Client.publish`.

        Raises LocalProtocolError when the message has no reply subject, or did not come from a connection.
        """
        if not self.reply:
            raise LocalProtocolError(f"the message on {self.subject!r} has no reply subject", value=self.subject)
        if self.channel is None:
            raise LocalProtocolError("the message did not come from a connection", value=self.subject)
        return self.channel.respond(self.reply, data, headers)

    def __reduce__(self) -> tuple[type["Message"], tuple[str, bytes, str, bytes]]:
        block = bytes(self.headers) if self.has_changed_headers else self.header_block
        return Message, (self.subject, self.data, self.reply, block)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Attributes of other clients' messages, mapped to this one's."""
            advice = _ADVICE.get(name)
            raise AttributeError(f"'Message' object has no attribute {name!r}{f'; {advice}' if advice else ''}")

    def __repr__(self) -> str:
        shown = self.data if len(self.data) <= 40 else self.data[:40] + b"..."
        reply = f" reply={self.reply!r}" if self.reply else ""
        block = f" header_block=<{len(self.header_block)} bytes>" if self.header_block else ""
        return f"<Message {self.subject!r}{reply}{block} data={shown!r}>"
