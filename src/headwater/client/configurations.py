"""JetStream's configurations and descriptions as programs use them: times are seconds or `timedelta`, see `units`.

They have the fields of the documents that server and client exchange (`jetstream_documents`), by the same names and
with the same defaults; on the wire durations are nanoseconds. Sizes are in bytes. Fields at their default are left out
of requests; unknown fields of answers are ignored, so that newer servers work with this client. Times in answers stay
RFC 3339 texts, because datetime has no nanoseconds.
"""

from msgspec import field

from headwater.client.units import Instant, Seconds, Timed, Wait, Waits, unset
from headwater.jetstream_documents.consumers import (
    AckPolicy,
    DeliverPolicy,
    PriorityGroupState,
    ReplayPolicy,
    SequencePair,
)
from headwater.jetstream_documents.document import ApiError, Int64, Text, Uint64, always
from headwater.jetstream_documents.streams import (
    Compression,
    Discard,
    ExternalStream,
    Placement,
    Republish,
    Retention,
    SourceConsumer,
    Storage,
    StreamState,
    SubjectTransform,
)


class ConsumerConfig(Timed, kw_only=True):
    """A consumer: a reading position on a stream. Without `durable_name` the server deletes it when it is unused.
    Durations are in seconds or timedeltas (`ack_wait=30`), `rate_limit_bps` is in bits a second, `opt_start_time` and
    `pause_until` are RFC 3339 texts or aware datetimes. Raises ConfigError for a time that can only be a mistake.

    With ack policy `flow_control` an answer to a flow-control request acknowledges all messages before it; `sourcing`:
    another stream copies through this consumer.

    By default each message must be acknowledged (`ack_policy`). With `deliver_subject` the server pushes; without, the
    client pulls.
    """

    durable_name: str = ""
    name: str = ""
    description: str = ""
    deliver_policy: DeliverPolicy = always("all")
    opt_start_seq: Uint64 = 0
    opt_start_time: Instant = unset()
    ack_policy: AckPolicy = always("explicit")
    ack_wait: Wait = unset(0.0)
    max_deliver: Int64 = 0
    backoff: Waits = unset()
    filter_subject: str = ""
    filter_subjects: list[str] | None = None
    replay_policy: ReplayPolicy = always("instant")
    rate_limit_bps: Uint64 = 0
    sample_freq: str = ""
    max_waiting: Int64 = 0
    max_ack_pending: Int64 = 0
    flow_control: bool = False
    idle_heartbeat: Wait = unset(0.0)
    headers_only: bool = False
    max_batch: Int64 = 0
    max_expires: Wait = unset(0.0)
    max_bytes: Int64 = 0
    deliver_subject: str = ""
    deliver_group: str = ""
    inactive_threshold: Wait = unset(0.0)
    num_replicas: Int64 = always(0)
    mem_storage: bool = False
    direct: bool = False
    sourcing: bool = False
    metadata: dict[str, str] | None = None
    pause_until: Instant = unset()
    priority_groups: list[str] | None = None
    priority_policy: Text = ""
    priority_timeout: Wait = unset(0.0)


class ConsumerInfo(Timed, kw_only=True):
    """A consumer as the server describes it. `pause_remaining` in seconds; `created` and `ts`, the time of the answer, are
    RFC 3339 texts."""

    stream_name: str
    name: str
    created: str = ""
    config: ConsumerConfig
    delivered: SequencePair = field(default_factory=SequencePair)
    ack_floor: SequencePair = field(default_factory=SequencePair)
    num_ack_pending: int = always(0)
    num_redelivered: int = always(0)
    num_waiting: int = always(0)
    num_pending: int = always(0)
    push_bound: bool = False
    paused: bool = False
    pause_remaining: Seconds = unset(0.0)
    priority_groups: list[PriorityGroupState] | None = None
    ts: str = ""


class StreamSource(Timed, kw_only=True):
    """Another stream whose messages are copied: those of `filter_subject`, or of the sources of the transforms, beginning
    with a sequence or a time (an RFC 3339 text or an aware datetime)."""

    name: str
    opt_start_seq: Uint64 = 0
    opt_start_time: Instant = unset()
    filter_subject: str = ""
    subject_transforms: list[SubjectTransform] = []
    external: ExternalStream | None = None
    consumer: SourceConsumer | None = None


class ConsumerLimits(Timed, kw_only=True):
    """Defaults and upper limits for consumers of the stream. `inactive_threshold` in seconds or a timedelta."""

    inactive_threshold: Wait = unset(0.0)
    max_ack_pending: Int64 = 0


class StreamConfig(Timed, kw_only=True):
    """A stream: which subjects it captures and how much it keeps. -1 is no limit; ages and windows are in seconds or
    timedeltas (`max_age=timedelta(days=7)`; 0: no limit), sizes in bytes. `duplicate_window` 0: the server's default, two
    minutes. Raises ConfigError for a time that can only be a mistake."""

    name: str
    description: str = ""
    subjects: list[str] = []
    retention: Retention = always("limits")
    max_consumers: Int64 = always(-1)
    max_msgs: Int64 = always(-1)
    max_bytes: Int64 = always(-1)
    max_age: Seconds = unset(0.0)
    max_msgs_per_subject: Int64 = always(-1)
    max_msg_size: Int64 = always(-1)
    discard: Discard = always("old")
    storage: Storage = always("file")
    num_replicas: Int64 = always(1)
    no_ack: bool = False
    duplicate_window: Seconds = unset(0.0)
    placement: Placement | None = None
    mirror: StreamSource | None = None
    sources: list[StreamSource] | None = None
    compression: Compression = always("none")
    subject_transform: SubjectTransform | None = None
    republish: Republish | None = None
    first_seq: Uint64 = 0
    allow_direct: bool = always(False)
    mirror_direct: bool = always(False)
    discard_new_per_subject: bool = False
    sealed: bool = always(False)
    deny_delete: bool = always(False)
    deny_purge: bool = always(False)
    allow_rollup_hdrs: bool = always(False)
    consumer_limits: ConsumerLimits | None = None
    allow_msg_ttl: bool = always(False)
    subject_delete_marker_ttl: Seconds = unset(0.0)
    allow_msg_counter: bool = False
    allow_atomic: bool = False
    allow_msg_schedules: bool = False
    allow_batched: bool = False
    persist_mode: str = ""
    metadata: dict[str, str] | None = None


class PeerInfo(Timed, kw_only=True):
    """A replica. `active`: seconds since its last message; `lag`: operations that it has yet to apply."""

    name: str = ""
    current: bool = False
    offline: bool = False
    active: Seconds = unset(0.0)
    lag: int = 0


class ClusterInfo(Timed, kw_only=True):
    """The servers that hold a stream or a consumer."""

    name: str = ""
    leader: str = ""
    replicas: list[PeerInfo] | None = None


class SourceInfo(Timed, kw_only=True):
    """The progress of a mirror or source. `lag`: messages not copied yet, `seq`: the last one copied, `active`: seconds
    since the origin last sent something, negative for never."""

    name: str = always("")
    external: ExternalStream | None = None
    lag: int = always(0)
    seq: int = 0
    active: Seconds = unset(-1.0)
    error: ApiError | None = None
    filter_subject: str = ""
    subject_transforms: list[SubjectTransform] = []


class StreamInfo(Timed, kw_only=True):
    """A stream as the server describes it; `created` and `ts`, the time of the answer, are RFC 3339 texts."""

    config: StreamConfig
    created: str = ""
    state: StreamState
    domain: str = ""
    cluster: ClusterInfo | None = None
    mirror: SourceInfo | None = None
    sources: list[SourceInfo] | None = None
    ts: str = ""
