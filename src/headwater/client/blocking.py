"""A NATS client without an event loop: requests, JetStream API calls, and feeding a parser of the caller's own.

Spark plans and reads in processes that do one thing at a time, where an asyncio client would be of no use. This client
has what those processes need:

    request / api      one question, one answer, a deadline
    subscribe, pull    start deliveries to a subscription
    feed               wait for bytes and let the caller's parser have them

While a subscription is being fed, its deliveries go to the caller's parser; a `request` in between would read and drop
them. So make requests first, then pull. There is no reconnect: a lost connection raises TransportError, and the owner,
which has the position, connects again.

Credentials, trust and transport are set by the same `ClientOptions` as for the asyncio client; WebSocket is not
supported here. Answers PING wherever it reads. One thread at a time.
"""

import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from headwater.client_connection.server_errors import server_error
from headwater.client_connection.server_url import ServerAddress, parse_server_urls
from headwater.errors import (
    ConfigError,
    EnvironmentProblem,
    JetStreamError,
    NoResponders,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
)
from headwater.net.blocking import BlockingConnection, deadline_after, first_that_answers
from headwater.wire.ack_runs import RUNS
from headwater.wire.handshake import ServerInfo, decode_info
from headwater.wire.memory import OutputBuffer
from headwater.wire.message_view import MessageView
from headwater.wire.publish import OpWriter
from headwater.wire.server_ops import RecordingHandler, ServerOpParser

if TYPE_CHECKING:
    from headwater.client_connection.options import ClientOptions

MAILBOX_SID: int = 1


class _Mailbox(RecordingHandler):
    """Collects the answers that the client itself waits for."""

    def __init__(self) -> None:
        RecordingHandler.__init__(self)
        self.info: bytes = b""
        self.pongs = 0
        self.wanted = b""
        self.answer: tuple[bytes, bytes] | None = None

    def on_message(self, message: MessageView) -> int:
        if message.sid == MAILBOX_SID and message.subject_bytes() == self.wanted:
            buffer = message.buffer
            block, data = buffer[message.headers : message.payload], buffer[message.payload : message.end]
            self.answer = bytes(block), bytes(data)
        return 0

    def on_info(self, json: bytes) -> int:
        self.info = json
        return 0

    def on_pong(self) -> int:
        self.pongs += 1
        return 0


class BlockingClient:
    """A connected client; make one with `connect`."""

    def __init__(self, connection: BlockingConnection, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout
        self._mailbox = _Mailbox()
        self._parser = ServerOpParser(self._mailbox)
        self._parser.greeting = True
        self._output = OutputBuffer()
        self._writer = OpWriter(self._output)
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._last_request = 0
        self._last_sid = MAILBOX_SID
        self.info = ServerInfo()
        self.requests = 0  # requests sent, to JetStream or other services
        self.api_prefix = "$JS.API"
        self.api_headers = b""  # header block of every call of the API

    @classmethod
    def connect(cls, options: "ClientOptions") -> Self:
        """Connect to the first of `options.servers` that answers within `options.connect_timeout` seconds.

        Raises ConfigError for a URL that is none or a file that cannot be used, AuthorizationError when a server refuses
        the credentials, and when no server can be reached what `first_that_answers` raises.
        """
        return first_that_answers(parse_server_urls(tuple(options.servers)), partial(cls._connected, options))

    @classmethod
    def _connected(cls, options: "ClientOptions", address: ServerAddress) -> Self:
        if address.is_websocket:
            raise ConfigError(f"{address.url}: WebSocket is for the asyncio client", value=address.url)
        timeout = options.connect_timeout
        client = cls(BlockingConnection.dial(address.host, address.port, deadline_after(timeout)), timeout)
        try:
            client._handshake(options, address)
        except BaseException:
            client.close()
            raise
        return client

    def _handshake(self, options: "ClientOptions", address: ServerAddress) -> None:
        deadline = deadline_after(self._timeout)
        mailbox = self._mailbox
        if options.tls_first:
            self._secure(options, address, deadline)
        try:
            while not mailbox.info:
                self._read(deadline, "INFO")
        except (TransportError, RequestTimeout) as error:
            if not options.tls_first:
                error.hint = error.hint or "perhaps the server begins with TLS: tls_first"
            raise
        self.info = decode_info(mailbox.info)
        if not options.tls_first and (self.info.tls_required or address.is_secure or options.wants_tls):
            if not self.info.tls_required and not self.info.tls_available:
                raise EnvironmentProblem(f"{address.where} does not speak TLS", value=address.where)
            self._secure(options, address, deadline)
        introduction = options.credentials.fill(options.introduction(), address, self.info.nonce)
        self._writer.connect(introduction)
        self._writer.subscribe(f"{self._inbox}.*", "", MAILBOX_SID)
        self._writer.ping()
        self.flush()
        try:
            while not mailbox.pongs:
                self._read(deadline, "PONG")
        except TransportError:
            # nats-server writes -ERR and closes; the error may be in the bytes received before the end.
            self._check()
            raise

    def _secure(self, options: "ClientOptions", address: ServerAddress, deadline: float) -> None:
        """Start TLS. The context is the program's own, or made from its files."""
        from headwater.net.tls import client_context

        context = options.tls
        if isinstance(context, bool):
            names = (options.tls_ca, options.tls_cert, options.tls_key)
            context = client_context(*(Path(name) if name else None for name in names))
        self._connection.secure(context, options.tls_hostname or address.verify_as or address.host, deadline)

    def publish(self, subject: str, payload: bytes = b"", reply: str = "", header_block: bytes = b"") -> None:
        """Send one message. Raises TransportError, and SubjectError for an invalid subject."""
        self._writer.publish(subject, reply, header_block, payload)
        self.flush()

    def request(
        self, subject: str, payload: bytes = b"", *, timeout: float | None = None, header_block: bytes = b""
    ) -> tuple[bytes, bytes]:
        """Send a request and return the first answer: its header block and its payload.

        Raises NoResponders when there is no subscriber, RequestTimeout after `timeout` seconds, TransportError when the
        connection is lost and ServerError when the server answers -ERR.
        """
        seconds = self._timeout if timeout is None else timeout
        deadline = deadline_after(seconds)
        self._last_request += 1
        self.requests += 1
        reply = f"{self._inbox}.{self._last_request}"
        mailbox = self._mailbox
        mailbox.wanted = reply.encode()
        mailbox.answer = None
        self.publish(subject, payload, reply, header_block)
        while mailbox.answer is None:
            self._read(deadline, f"an answer to {subject}")
        answer: tuple[bytes, bytes] = mailbox.answer
        if answer[0].startswith(b"NATS/1.0 503") and not answer[1]:
            raise NoResponders(f"nobody answers {subject}", value=subject)
        return answer

    def api(
        self, call: str, body: Mapping[str, object] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """A JetStream API call, such as `STREAM.INFO.ORDERS`; returns the decoded answer.

        Raises JetStreamError for an error answer, EnvironmentProblem when the server has no JetStream, and what
        `request` raises.
        """
        payload = b"" if body is None else msgspec.json.encode(body)
        try:
            answer = self.request(f"{self.api_prefix}.{call}", payload, timeout=timeout, header_block=self.api_headers)[
                1
            ]
        except NoResponders as error:
            raise EnvironmentProblem(
                f"{self._connection.address} has no JetStream for this account under {self.api_prefix}",
                value=call,
                hint="start nats-server with -js, or `headwater serve -js`",
            ) from error
        try:
            decoded: dict[str, Any] = msgspec.json.decode(answer, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise RemoteProtocolError(f"{call} was answered with something that is no JSON: {error}") from error
        problem = decoded.get("error")
        if isinstance(problem, dict):
            code, detail = int(problem.get("code", 0)), str(problem.get("description", ""))
            raise JetStreamError(code, int(problem.get("err_code", 0)), detail)
        return decoded

    def subscribe(self, *, tokens: bool = False, runs: bool = False) -> tuple[int, str]:
        """A new inbox and the sid under which its messages come; with `tokens`, those to `<inbox>.<any token>`. `runs`: the
        caller takes acknowledgements by runs (`headwater.wire.ack_runs`).

        The caller reads them with `feed`.
        """
        self._last_sid += 1
        inbox = f"{RUNS.decode() if runs else '_INBOX.'}{secrets.token_hex(11)}"
        self._writer.subscribe(f"{inbox}.*" if tokens else inbox, "", self._last_sid)
        self.flush()
        return self._last_sid, inbox

    def unsubscribe(self, sid: int) -> None:
        """End deliveries; those in flight arrive under a sid without a subscription."""
        self._writer.unsubscribe(sid)
        self.flush()

    def pull(self, stream: str, consumer: str, inbox: str, batch: int, expires: float, max_bytes: int = 0) -> None:
        """Request `batch` messages of a pull consumer to `inbox`, of `max_bytes` together if that is not 0.

        The request expires after `expires` seconds.
        """
        self.requests += 1
        limit = b',"max_bytes":%d' % max_bytes if max_bytes else b""
        body = b'{"batch":%d,"expires":%d%b}' % (batch, int(expires * 1e9), limit)
        self.publish(f"{self.api_prefix}.CONSUMER.MSG.NEXT.{stream}.{consumer}", body, inbox)

    def ask_range(self, stream: str, start: int, end: int, max_bytes: int, inbox: str) -> None:
        """Request sequences `[start, end)` as stored batches from a Headwater broker, about `max_bytes` of them, to
        `inbox`."""
        self.requests += 1
        body = b'{"seq":%d,"end":%d,"max_bytes":%d}' % (start, end, max_bytes)
        self.publish(f"{self.api_prefix}.HEADWATER.RANGE.{stream}", body, inbox)

    def expect(self, size: int) -> None:
        """Keep room for messages of `size` bytes; 0 for ordinary ones."""
        self._connection.received.expect(size)

    def forget_consumer(self, stream: str, consumer: str) -> None:
        """Delete a consumer without waiting for the answer; the server deletes an idle one anyway."""
        self.requests += 1
        self.publish(f"{self.api_prefix}.CONSUMER.DELETE.{stream}.{consumer}", b"", f"{self._inbox}.0")

    def pong(self, count: int) -> None:
        """Answer `count` PINGs that the caller's parser saw."""
        for _ in range(count):
            self._writer.pong()
        self.flush()

    def feed(self, parser: ServerOpParser, deadline: float) -> bool:
        """Pass received bytes, or those that arrive until the deadline, to `parser`; False when there were none.

        Raises TransportError when the connection is lost. The parser's owner counts PINGs and answers them through
        `pong`.
        """
        received = self._connection.received
        before = received.filled
        if before:
            received.consume(parser.parse(received.data, 0, received.filled))
            if received.filled < before:
                return True
        if not self._connection.receive(deadline):
            return False
        received.consume(parser.parse(received.data, 0, received.filled))
        return True

    @property
    def output(self) -> OutputBuffer:
        """The buffer to which ops can be appended for the next `flush`."""
        return self._output

    def flush(self) -> None:
        """Send `output`. Raises TransportError when the server does not accept it in time."""
        if self._output.size:
            self._connection.send(self._output.take(), deadline_after(self._timeout))

    def ping(self) -> None:
        """Send PING after everything buffered; the PONG goes to the parser in use."""
        self._writer.ping()
        self.flush()

    def close(self) -> None:
        """Close the connection without a flush."""
        self._connection.close()

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def _read(self, deadline: float, awaited: str) -> None:
        """Read once for the mailbox. Raises a server's error that arrived in place of the awaited answer."""
        came = self.feed(self._parser, deadline)
        mailbox = self._mailbox
        pings = mailbox.take_pings()
        self._check()
        self.pong(pings)
        if not came and mailbox.answer is None:
            raise RequestTimeout(f"{self._connection.address} did not send {awaited} in time", value=awaited)

    def _check(self) -> None:
        mailbox = self._mailbox
        if mailbox.violation is not None:
            self.close()
            raise mailbox.violation
        if mailbox.errors:
            text = mailbox.errors.pop(0)
            raise server_error(text)
