"""A message delivered by a consumer: its position, and its acknowledgement.

The position is in the reply subject (9 tokens; longer ones have domain and account in front):

    $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<timestamp ns>.<pending>
    $JS.ACK.<domain or _>.<account hash>.<stream>. … .<pending>[.<random>]
"""

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from headwater.client.nats_py_names import STREAM_MESSAGE, STREAM_MESSAGE_ADVICE, install
from headwater.client.requester import Requester
from headwater.client.units import YEAR, in_seconds, nanoseconds
from headwater.client_connection.timeouts import Timeout, seconds_of
from headwater.errors import HeaderError, LocalProtocolError
from headwater.model.headers import Headers
from headwater.model.message import Message
from headwater.model.status import IDLE_HEARTBEAT, OK, Status

STATUS_LOST = Status(IDLE_HEARTBEAT, "a status, lost on a route without headers")
"""A route of the oldest cluster protocol has no headers: a status arrives as an empty message."""
_TOKENS = 9
_TOKENS_WITH_DOMAIN = (11, 12)


class Metadata(NamedTuple):
    """The position of a delivered message; sequences are 1-based, `timestamp_ns` since 1970, `pending` messages follow
    it."""

    stream: str
    consumer: str
    delivered: int
    stream_seq: int
    consumer_seq: int
    timestamp_ns: int
    pending: int
    domain: str = ""


def parse_metadata(reply: str) -> Metadata:
    """Parse `$JS.ACK.…`. Raises LocalProtocolError for a message that no consumer delivered."""
    tokens = reply.split(".")
    domain = ""
    if len(tokens) in _TOKENS_WITH_DOMAIN:
        domain = "" if tokens[2] == "_" else tokens[2]
        tokens = [*tokens[:2], *tokens[4:11]]
    numbers = tokens[4:]
    if len(tokens) != _TOKENS or tokens[:2] != ["$JS", "ACK"] or not all(map(_is_number, numbers)):
        raise LocalProtocolError(f"{reply!r} is no acknowledgement subject: no consumer delivered this", value=reply)
    delivered, stream_seq, consumer_seq, timestamp_ns, pending = map(int, numbers)
    return Metadata(tokens[2], tokens[3], delivered, stream_seq, consumer_seq, timestamp_ns, pending, domain)


def _is_number(token: str) -> bool:
    return token.isascii() and token.isdecimal() and len(token) <= 20  # uint64


class StreamMessage:
    """A message of a stream, with the methods to acknowledge it. `message` is the message itself."""

    __slots__ = ("_client", "_metadata", "message")

    def __init__(self, client: Requester, message: Message) -> None:
        self._client = client
        self._metadata: Metadata | None = None
        self.message = message

    @property
    def metadata(self) -> Metadata:
        """Its position in the stream and the consumer; parsed from the reply subject at first use."""
        if self._metadata is None:
            self._metadata = parse_metadata(self.message.reply)
        return self._metadata

    @property
    def headers(self) -> Headers:
        """The headers. Raises HeaderError for a malformed block."""
        return self.message.headers

    @property
    def data(self) -> bytes:
        """The payload."""
        return self.message.data

    @property
    def subject(self) -> str:
        """The subject it was published on."""
        return self.message.subject

    @property
    def reply(self) -> str:
        """The acknowledgement subject."""
        return self.message.reply

    def __repr__(self) -> str:
        try:
            where = self.metadata
        except LocalProtocolError:
            return f"<StreamMessage {self.message!r}>"
        again = f", delivery {where.delivered}" if where.delivered > 1 else ""
        place = f"{where.stream}:{where.stream_seq} to {where.consumer}{again}"
        return f"<StreamMessage {place} {self.subject!r} {len(self.data)} bytes>"

    if TYPE_CHECKING:  # nats-py's names for the same things, installed below

        @property
        def header(self) -> Headers: ...

        async def ack_sync(self, timeout: Timeout = 1.0) -> None: ...

    async def ack(self, *, confirm: Timeout | None = None) -> None:
        """Acknowledge the message. With `confirm`, wait up to that many seconds for the server's confirmation."""
        if confirm is None:
            await self._client.publish(self.message.reply, b"+ACK")
        else:
            await self._client.request(self.message.reply, b"+ACK", timeout=seconds_of(confirm))

    async def nak(self, delay: float | timedelta = 0.0) -> None:
        """Have the message delivered again, after `delay` seconds."""
        wait = in_seconds(delay, "delay", YEAR) if delay else 0
        body = b'-NAK {"delay":%d}' % nanoseconds(wait) if wait else b"-NAK"
        await self._client.publish(self.message.reply, body)

    async def term(self, reason: str = "") -> None:
        """Have the message never delivered again; `reason` is shown in the server's advisory."""
        await self._client.publish(self.message.reply, f"+TERM {reason}".rstrip().encode())

    async def in_progress(self) -> None:
        """Restart the ack wait, because work on the message goes on."""
        await self._client.publish(self.message.reply, b"+WPI")


def status_of(message: Message, *, pushed: bool = False) -> Status | None:
    """The status in a message, None for other messages; one with an acknowledgement subject came from the stream,
    whatever its headers.

    A push consumer's status may have a reply subject too, to answer a flow-control request.
    """
    if message.data or (message.reply and not pushed) or message.reply.startswith("$JS.ACK."):
        return None
    if not message.header_block:  # messages of a stream have an acknowledgement subject, even on routes without headers
        return None if message.reply and not message.reply.startswith("$JS.FC.") else STATUS_LOST
    try:
        status = message.status
    except HeaderError:
        return None
    return None if status is not None and status.code == OK else status


install(StreamMessage, STREAM_MESSAGE, STREAM_MESSAGE_ADVICE)
