"""The documents of the JetStream API, field for field and in the order in which nats-server 2.15 writes them.

Strict clients refuse a field too many as well as one too few, so every struct says of each field whether it is always
there (`always(...)`, or no default) or left out while it has its default; Go calls the latter `omitempty`. Unknown
fields in a request are refused. Times are RFC 3339 texts, spans int nanoseconds. Two liberties of Go's JSON are
granted: `null` stands for an absent field, and an empty request for an empty object. One is not: keys are matched
with their case.
"""

import re
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from headwater.broker.jetstream.api_errors import api_error
from headwater.broker.jetstream.timestamps import ZERO
from headwater.errors import JetStreamError

API_LEVEL = 5
"""What nats-server 2.15 says; a request may demand a level, and is refused above ours."""

Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Uint64 = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]  # half of what Go takes: msgspec bounds fit an int64

Text = Annotated[str, Meta(min_length=1)]  # may be absent, but is not empty when it is there

Retention = Literal["limits", "interest", "workqueue"]
Discard = Literal["old", "new"]
Storage = Literal["file", "memory"]
Compression = Literal["none", "s2"]
DeliverPolicy = Literal["all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"]
AckPolicy = Literal["none", "all", "explicit"]
ReplayPolicy = Literal["instant", "original"]

T = TypeVar("T")


def always(default: T) -> T:
    """A field that may be absent in a request and is always there in an answer.

    msgspec leaves out a field that holds its `default`, but never one whose default comes from a factory.
    """
    return msgspec.field(default_factory=lambda: default)


def _no_names() -> list[str]:
    return []  # a function of ours: msgspec takes the type `list` itself for a default, and leaves the field out


def _no_consumers() -> "list[ConsumerInfo]":
    return []


class _Document(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


# ── streams ──


class ConsumerLimits(_Document, kw_only=True):
    inactive_threshold: Int64 = 0
    max_ack_pending: Int64 = 0


class Republish(_Document, kw_only=True):
    src: str = ""
    dest: str = always("")
    headers_only: bool = False


class StreamConfig(_Document, kw_only=True):
    """What a stream is to be. The settings that are mere objects here are refused, whatever is in them."""

    name: str = always("")
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
    placement: dict[str, object] | None = None
    mirror: dict[str, object] | None = None
    sources: list[dict[str, object]] | None = None
    compression: Compression = always("none")
    subject_transform: dict[str, object] | None = None
    republish: Republish | None = None
    first_seq: Uint64 = 0
    allow_direct: bool = always(False)
    mirror_direct: bool = always(False)
    discard_new_per_subject: bool = False
    sealed: bool = always(False)
    deny_delete: bool = always(False)
    deny_purge: bool = always(False)
    allow_rollup_hdrs: bool = always(False)
    consumer_limits: ConsumerLimits = msgspec.field(default_factory=ConsumerLimits)
    allow_msg_ttl: bool = always(False)
    subject_delete_marker_ttl: Int64 = 0
    allow_msg_counter: bool = False
    allow_atomic: bool = False
    allow_msg_schedules: bool = False
    allow_batched: bool = False
    persist_mode: str = ""
    metadata: dict[str, str] = {}


class StreamConfigRequest(StreamConfig, kw_only=True):
    pedantic: bool = False


class LostData(_Document, kw_only=True):
    """Sequences that were acknowledged and cannot be read any more, and the bytes that were damaged."""

    msgs: list[int] = always([])
    bytes: int = always(0)


class StreamState(_Document, kw_only=True):
    messages: int = always(0)
    bytes: int = always(0)
    first_seq: int = always(0)
    first_ts: str = always(ZERO)
    last_seq: int = always(0)
    last_ts: str = always(ZERO)
    num_subjects: int = 0
    subjects: dict[str, int] = {}
    num_deleted: int = 0
    deleted: list[int] = []
    lost: LostData | None = None
    consumer_count: int = always(0)


class ClusterInfo(_Document, kw_only=True):
    leader: str


class StreamInfo(_Document, kw_only=True):
    config: StreamConfig
    created: str
    state: StreamState
    cluster: ClusterInfo | UnsetType = UNSET
    ts: str


class StreamInfoRequest(_Document, kw_only=True):
    offset: Int64 = 0
    deleted_details: bool = False
    subjects_filter: str = ""


class ListRequest(_Document, kw_only=True):
    offset: Int64 = 0
    subject: str = ""


class MessageGetRequest(_Document, kw_only=True):
    seq: Uint64 = 0
    last_by_subj: str = ""
    next_by_subj: str = ""
    batch: Int64 = 0
    max_bytes: Int64 = 0
    start_time: Text = ""
    multi_last: list[str] = []
    up_to_seq: Uint64 = 0
    up_to_time: Text = ""
    no_hdr: bool = False


class PurgeRequest(_Document, kw_only=True):
    """`filter`: a subject. Purge below `seq`, or all but the last `keep`."""

    filter: str = ""
    seq: Uint64 = 0
    keep: Uint64 = 0


class MessageDeleteRequest(_Document, kw_only=True):
    seq: Uint64 = 0
    no_erase: bool = False


class DirectGetRequest(Struct, kw_only=True, omit_defaults=True):
    """As `MessageGetRequest`, but unknown fields are passed over, as nats-server does here."""

    seq: Uint64 = 0
    last_by_subj: str = ""
    next_by_subj: str = ""
    batch: Int64 = 0
    max_bytes: Int64 = 0
    start_time: Text = ""
    multi_last: list[str] = []
    up_to_seq: Uint64 = 0
    up_to_time: Text = ""
    no_hdr: bool = False


class StoredMessage(_Document, kw_only=True):
    """`hdrs` and `data` travel as base64."""

    subject: str
    seq: int
    hdrs: bytes = b""
    data: bytes = b""
    time: str


# ── consumers ──


class ConsumerConfig(_Document, kw_only=True):
    durable_name: str = ""
    name: str = ""
    description: str = ""
    deliver_policy: DeliverPolicy = always("all")
    opt_start_seq: Uint64 = 0
    opt_start_time: Text = ""
    ack_policy: AckPolicy = always("none")
    ack_wait: Int64 = 0
    max_deliver: Int64 = 0
    backoff: list[Int64] = []
    filter_subject: str = ""
    filter_subjects: list[str] = []
    replay_policy: ReplayPolicy = always("instant")
    rate_limit_bps: Uint64 = 0
    sample_freq: str = ""
    max_waiting: Int64 = 0
    max_ack_pending: Int64 = 0
    flow_control: bool = False
    idle_heartbeat: Int64 = 0
    headers_only: bool = False
    max_batch: Int64 = 0
    max_expires: Int64 = 0
    max_bytes: Int64 = 0
    deliver_subject: str = ""
    deliver_group: str = ""
    inactive_threshold: Int64 = 0
    num_replicas: Int64 = always(0)
    mem_storage: bool = False
    direct: bool = False
    metadata: dict[str, str] = {}
    pause_until: Text = ""
    priority_groups: list[str] = []
    priority_policy: Text = ""
    priority_timeout: Int64 = 0


class PauseRequest(_Document, kw_only=True):
    pause_until: Text = ""


class ResetRequest(Struct, kw_only=True):
    seq: Uint64 = 0


class UnpinRequest(Struct, kw_only=True):
    group: str = ""


class CreateConsumerRequest(_Document, kw_only=True):
    stream_name: str = ""
    config: ConsumerConfig = msgspec.field(default_factory=ConsumerConfig)
    action: Literal["", "create", "update"] = ""
    pedantic: bool = False


class SequenceInfo(_Document, kw_only=True):
    consumer_seq: int = always(0)
    stream_seq: int = always(0)
    last_active: str = ""


class ConsumerInfo(_Document, kw_only=True):
    stream_name: str
    name: str
    created: str
    config: ConsumerConfig
    delivered: SequenceInfo
    ack_floor: SequenceInfo
    num_ack_pending: int
    num_redelivered: int
    num_waiting: int
    num_pending: int
    push_bound: bool = False
    paused: bool = False
    pause_remaining: int = 0
    ts: str


# ── answers ──


class ApiError(_Document, kw_only=True):
    code: int
    err_code: int
    description: str


class Answer(_Document, kw_only=True):
    """What every answer begins with. Where nats-server sends counters beside an error, so do we."""

    type: str
    error: ApiError | UnsetType = UNSET


class SuccessAnswer(Answer, kw_only=True):
    success: bool = False


class PageAnswer(Answer, kw_only=True):
    total: int = always(0)
    offset: int = always(0)
    limit: int = always(0)


class StreamNamesAnswer(PageAnswer, kw_only=True):
    streams: list[str] | None = msgspec.field(default_factory=lambda: None)


class StreamListAnswer(PageAnswer, kw_only=True):
    streams: list[StreamInfo] | UnsetType = UNSET


class ConsumerNamesAnswer(PageAnswer, kw_only=True):
    consumers: list[str] = msgspec.field(default_factory=_no_names)


class ConsumerListAnswer(PageAnswer, kw_only=True):
    consumers: list[ConsumerInfo] = msgspec.field(default_factory=_no_consumers)


class StreamCreateAnswer(Answer, kw_only=True):
    config: StreamConfig | UnsetType = UNSET
    created: str = ""
    state: StreamState | UnsetType = UNSET
    ts: str = ""
    did_create: bool = False


class StreamInfoAnswer(PageAnswer, kw_only=True):
    config: StreamConfig | UnsetType = UNSET
    created: str = ""
    state: StreamState | UnsetType = UNSET
    cluster: ClusterInfo | UnsetType = UNSET
    ts: str = ""


class StreamPurgeAnswer(SuccessAnswer, kw_only=True):
    purged: int = always(0)


class MessageGetAnswer(Answer, kw_only=True):
    message: StoredMessage | UnsetType = UNSET


class ConsumerAnswer(Answer, kw_only=True):
    """Of CONSUMER.CREATE and CONSUMER.INFO: the fields of ConsumerInfo beside the type."""

    stream_name: str = ""
    name: str = ""
    created: str = ""
    config: ConsumerConfig | UnsetType = UNSET
    delivered: SequenceInfo | UnsetType = UNSET
    ack_floor: SequenceInfo | UnsetType = UNSET
    num_ack_pending: int | UnsetType = UNSET
    num_redelivered: int | UnsetType = UNSET
    num_waiting: int | UnsetType = UNSET
    num_pending: int | UnsetType = UNSET
    push_bound: bool = False
    paused: bool = False
    pause_remaining: int = 0
    ts: str = ""
    reset_seq: int = 0


class PauseAnswer(Answer, kw_only=True):
    paused: bool = always(False)
    pause_until: str = always(ZERO)
    pause_remaining: int = 0


class AccountLimits(_Document, kw_only=True):
    """-1: no limit."""

    max_memory: int = always(-1)
    max_storage: int = always(-1)
    max_streams: int = always(-1)
    max_consumers: int = always(-1)
    max_ack_pending: int = always(-1)
    memory_max_stream_bytes: int = always(-1)
    storage_max_stream_bytes: int = always(-1)
    max_bytes_required: bool = always(False)


class ApiStats(_Document, kw_only=True):
    """`total` and `errors` count the requests before this one."""

    level: int = always(API_LEVEL)
    total: int = always(0)
    errors: int = always(0)


class AccountInfoAnswer(Answer, kw_only=True):
    memory: int = always(0)
    storage: int = always(0)
    reserved_memory: int = always(0)
    reserved_storage: int = always(0)
    streams: int = always(0)
    consumers: int = always(0)
    limits: AccountLimits = msgspec.field(default_factory=AccountLimits)
    api: ApiStats = msgspec.field(default_factory=ApiStats)


# ── to and from bytes ──

_encoder = msgspec.json.Encoder()
_decoders: dict[type, msgspec.json.Decoder[object]] = {}

D = TypeVar("D", bound=Struct)


def encode(document: Struct) -> bytes:
    """The JSON of an answer."""
    return _encoder.encode(document)


def decode_request(payload: bytes, kind: type[D]) -> D:
    """The request in `payload`. Raises JetStreamError 10025 with a reason in nats-server's words where they are
    known."""
    if payload.strip() in (b"", b"null"):
        return kind()
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        if b"null" in payload:
            return msgspec.convert(_without_nulls(msgspec.json.decode(payload)), kind)
        return decoder.decode(payload)  # type: ignore[return-value]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid_json(str(error)) from error


def decode_document(payload: bytes, kind: type[D]) -> D:
    """As `decode_request` where a document is optional: what is no object and no list counts as none."""
    return decode_request(payload, kind) if payload.lstrip(b" \t\r\n")[:1] in (b"{", b"[") else kind()


def is_empty_request(payload: bytes) -> bool:
    """Whether a request that takes no document has none: nothing, or an object without fields, as async-nats sends."""
    if not payload.strip():
        return True
    try:
        return bool(msgspec.json.decode(payload) == {})
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`")
_UNKNOWN_VALUE = re.compile(r"Invalid enum value '(.*?)'(?: - at `\$\.?(.*?)`)?")


def _invalid_json(text: str) -> JetStreamError:
    if found := _UNKNOWN_FIELD.search(text):
        return api_error("invalid_json", reason=f'json: unknown field "{found[1]}"')
    if found := _UNKNOWN_VALUE.search(text):
        if found[2] == "action":
            return api_error("invalid_json", reason=f'unknown consumer action: "{found[1]}"')
        return api_error("invalid_json", reason=f'can not unmarshal "\\"{found[1]}\\""')
    if "truncated" in text:
        return api_error("invalid_json", reason="unexpected EOF")
    return api_error("invalid_json", reason=text)


def error_document(error: JetStreamError) -> ApiError:
    """The `error` of an answer."""
    return ApiError(code=error.code, err_code=error.err_code, description=error.description)
