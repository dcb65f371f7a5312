"""Documents about streams: the configuration that client and server share, a stream's state, its messages."""

from typing import Literal

from headwater.jetstream_documents.document import ApiError, Document, Int64, Text, Uint64, always
from headwater.model.headers import Headers
from headwater.model.timestamps import ZERO

Retention = Literal["limits", "interest", "workqueue"]
Discard = Literal["old", "new"]
Storage = Literal["file", "memory"]
Compression = Literal["none", "s2"]


class Placement(Document, kw_only=True):
    """The placement of a stream in a cluster. `preferred`: the server that should lead it."""

    cluster: str = ""
    tags: list[str] = []
    preferred: str = ""


class SubjectTransform(Document, kw_only=True):
    """Subjects that match `src` are stored as `dest`."""

    src: str = always("")
    dest: str = always("")


class ExternalStream(Document, kw_only=True):
    """A stream of another account or domain, reached through the prefix `api`, for example `$JS.hub.API`. `deliver`:
    the prefix of the subjects that its messages are delivered to; "" for the server's choice."""

    api: str
    deliver: str = always("")


class SourceConsumer(Document, kw_only=True):
    """A durable consumer of the origin that a user created for the copy."""

    name: str = ""
    deliver_subject: str = ""


class StreamSource(Document, kw_only=True):
    """Another stream whose messages are copied: those of `filter_subject`, or of the sources of the transforms, beginning
    with a sequence or a time (an RFC 3339 text)."""

    name: str
    opt_start_seq: Uint64 = 0
    opt_start_time: Text | None = None
    filter_subject: str = ""
    subject_transforms: list[SubjectTransform] = []
    external: ExternalStream | None = None
    consumer: SourceConsumer | None = None


class Republish(Document, kw_only=True):
    """Stored messages are published again, to `dest`; with `headers_only` without their payload."""

    src: str = ""
    dest: str
    headers_only: bool = False


class ConsumerLimits(Document, kw_only=True):
    """Defaults and upper limits for consumers of the stream. `inactive_threshold` in nanoseconds."""

    inactive_threshold: Int64 = 0
    max_ack_pending: Int64 = 0


class StreamConfig(Document, kw_only=True):
    """A stream: which subjects it captures and how much it keeps. -1 is no limit; ages and windows are in nanoseconds, sizes
    in bytes. `duplicate_window` 0: the server's default, two minutes."""

    name: str
    description: str = ""
    subjects: list[str] = []
    retention: Retention = always("limits")
    max_consumers: Int64 = always(-1)
    max_msgs: Int64 = always(-1)
    max_bytes: Int64 = always(-1)
    max_age: Int64 = always(0)
    max_msgs_per_subject: Int64 = always(-1)
    max_msg_size: Int64 = always(-1)
    discard: Discard = always("old")
    storage: Storage = always("file")
    num_replicas: Int64 = always(1)
    no_ack: bool = False
    duplicate_window: Int64 = 0
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
    subject_delete_marker_ttl: Int64 = 0
    allow_msg_counter: bool = False
    allow_atomic: bool = False
    allow_msg_schedules: bool = False
    allow_batched: bool = False
    persist_mode: str = ""
    metadata: dict[str, str] | None = None


class LostData(Document, kw_only=True):
    """Sequences of stored messages that cannot be read, and the number of damaged bytes."""

    msgs: list[int] = always([])
    bytes: int = always(0)


class StreamState(Document, kw_only=True):
    """What a stream holds. Sequences are 1-based, `last_seq` is included; `first_ts` and `last_ts` are the time stamps
    of these messages. `deleted` and `subjects` are set only if requested."""

    messages: int = always(0)
    bytes: int = always(0)
    first_seq: int = always(0)
    first_ts: str = always(ZERO)
    last_seq: int = always(0)
    last_ts: str = always(ZERO)
    num_subjects: int = 0
    subjects: dict[str, int] | None = None
    num_deleted: int = 0
    deleted: list[int] | None = None
    lost: LostData | None = None
    consumer_count: int = always(0)


class PeerInfo(Document, kw_only=True):
    """A replica. `active`: nanoseconds since its last message; `lag`: operations that it has yet to apply."""

    name: str = ""
    current: bool = False
    offline: bool = False
    active: int = 0
    lag: int = 0


class ClusterInfo(Document, kw_only=True):
    """The servers that hold a stream or a consumer."""

    name: str = ""
    leader: str = ""
    replicas: list[PeerInfo] | None = None


class SourceInfo(Document, kw_only=True):
    """The progress of a mirror or source. `lag`: messages not copied yet, `seq`: the last one copied, `active`:
    nanoseconds since the origin last sent something, -1 for never."""

    name: str = always("")
    external: ExternalStream | None = None
    lag: int = always(0)
    seq: int = 0
    active: int = always(-1)
    error: ApiError | None = None
    filter_subject: str = ""
    subject_transforms: list[SubjectTransform] = []


class StreamInfo(Document, kw_only=True):
    """A stream as the server describes it; `created` and `ts`, the time of the answer, are RFC 3339 texts."""

    config: StreamConfig
    created: str = ""
    state: StreamState
    domain: str = ""
    cluster: ClusterInfo | None = None
    mirror: SourceInfo | None = None
    sources: list[SourceInfo] | None = None
    ts: str = ""


class StoredMessage(Document, kw_only=True):
    """A stored message. `hdrs`: the header block as published, `time`: an RFC 3339 text. `hdrs` and `data` travel as
    base64."""

    subject: str
    seq: int
    hdrs: bytes = b""
    data: bytes = b""
    time: str = ""

    @property
    def headers(self) -> Headers:
        """The headers. Raises HeaderError for a malformed block."""
        return Headers.parse(self.hdrs) if self.hdrs else Headers()
