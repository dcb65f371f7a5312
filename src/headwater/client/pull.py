"""Reading a pull consumer: fetch a batch, acknowledge message by message.

A pull request ends with its last message, or with a status in place of one:

    404 No Messages            nothing there, and `no_wait` was asked          the batch is what came so far
    408 Request Timeout        the request expired                             the batch is what came so far
    409 Batch Completed, Message Size Exceeds MaxBytes                         the batch is what came so far
    409 Consumer Deleted, Leadership Change, …                                 JetStreamError, unless something came
    503                        nobody listens: no such consumer                NoResponders
    100                        a heartbeat                                     passed over
    200                        OK: no status that says anything                a message like any other

What came is never thrown away for an error behind it: the next fetch meets that error again.

Where a message stands is in its reply subject (9 tokens; longer ones have domain and account in front):

    $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<timestamp ns>.<pending>
    $JS.ACK.<domain or _>.<account hash>.<stream>. … .<pending>[.<random>]
"""

import asyncio
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.client.events import Event, Reconnected
from headwater.client.nats_py_names import STREAM_MESSAGE, STREAM_MESSAGE_ADVICE, install
from headwater.errors import HeaderError, JetStreamError, LocalProtocolError, NoResponders, RequestTimeout
from headwater.model.headers import Headers
from headwater.model.message import Message
from headwater.model.status import IDLE_HEARTBEAT, NO_RESPONDERS, NOT_FOUND, OK, REQUEST_TIMEOUT, Status

if TYPE_CHECKING:
    from headwater.client.client import Client
    from headwater.client.consume import Consumption

GRACE_SECONDS = 2.0  # beyond the server's own expiry, before a request counts as lost
_ENDS_A_BATCH = frozenset({"Batch Completed", "Message Size Exceeds MaxBytes"})
_TOKENS = 9
_TOKENS_WITH_DOMAIN = (11, 12)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where a delivered message stands; sequences are 1-based, `timestamp_ns` since 1970, `pending` behind it."""

    stream: str
    consumer: str
    delivered: int
    stream_seq: int
    consumer_seq: int
    timestamp_ns: int
    pending: int
    domain: str = ""


def parse_metadata(reply: str) -> Metadata:
    """Read `$JS.ACK.…`. Raises LocalProtocolError for a message that no consumer has delivered."""
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
    """A message of a stream, and the ways to settle it. The message's own parts are in `message`."""

    __slots__ = ("_client", "_metadata", "message")

    def __init__(self, client: "Client", message: Message) -> None:
        self._client = client
        self._metadata: Metadata | None = None
        self.message = message

    @property
    def metadata(self) -> Metadata:
        """Where it stands in the stream and with the consumer; read from the reply subject at first use."""
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

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # nats-py's names, installed below

    async def ack(self, *, confirm: float | None = None) -> None:
        """Done with it. With `confirm`, wait that many seconds for the server to say that it knows."""
        if confirm is None:
            await self._client.publish(self.message.reply, b"+ACK")
        else:
            await self._client.request(self.message.reply, b"+ACK", timeout=confirm)

    async def nak(self, delay: float = 0.0) -> None:
        """Not done: deliver it again, after `delay` seconds."""
        body = b"-NAK" if delay <= 0 else b'-NAK {"delay":%d}' % int(delay * 1e9)
        await self._client.publish(self.message.reply, body)

    async def term(self, reason: str = "") -> None:
        """Never deliver it again; the `reason` goes into the server's advisory."""
        await self._client.publish(self.message.reply, f"+TERM {reason}".rstrip().encode())

    async def in_progress(self) -> None:
        """Still at work: start the ack wait anew."""
        await self._client.publish(self.message.reply, b"+WPI")


class PullConsumer:
    """Fetches from one consumer."""

    def __init__(self, client: "Client", stream: str, name: str, prefix: str = "$JS.API") -> None:
        self.stream = stream
        self.name = name
        self._client = client
        self._subject = f"{prefix}.CONSUMER.MSG.NEXT.{stream}.{name}"

    def consume(
        self, batch: int = 500, *, expires: float = 30.0, heartbeat: float = 5.0, max_bytes: int = 0
    ) -> "Consumption":
        """Read without end: `async with` it, and iterate. Asks for `batch` messages, or `max_bytes`, at a time."""
        from headwater.client.consume import Consumption

        return Consumption(self._client, self._subject, batch, expires, heartbeat, max_bytes)

    async def fetch(self, batch: int = 100, *, timeout: float = 5.0, no_wait: bool = False) -> list[StreamMessage]:
        """Up to `batch` messages, as many as come within `timeout` seconds; with `no_wait` those that are there.

        Raises JetStreamError when the consumer is gone, NoResponders when there is none of that name, RequestTimeout
        when the server says nothing at all. After a reconnect the rest is asked for again, for the time that is left.
        """
        if batch < 1:
            raise LocalProtocolError("a batch holds at least one message", value=batch, limit=1)
        inbox = f"{self._client.new_inbox()}.{secrets.token_hex(4)}"
        subscription = await self._client.subscribe(inbox)
        came: list[StreamMessage] = []
        deadline = asyncio.get_running_loop().time() + timeout

        def ask(left: float) -> None:
            asked: dict[str, object] = {"batch": batch - len(came), "expires": int(left * 1e9)}
            if no_wait or left <= 0:
                asked = {"batch": batch - len(came), "no_wait": True}
            self._client.publish(self._subject, msgspec.json.encode(asked), reply=inbox)

        def ask_again(event: Event) -> None:
            if isinstance(event, Reconnected):
                ask(deadline - asyncio.get_running_loop().time())

        forget = self._client.on_event(ask_again)
        try:
            ask(timeout)
            async with asyncio.timeout(max(timeout, 0.0) + GRACE_SECONDS):
                while len(came) < batch:
                    message = await subscription.next()
                    status = status_of(message)
                    if status is None:
                        came.append(StreamMessage(self._client, message))
                    elif self._ends(status, came):
                        break
        except TimeoutError as error:
            if not came:
                raise RequestTimeout(f"consumer {self.stream}.{self.name} does not answer", limit=timeout) from error
        finally:
            forget()
            subscription.unsubscribe()
        return came

    def _ends(self, status: Status, came: list[StreamMessage]) -> bool:
        """Whether a status ends the batch; raises when it ends more than that and nothing came."""
        if status.code == IDLE_HEARTBEAT:
            return False
        description = status.description or ""
        if came or status.code in (NOT_FOUND, REQUEST_TIMEOUT) or description in _ENDS_A_BATCH:
            return True
        if status.code == NO_RESPONDERS:
            raise NoResponders(f"there is no consumer {self.stream}.{self.name}", value=self.name)
        raise JetStreamError(status.code, 0, description or "the pull request was refused")


def status_of(message: Message, *, pushed: bool = False) -> Status | None:
    """The status of a message that is one; one with an acknowledgement subject came from the stream, whatever it holds.

    A push consumer's status may have a reply subject too: where a flow control request is answered.
    """
    if not message.header_block or message.data or (message.reply and not pushed):
        return None
    if message.reply.startswith("$JS.ACK."):
        return None
    try:
        status = message.status
    except HeaderError:
        return None
    return None if status is not None and status.code == OK else status


install(StreamMessage, STREAM_MESSAGE, STREAM_MESSAGE_ADVICE)
