"""The requests of a copy to its origin: an ordered push consumer with heartbeats and flow control. Pure.

    <api>.CONSUMER.CREATE.<origin>[.<name>.<filter>]     Nats-Required-Api-Level: 4 (a source: 5, and the identity it knows)
    <api>.CONSUMER.RESET.<origin>.<name>                 for a durable consumer that a user has made
    <api>.CONSUMER.DELETE.<origin>.<name>                the copy is over, and the origin keeps what is not acknowledged

The consumer's name is the same for every try: an origin that keeps messages until they are acknowledged makes the
consumer durable and continues where the acknowledgements end. Other origins append a suffix to the name. For an older
server without this API level or the field `sourcing` the request is repeated without both (`plain`).
"""

from typing import NamedTuple

import msgspec

from headwater.jetstream_documents.answers import ConsumerAnswer
from headwater.jetstream_documents.consumers import ConsumerConfig, SequencePair
from headwater.jetstream_documents.document import ApiError
from headwater.jetstream_documents.source_rules import API_PREFIX, index_name
from headwater.jetstream_documents.streams import StreamSource
from headwater.jetstream_sources.stamp import Position
from headwater.model.header_block import lookup
from headwater.model.short_hash import short_hash
from headwater.model.timestamps import SECOND

HEARTBEAT = SECOND
INACTIVE = 10 * SECOND  # after which an origin deletes a consumer without a subscriber
ACK_WAIT = 22 * 3600 * SECOND
UNKNOWN_TO_IT = (10025, 10185)  # an older server: invalid JSON, api level
OTHER_IDENTITY = 10225


class CopyingStream(NamedTuple):
    """The stream that copies."""

    name: str
    account: str
    domain: str


class CreateRequest(msgspec.Struct):
    """CONSUMER.CREATE as nats-server's copies send it."""

    stream_name: str
    config: ConsumerConfig
    action: str = ""


class Request(NamedTuple):
    """One request to the API."""

    subject: bytes
    header_block: bytes
    payload: bytes


class Answered(NamedTuple):
    """The answer to a consumer request: its name, its deliver subject, its pending count, the origin's identity, and
    the last sequence of the origin that comes before its messages. With `error` there is no consumer."""

    error: ApiError | None
    consumer: str = ""
    deliver_subject: str = ""
    pending: int = 0
    identity: str = ""
    is_durable: bool = False
    ack_policy: str = "none"
    delivered: int = 0


class Origin:
    """The requests of one mirror or source. `twice`: an earlier source has the same origin."""

    def __init__(self, source: StreamSource, stream: CopyingStream, *, is_mirror: bool, twice: bool = False) -> None:
        self.source = source
        self.is_mirror = is_mirror
        self.index = index_name(source)
        self._stream = stream
        self._api = source.external.api.rstrip(".") if source.external is not None else ""
        self._api = self._api or API_PREFIX
        identity = f"{stream.name} {stream.account} {stream.domain}".rstrip()
        name = short_hash(identity)
        if not is_mirror:
            name = short_hash(f"{name} {self.index}" if twice else name)
        self._name = f"JS_{'MIRROR' if is_mirror else 'SRC'}_{name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin) and (self.source, self._name) == (other.source, other._name)

    def __hash__(self) -> int:
        return hash(self._name)

    @property
    def api(self) -> str:
        """The prefix of the requests."""
        return self._api

    def deliver_subject(self, fresh: str) -> str:
        """The deliver subject. `fresh`: an unused name."""
        if self.source.consumer is not None:
            return self.source.consumer.deliver_subject
        kind = "M" if self.is_mirror else "S"
        prefix = self.source.external.deliver.rstrip(".") if self.source.external is not None else ""
        return f"{prefix or '$JS'}.{kind}.{fresh}"

    def request(self, after: Position | None, fresh: str, *, plain: bool = False) -> Request:
        """The request for a consumer that starts after `after`, or as configured if nothing was copied yet."""
        source = self.source
        block = b"" if plain else self._header_block(after)
        if source.consumer is not None:
            subject = f"{self._api}.CONSUMER.RESET.{source.name}.{source.consumer.name}"
            return Request(subject.encode(), block, b"")
        config = self._config(after, self.deliver_subject(fresh))
        if plain:
            config.sourcing, config.name = False, f"{self._name}_{fresh}"
        subject = f"{self._api}.CONSUMER.CREATE.{source.name}"
        if config.filter_subject:
            subject += f".{config.name}.{config.filter_subject}"
        return Request(subject.encode(), block, msgspec.json.encode(CreateRequest(source.name, config)))

    def deletion(self) -> Request:
        """The request that ends the copy."""
        subject = f"{self._api}.CONSUMER.DELETE.{self.source.name}.{self._name}"
        return Request(subject.encode(), b"", b"")

    def _header_block(self, after: Position | None) -> bytes:
        if self.is_mirror:
            return b"NATS/1.0\r\nNats-Required-Api-Level: 4\r\n\r\n"
        identity = after.identity.encode() if after is not None else b""
        return b"NATS/1.0\r\nNats-Required-Api-Level: 5\r\nNats-Stream-Identity: %b\r\n\r\n" % identity

    def _config(self, after: Position | None, deliver_subject: str) -> ConsumerConfig:
        source, kind = self.source, "mirror" if self.is_mirror else "src"
        metadata = {f"_nats.{kind}.stream": self._stream.name, f"_nats.{kind}.acc": self._stream.account}
        if self._stream.domain:
            metadata[f"_nats.{kind}.domain"] = self._stream.domain
        config = ConsumerConfig(
            name=self._name,
            ack_policy="none",
            ack_wait=ACK_WAIT,
            max_deliver=1,
            flow_control=True,
            idle_heartbeat=HEARTBEAT,
            deliver_subject=deliver_subject,
            inactive_threshold=INACTIVE,
            direct=True,
            sourcing=True,
            metadata=metadata,
        )
        if after is not None and after.sequence:
            config.deliver_policy, config.opt_start_seq = "by_start_sequence", after.sequence + 1
        elif source.opt_start_seq:
            config.deliver_policy, config.opt_start_seq = "by_start_sequence", source.opt_start_seq
        elif source.opt_start_time:
            config.deliver_policy, config.opt_start_time = "by_start_time", source.opt_start_time
        filters = [each.src or ">" for each in source.subject_transforms]
        if source.filter_subject or len(filters) == 1:
            config.filter_subject = source.filter_subject or filters[0]
        elif filters:
            config.filter_subjects = filters
        return config


def read_answer(header_block: bytes, payload: bytes) -> Answered | None:
    """Parse the answer to a request for a consumer; None if it is not one."""
    try:
        answer = msgspec.json.decode(payload, type=ConsumerAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if isinstance(answer.error, ApiError):
        return Answered(answer.error)
    config = answer.config
    if not answer.name or not isinstance(config, ConsumerConfig):
        return None
    identity = lookup(header_block, b"Nats-Stream-Identity") if header_block else None
    pending = answer.num_pending if isinstance(answer.num_pending, int) else 0
    return Answered(
        None,
        answer.name,
        config.deliver_subject,
        pending,
        (identity or b"").decode("utf-8", "surrogateescape"),
        bool(config.durable_name),
        config.ack_policy,
        answer.delivered.stream_seq if isinstance(answer.delivered, SequencePair) else 0,
    )
