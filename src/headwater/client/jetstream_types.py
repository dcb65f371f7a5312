"""What JetStream is asked and what it answers, as far as this client uses it. Spans in nanoseconds, sizes in bytes.

Fields at their default are left out of requests; unknown fields of answers are ignored, so that newer servers can talk
to us. Times of answers stay RFC 3339 texts: they have nanoseconds, and datetime has not.
"""

from typing import Literal, TypeVar

import msgspec

from headwater.errors import JetStreamError, RemoteProtocolError
from headwater.model.headers import Headers

Retention = Literal["limits", "interest", "workqueue"]
DeliverPolicy = Literal["all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"]


class Struct(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Root of requests: what is at its default is not said."""


class Placement(Struct, kw_only=True):
    """Where in a cluster a stream lives."""

    cluster: str = ""
    tags: list[str] = []


class SubjectTransform(Struct, kw_only=True):
    """Subjects that match `src` are stored as `dest`."""

    src: str = ""
    dest: str = ""


class ExternalStream(Struct, kw_only=True):
    """A stream of another account or domain, reached through `api`."""

    api: str
    deliver: str = ""


class StreamSource(Struct, kw_only=True):
    """Another stream whose messages are copied."""

    name: str
    opt_start_seq: int = 0
    opt_start_time: str | None = None
    filter_subject: str = ""
    subject_transforms: list[SubjectTransform] = []
    external: ExternalStream | None = None


class Republish(Struct, kw_only=True):
    """Stored messages are published again, to `dest`."""

    src: str = ""
    dest: str
    headers_only: bool = False


class ConsumerLimits(Struct, kw_only=True):
    """What a consumer of the stream gets when it asks for nothing, and may not exceed."""

    inactive_threshold: int = 0
    max_ack_pending: int = 0


class StreamConfig(Struct, kw_only=True):
    """A stream: which subjects it captures and how much it keeps; -1 is no limit."""

    name: str
    subjects: list[str] = []
    description: str = ""
    retention: Retention = "limits"
    storage: Literal["file", "memory"] = "file"
    discard: Literal["old", "new"] = "old"
    discard_new_per_subject: bool = False
    max_consumers: int = -1
    max_msgs: int = -1
    max_bytes: int = -1
    max_age: int = 0
    max_msgs_per_subject: int = -1
    max_msg_size: int = -1
    num_replicas: int = 1
    no_ack: bool = False
    duplicate_window: int = 0  # 0: the server's default, two minutes
    placement: Placement | None = None
    mirror: StreamSource | None = None
    sources: list[StreamSource] | None = None
    sealed: bool = False
    deny_delete: bool = False
    deny_purge: bool = False
    allow_rollup_hdrs: bool = False
    allow_direct: bool = False
    mirror_direct: bool = False
    republish: Republish | None = None
    subject_transform: SubjectTransform | None = None
    compression: Literal["none", "s2"] = "none"
    first_seq: int = 0
    consumer_limits: ConsumerLimits | None = None
    allow_msg_ttl: bool = False
    subject_delete_marker_ttl: int = 0
    allow_atomic: bool = False
    allow_msg_counter: bool = False
    allow_msg_schedules: bool = False
    persist_mode: str = ""
    template_owner: str = ""
    metadata: dict[str, str] | None = None


class StreamState(msgspec.Struct, kw_only=True):
    """What a stream holds; sequences are 1-based, `last_seq` is included."""

    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    last_seq: int = 0
    first_ts: str = ""
    last_ts: str = ""
    consumer_count: int = 0
    num_subjects: int = 0
    num_deleted: int = 0
    deleted: list[int] | None = None
    subjects: dict[str, int] | None = None


class PeerInfo(msgspec.Struct, kw_only=True):
    """A replica."""

    name: str = ""
    current: bool = False
    offline: bool = False
    active: int = 0
    lag: int = 0


class ClusterInfo(msgspec.Struct, kw_only=True):
    """Who holds the replicas."""

    name: str = ""
    leader: str = ""
    replicas: list[PeerInfo] | None = None


class SourceInfo(msgspec.Struct, kw_only=True):
    """How far the copy of another stream has come; `active` nanoseconds since it was heard of, -1 for never."""

    name: str = ""
    lag: int = 0
    active: int = -1
    filter_subject: str = ""


class StreamInfo(msgspec.Struct, kw_only=True):
    """A stream as the server describes it; `created` is an RFC 3339 text."""

    config: StreamConfig
    state: StreamState
    created: str = ""
    cluster: ClusterInfo | None = None
    mirror: SourceInfo | None = None
    sources: list[SourceInfo] | None = None


class ConsumerConfig(Struct, kw_only=True):
    """A consumer: a reading position on a stream. Without `durable_name` it ends when it is not used.

    Messages are to be acknowledged one by one, unless `ack_policy` says otherwise. With `deliver_subject` the server
    pushes; without, the client pulls.
    """

    name: str = ""
    durable_name: str = ""
    description: str = ""
    deliver_policy: DeliverPolicy = "all"
    opt_start_seq: int = 0
    opt_start_time: str | None = None
    # Always sent, for the server's own default is "none"; a default from a factory is never left out.
    ack_policy: Literal["explicit", "all", "none"] = msgspec.field(default_factory=lambda: "explicit")
    ack_wait: int = 0
    max_deliver: int = 0
    backoff: list[int] | None = None
    filter_subject: str = ""
    filter_subjects: list[str] | None = None
    replay_policy: Literal["instant", "original"] = "instant"
    rate_limit_bps: int = 0
    sample_freq: str = ""
    max_waiting: int = 0
    max_ack_pending: int = 0
    flow_control: bool = False
    idle_heartbeat: int = 0
    headers_only: bool = False
    max_batch: int = 0
    max_expires: int = 0
    max_bytes: int = 0
    deliver_subject: str = ""
    deliver_group: str = ""
    inactive_threshold: int = 0
    num_replicas: int = 0
    mem_storage: bool = False
    pause_until: str | None = None
    priority_groups: list[str] | None = None
    priority_policy: str = ""
    metadata: dict[str, str] | None = None


class SequencePair(msgspec.Struct, kw_only=True):
    """A position: the consumer's own count, and the stream's sequence."""

    consumer_seq: int = 0
    stream_seq: int = 0
    last_active: str | None = None


class ConsumerInfo(msgspec.Struct, kw_only=True):
    """A consumer as the server describes it."""

    stream_name: str
    name: str
    config: ConsumerConfig
    delivered: SequencePair = msgspec.field(default_factory=SequencePair)
    ack_floor: SequencePair = msgspec.field(default_factory=SequencePair)
    num_ack_pending: int = 0
    num_redelivered: int = 0
    num_waiting: int = 0
    num_pending: int = 0
    created: str = ""
    push_bound: bool = False
    paused: bool = False
    pause_remaining: int = 0


class AccountLimits(msgspec.Struct, kw_only=True):
    """How much an account may store; -1 is no limit."""

    max_memory: int = -1
    max_storage: int = -1
    max_streams: int = -1
    max_consumers: int = -1


class AccountInfo(msgspec.Struct, kw_only=True):
    """What an account uses of JetStream."""

    memory: int = 0
    storage: int = 0
    streams: int = 0
    consumers: int = 0
    domain: str = ""
    limits: AccountLimits = msgspec.field(default_factory=AccountLimits)


class StoredMessage(msgspec.Struct, kw_only=True):
    """A message as it lies in a stream; `time` is an RFC 3339 text, `header_block` as published."""

    subject: str
    seq: int
    data: bytes = b""
    hdrs: bytes = b""
    time: str = ""

    @property
    def headers(self) -> Headers:
        """The headers. Raises HeaderError for a malformed block."""
        return Headers.parse(self.hdrs) if self.hdrs else Headers()


class PubAck(msgspec.Struct, kw_only=True):
    """A stream has the message on disk, as `seq`; `duplicate` when it had it before."""

    stream: str
    seq: int
    duplicate: bool = False
    domain: str = ""


class ErrorAnswer(msgspec.Struct, kw_only=True):
    """The `error` of an answer."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class _MaybeError(msgspec.Struct, kw_only=True):
    error: ErrorAnswer | None = None


_errors = msgspec.json.Decoder(_MaybeError)
T = TypeVar("T")


def decode_answer(payload: bytes, kind: type[T], asked: str) -> T:
    """Read an answer. Raises JetStreamError for an error answer, RemoteProtocolError for what is no answer."""
    try:
        if b'"error"' in payload and (failed := _errors.decode(payload).error) is not None:
            raise JetStreamError(failed.code, failed.err_code, failed.description)
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"the answer to {asked} cannot be read: {error}", value=payload[:200]) from error
