"""JetStream's API as a client calls it: streams, messages in them, consumers, publishing with acknowledgement.

Each method is one request to `$JS.API.…` (or to the same under a domain) and raises JetStreamError with the server's
numbers when the server refuses it. Readers, buckets and stores are built on a `JetStreamApi`; `jetstream` combines
them.
"""

from datetime import datetime
from typing import TypeVar

import msgspec

from headwater.client.jetstream_types import (
    AccountInfo,
    ConsumerConfig,
    ConsumerInfo,
    PubAck,
    StoredMessage,
    StreamConfig,
    StreamInfo,
    decode_answer,
    encode_request,
)
from headwater.client.requester import Requester
from headwater.client.schedules import Schedule
from headwater.client.units import Lifetime, instant, lifetime
from headwater.client_connection.connection_ops import BytesLike
from headwater.errors import EnvironmentProblem, HeaderError, JetStreamError, NoResponders, SubjectError
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers, HeaderSource
from headwater.model.status import NOT_FOUND

T = TypeVar("T")

NO_CONSUMER = 10014
NO_MESSAGE = 10037
NO_STREAM = 10059
_FORBIDDEN_IN_NAMES = frozenset(" \t\r\n.*>/\\")


class _StreamNames(msgspec.Struct, kw_only=True):
    streams: list[str] | None = None
    total: int = 0


class _Streams(msgspec.Struct, kw_only=True):
    streams: list[StreamInfo] | None = None
    total: int = 0


class _ConsumerNames(msgspec.Struct, kw_only=True):
    consumers: list[str] | None = None
    total: int = 0


class _Consumers(msgspec.Struct, kw_only=True):
    consumers: list[ConsumerInfo] | None = None
    total: int = 0


class _Done(msgspec.Struct, kw_only=True):
    success: bool = False
    purged: int = 0


class _Stored(msgspec.Struct, kw_only=True):
    message: StoredMessage


class JetStreamApi:
    """The JetStream API of one connection, as nats-server's JetStream API reference has it ($JS.API.>).

    `timeout`: seconds that each request may take; then it raises RequestTimeout. `prefix`: the prefix of the API's
    subjects. Every request raises EnvironmentProblem when the server has no JetStream for the account, and
    JetStreamError with the server's codes when it refuses; a name that is not valid in a subject raises SubjectError.
    """

    def __init__(self, client: Requester, timeout: float, prefix: str = "$JS.API") -> None:
        self._client = client
        self._timeout = timeout
        self._prefix = prefix

    async def account_info(self) -> AccountInfo:
        """The usage and limits of this account. Raises EnvironmentProblem when the server has no JetStream for it."""
        return await self.ask("INFO", None, AccountInfo)

    # ── streams ──

    async def create_stream(self, config: StreamConfig) -> StreamInfo:
        """Create the stream of `config`; one that exists with the same configuration is no error."""
        return await self.ask(f"STREAM.CREATE.{_name_in(config)}", config, StreamInfo)

    async def update_stream(self, config: StreamConfig) -> StreamInfo:
        """Change a stream's configuration to `config`; the server refuses changes of fixed fields."""
        return await self.ask(f"STREAM.UPDATE.{_name_in(config)}", config, StreamInfo)

    async def stream_info(self, name: str, *, subjects: str = "", deleted: bool = False) -> StreamInfo:
        """Configuration and state of the stream `name`. With `subjects`, a filter, the state also has the number of messages
        of each matching subject; with `deleted` the sequences of deleted messages."""
        body = {**({"subjects_filter": subjects} if subjects else {}), **({"deleted_details": True} if deleted else {})}
        return await self.ask(f"STREAM.INFO.{checked_name(name)}", body or None, StreamInfo)

    async def delete_stream(self, name: str) -> bool:
        """Delete the stream `name` with its messages; False when there was none."""
        try:
            return (await self.ask(f"STREAM.DELETE.{checked_name(name)}", None, _Done)).success
        except JetStreamError as error:
            if error.err_code == NO_STREAM:
                return False
            raise

    async def purge_stream(self, name: str, *, subject: str = "", sequence: int = 0, keep: int = 0) -> int:
        """Delete messages of the stream `name`: all, those of `subject`, those before `sequence`, or all but the last
        `keep`; returns how many."""
        members = {"filter": subject, "seq": sequence, "keep": keep}
        body = {key: value for key, value in members.items() if value}
        return (await self.ask(f"STREAM.PURGE.{checked_name(name)}", body or None, _Done)).purged

    async def stream_names(self, subject: str = "") -> list[str]:
        """The names of all streams, or of those that capture `subject`."""
        names: list[str] = []
        while True:
            page = await self.ask("STREAM.NAMES", _page(len(names), subject), _StreamNames)
            names += page.streams or []
            if not page.streams or len(names) >= page.total:
                return names

    async def streams(self, subject: str = "") -> list[StreamInfo]:
        """All streams, or those that capture `subject`."""
        found: list[StreamInfo] = []
        while True:
            page = await self.ask("STREAM.LIST", _page(len(found), subject), _Streams)
            found += page.streams or []
            if not page.streams or len(found) >= page.total:
                return found

    async def find_stream(self, subject: str) -> str:
        """The name of the stream that captures `subject`. Raises JetStreamError when there is none."""
        names = await self.stream_names(subject)
        if not names:
            raise JetStreamError(NOT_FOUND, NO_STREAM, f"no stream captures {subject!r}")
        return names[0]

    # ── messages in a stream ──

    async def get_message(
        self, stream: str, sequence: int = 0, *, last_on: str = "", next_on: str = "", direct: bool = False
    ) -> StoredMessage:
        """The message `sequence` of a stream, the last one on the subject `last_on`, or the next one on `next_on` from
        `sequence` on.

        `direct` reads from any replica instead of the leader; the stream must allow it. Raises JetStreamError (404)
        when there is none.
        """
        members: dict[str, object] = {"seq": sequence, "last_by_subj": last_on, "next_by_subj": next_on}
        body = {key: value for key, value in members.items() if value}
        if direct:
            return await self._get_directly(checked_name(stream), body, last_on)
        return (await self.ask(f"STREAM.MSG.GET.{checked_name(stream)}", body, _Stored)).message

    async def delete_message(self, stream: str, sequence: int, *, erase: bool = True) -> bool:
        """Delete the message `sequence` of a stream; `erase` overwrites its bytes. Raises JetStreamError when there is
        none."""
        body = {"seq": sequence, **({} if erase else {"no_erase": True})}
        return (await self.ask(f"STREAM.MSG.DELETE.{checked_name(stream)}", body, _Done)).success

    # ── publishing ──

    async def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        headers: HeaderSource | Headers | None = None,
        msg_id: str | None = None,
        expect_stream: str | None = None,
        expect_last_sequence: int | None = None,
        expect_last_subject_sequence: int | None = None,
        expect_last_msg_id: str | None = None,
        ttl: Lifetime | None = None,
        schedule: Schedule | None = None,
    ) -> PubAck:
        """Publish `data` with `headers` on `subject`, and wait until the stream has stored the message durably.

        `expect_stream`: the name of the stream that must capture it. `expect_last_sequence`,
        `expect_last_subject_sequence` and `expect_last_msg_id`: the sequence, or message id, that the last message of
        the stream or of the subject must have; otherwise the stream refuses. `ttl`: how long the message lives:
        seconds, a timedelta, or a text such as "5s" or "never". `schedule`: the message is a schedule that produces
        others later.

        Raises NoResponders when no stream captures the subject, JetStreamError when it refuses the message. With a
        `msg_id` it is published again when the connection is lost meanwhile: the stream stores it once.
        """
        demands = {
            NatsHeader.MSG_ID: msg_id,
            NatsHeader.EXPECTED_STREAM: expect_stream,
            NatsHeader.EXPECTED_LAST_SEQUENCE: expect_last_sequence,
            NatsHeader.EXPECTED_LAST_SUBJECT_SEQUENCE: expect_last_subject_sequence,
            NatsHeader.EXPECTED_LAST_MSG_ID: expect_last_msg_id,
            NatsHeader.TTL: lifetime(ttl),
        }
        wanted: dict[str, str] = {name: str(value) for name, value in demands.items() if value is not None}
        wanted |= schedule.headers() if schedule is not None else {}
        if wanted:
            headers = Headers(headers or {})
            for name, value in wanted.items():
                headers[name] = value
        try:
            message = await self._client.request(
                subject, data, headers=headers, timeout=self._timeout, repeat=msg_id is not None
            )
        except NoResponders as error:
            raise NoResponders(
                f"no stream captures {subject!r}", value=subject, hint="create the stream first"
            ) from error
        return decode_answer(message.data, PubAck, f"the publish on {subject!r}")

    # ── consumers ──

    async def create_consumer(self, stream: str, config: ConsumerConfig) -> ConsumerInfo:
        """Create the consumer of `config` on a stream; one that exists with the same configuration is no error. It is
        durable with `durable_name`; otherwise the server deletes it when it is unused."""
        return await self._put_consumer(stream, config, "")

    async def update_consumer(self, stream: str, config: ConsumerConfig) -> ConsumerInfo:
        """Change the configuration of a consumer of `stream` to `config`; the server refuses changes of fixed fields."""
        return await self._put_consumer(stream, config, "update")

    async def consumer_info(self, stream: str, name: str) -> ConsumerInfo:
        """Configuration and position of the consumer `name` of `stream`."""
        return await self.ask(f"CONSUMER.INFO.{checked_name(stream)}.{checked_name(name)}", None, ConsumerInfo)

    async def delete_consumer(self, stream: str, name: str) -> bool:
        """Delete the consumer `name` of `stream`; False when there was none."""
        try:
            return (await self.ask(f"CONSUMER.DELETE.{checked_name(stream)}.{checked_name(name)}", None, _Done)).success
        except JetStreamError as error:
            if error.err_code == NO_CONSUMER:
                return False
            raise

    async def consumer_names(self, stream: str) -> list[str]:
        """The names of a stream's consumers."""
        names: list[str] = []
        while True:
            page = await self.ask(f"CONSUMER.NAMES.{checked_name(stream)}", _page(len(names)), _ConsumerNames)
            names += page.consumers or []
            if not page.consumers or len(names) >= page.total:
                return names

    async def consumers(self, stream: str) -> list[ConsumerInfo]:
        """All consumers of a stream."""
        found: list[ConsumerInfo] = []
        while True:
            page = await self.ask(f"CONSUMER.LIST.{checked_name(stream)}", _page(len(found)), _Consumers)
            found += page.consumers or []
            if not page.consumers or len(found) >= page.total:
                return found

    async def pause_consumer(self, stream: str, name: str, until: str | datetime) -> bool:
        """Pause the consumer `name` of `stream` until `until`, a time in RFC 3339 or an aware datetime; one in the past
        (or "") resumes. Returns whether it is paused."""
        body = {"pause_until": instant(until, "until")} if until else None
        answer = await self.ask(f"CONSUMER.PAUSE.{checked_name(stream)}.{checked_name(name)}", body, dict[str, object])
        return bool(answer.get("paused"))

    async def unpin_consumer(self, stream: str, name: str, group: str) -> None:
        """Unpin the pinned client in the priority `group` of the consumer `name` of `stream`; the next waiting client
        is pinned."""
        call = f"CONSUMER.UNPIN.{checked_name(stream)}.{checked_name(name)}"
        await self.ask(call, {"group": group}, dict[str, object])

    # ── for the modules beside this one ──

    def forget_consumer(self, stream: str, name: str) -> None:
        """Delete the consumer `name` of `stream` without waiting for the answer; the server deletes an idle one
        anyway."""
        subject = f"{self._prefix}.CONSUMER.DELETE.{stream}.{name}"
        self._client.publish(subject, reply=f"{self._client.new_inbox()}.0")

    @property
    def client(self) -> Requester:
        """The connection that sends the requests."""
        return self._client

    @property
    def timeout(self) -> float:
        """The timeout of each request, in seconds."""
        return self._timeout

    @property
    def prefix(self) -> str:
        """The prefix of the API's subjects."""
        return self._prefix

    async def ask(self, call: str, body: object, kind: type[T]) -> T:
        """Send the API request `call`, such as STREAM.INFO.<name>, with `body` as JSON (None: empty), and return the
        answer as `kind`. Raises EnvironmentProblem when the server has no JetStream for the account, JetStreamError when it
        refuses."""
        payload = encode_request(body)
        try:
            message = await self._client.request(
                f"{self._prefix}.{call}", payload, timeout=self._timeout, repeat=call.startswith(_READING)
            )
        except NoResponders as error:
            raise EnvironmentProblem(
                "the server has no JetStream for this account",
                value=call,
                hint="start nats-server or `headwater serve` with -js",
            ) from error
        return decode_answer(message.data, kind, call)

    async def _put_consumer(self, stream: str, config: ConsumerConfig, action: str) -> ConsumerInfo:
        body = {"stream_name": stream, "config": config, **({"action": action} if action else {})}
        name = config.durable_name or config.name
        suffix = f".{checked_name(name)}" if name else ""
        return await self.ask(f"CONSUMER.CREATE.{checked_name(stream)}{suffix}", body, ConsumerInfo)

    async def _get_directly(self, stream: str, body: dict[str, object], last_on: str) -> StoredMessage:
        subject = f"{self._prefix}.DIRECT.GET.{stream}"
        if last_on:
            subject, payload = f"{subject}.{last_on}", b""
        else:
            payload = msgspec.json.encode(body)
        try:
            message = await self._client.request(subject, payload, timeout=self._timeout, repeat=True)
        except NoResponders as error:
            raise JetStreamError(503, 0, f"the stream {stream!r} allows no direct reads, or is not there") from error
        try:
            headers = message.headers
        except HeaderError:  # its publisher's, in front of the server's: these are fields of the other answer
            return (await self.ask(f"STREAM.MSG.GET.{stream}", body, _Stored)).message
        status = None if NatsHeader.SEQUENCE in headers else message.status
        if status is not None:
            err_code = NO_MESSAGE if status.code == NOT_FOUND else 0
            raise JetStreamError(status.code, err_code, status.description or "no message found")
        place, kept = _split_direct(headers)
        return StoredMessage(
            subject=place.get(NatsHeader.SUBJECT, ""),
            seq=int(place[NatsHeader.SEQUENCE]),
            data=message.data,
            hdrs=bytes(kept) if kept else b"",
            time=place.get(NatsHeader.TIME_STAMP, ""),
        )


# Read-only API calls, which may be repeated after a reconnect.
_READING = (
    "INFO",
    "STREAM.INFO.",
    "STREAM.NAMES",
    "STREAM.LIST",
    "STREAM.MSG.GET.",
    "CONSUMER.INFO.",
    "CONSUMER.NAMES.",
    "CONSUMER.LIST.",
)
_DIRECT_HEADERS = frozenset(
    {NatsHeader.STREAM, NatsHeader.SUBJECT, NatsHeader.SEQUENCE, NatsHeader.TIME_STAMP, NatsHeader.NUM_PENDING}
)


def _split_direct(headers: Headers) -> tuple[dict[str, str], Headers]:
    """The position of a message, and the headers that it was stored with.

    The server appends its headers to the message's own, which may have the same names: a republished message has those
    of its origin.
    """
    place: dict[str, str] = {}
    kept: list[tuple[str, str]] = []
    for name, value in reversed(headers.multi_items()):
        if name in _DIRECT_HEADERS and name not in place:
            place[name] = value
        else:
            kept.append((name, value))
    return place, Headers(kept[::-1])


def _page(offset: int, subject: str = "") -> dict[str, object]:
    return {"offset": offset, **({"subject": subject} if subject else {})}


def _name_in(config: StreamConfig) -> str:
    """The name of a stream that is to be described by `config`; raises SubjectError, and TypeError for what describes none:
    most programs are not type-checked."""
    if not isinstance(config, StreamConfig):
        kind = type(config).__name__
        raise TypeError(f"a stream is described by a StreamConfig(name=..., subjects=[...]), not by {kind}")
    if isinstance(config.subjects, str):
        raise TypeError(f"subjects is a list: [{config.subjects!r}]")
    return checked_name(config.name)


def checked_name(name: str) -> str:
    """A stream or consumer name as a token of the API subject. Raises SubjectError."""
    if not name or not _FORBIDDEN_IN_NAMES.isdisjoint(name):
        rule = "no blank . * > / \\ in it"
        raise SubjectError(f"{name!r} is no name of a stream or consumer", value=name, limit=rule, hint=rule)
    return name
