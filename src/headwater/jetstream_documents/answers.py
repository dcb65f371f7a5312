"""The answers of a server to API requests. Where nats-server sends counters beside an error, so does this server."""

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from headwater.errors import JetStreamError
from headwater.jetstream_documents.account import AccountLimits, ApiStats
from headwater.jetstream_documents.consumers import ConsumerConfig, ConsumerInfo, PriorityGroupState, SequencePair
from headwater.jetstream_documents.document import ApiError, Document, always
from headwater.jetstream_documents.streams import (
    ClusterInfo,
    SourceInfo,
    StoredMessage,
    StreamConfig,
    StreamInfo,
    StreamState,
)
from headwater.model.timestamps import ZERO

TYPE_PREFIX = "io.nats.jetstream.api.v1."  # of every answer's `type`

_encoder = msgspec.json.Encoder()


def _no_names() -> list[str]:
    return []  # a function: msgspec treats the type `list` as a default value, and would leave the field out


def _no_consumers() -> list[ConsumerInfo]:
    return []


class Answer(Document, kw_only=True):
    """The first field of every answer."""

    type: str
    error: ApiError | UnsetType = UNSET


class SuccessAnswer(Answer, kw_only=True):
    """The answer to requests that only succeed or fail."""

    success: bool = False


class PageAnswer(Answer, kw_only=True):
    """One page of a list of `total` entries."""

    total: int = always(0)
    offset: int = always(0)
    limit: int = always(0)


class StreamNamesAnswer(PageAnswer, kw_only=True):
    """The answer to STREAM.NAMES."""

    streams: list[str] | None = msgspec.field(default_factory=lambda: None)


class StreamListAnswer(PageAnswer, kw_only=True):
    """The answer to STREAM.LIST."""

    streams: list[StreamInfo] | UnsetType = UNSET


class ConsumerNamesAnswer(PageAnswer, kw_only=True):
    """The answer to CONSUMER.NAMES."""

    consumers: list[str] = msgspec.field(default_factory=_no_names)


class ConsumerListAnswer(PageAnswer, kw_only=True):
    """The answer to CONSUMER.LIST."""

    consumers: list[ConsumerInfo] = msgspec.field(default_factory=_no_consumers)


class StreamCreateAnswer(Answer, kw_only=True):
    """The answer to STREAM.CREATE and STREAM.UPDATE."""

    config: StreamConfig | UnsetType = UNSET
    created: str = ""
    state: StreamState | UnsetType = UNSET
    domain: str = ""
    mirror: SourceInfo | None = None
    sources: list[SourceInfo] | None = None
    ts: str = ""
    did_create: bool = False


class StreamInfoAnswer(PageAnswer, kw_only=True):
    """The answer to STREAM.INFO; the page is that of `state.subjects`. `stored_batches`: the version of HEADWATER.RANGE
    that this server supports, sent to clients that request it; nats-server has no such field."""

    config: StreamConfig | UnsetType = UNSET
    created: str = ""
    state: StreamState | UnsetType = UNSET
    domain: str = ""
    cluster: ClusterInfo | None = None
    mirror: SourceInfo | None = None
    sources: list[SourceInfo] | None = None
    ts: str = ""
    stored_batches: int = 0


class StreamPurgeAnswer(SuccessAnswer, kw_only=True):
    """The answer to STREAM.PURGE. `purged`: how many messages were removed."""

    purged: int = always(0)


class RestoreAnswer(Answer, kw_only=True):
    """The answer to STREAM.RESTORE."""

    deliver_subject: str = always("")


class MessageGetAnswer(Answer, kw_only=True):
    """The answer to STREAM.MSG.GET."""

    message: StoredMessage | UnsetType = UNSET


class ConsumerAnswer(Answer, kw_only=True):
    """The answer to CONSUMER.CREATE and CONSUMER.INFO: the fields of ConsumerInfo beside the type."""

    stream_name: str = ""
    name: str = ""
    created: str = ""
    config: ConsumerConfig | UnsetType = UNSET
    delivered: SequencePair | UnsetType = UNSET
    ack_floor: SequencePair | UnsetType = UNSET
    num_ack_pending: int | UnsetType = UNSET
    num_redelivered: int | UnsetType = UNSET
    num_waiting: int | UnsetType = UNSET
    num_pending: int | UnsetType = UNSET
    push_bound: bool = False
    paused: bool = False
    pause_remaining: int = 0
    priority_groups: list[PriorityGroupState] | None = None
    ts: str = ""
    reset_seq: int = 0


class PauseAnswer(Answer, kw_only=True):
    """The answer to CONSUMER.PAUSE; `pause_remaining` in nanoseconds."""

    paused: bool = always(False)
    pause_until: str = always(ZERO)
    pause_remaining: int = 0


class Usage(Document, kw_only=True):
    """Bytes in use, and bytes reserved by streams' limits (`reserved_*`)."""

    memory: int = always(0)
    storage: int = always(0)
    reserved_memory: int = always(0)
    reserved_storage: int = always(0)
    streams: int = always(0)
    consumers: int = always(0)
    limits: AccountLimits = msgspec.field(default_factory=AccountLimits)


class AccountInfoAnswer(Answer, kw_only=True):
    """The answer to INFO: as `Usage`; `tiers` of an account whose limits depend on the number of replicas."""

    memory: int = always(0)
    storage: int = always(0)
    reserved_memory: int = always(0)
    reserved_storage: int = always(0)
    streams: int = always(0)
    consumers: int = always(0)
    limits: AccountLimits = msgspec.field(default_factory=AccountLimits)
    domain: str = ""
    api: ApiStats = msgspec.field(default_factory=ApiStats)
    tiers: dict[str, Usage] = msgspec.field(default_factory=dict)


NO_LIMITS_BUT_TIERS = AccountLimits(
    max_memory=0,
    max_storage=0,
    max_streams=0,
    max_consumers=0,
    max_ack_pending=0,
    memory_max_stream_bytes=0,
    storage_max_stream_bytes=0,
)


def account_info(usage: Usage, domain: str, api: ApiStats) -> AccountInfoAnswer:
    """The answer for an account. Limits of a tier are shown in `tiers`, and those of the whole account are then zero,
    as with nats-server."""
    tier, tiers = usage.limits.tier, dict[str, Usage]()
    if tier:
        tiers[tier] = structs.replace(usage, limits=structs.replace(usage.limits, tier="", tiers=()))
        usage = structs.replace(usage, limits=NO_LIMITS_BUT_TIERS)
    kind = TYPE_PREFIX + "account_info_response"
    return AccountInfoAnswer(type=kind, domain=domain, api=api, tiers=tiers, **structs.asdict(usage))


def encode(document: Struct) -> bytes:
    """The JSON of an answer."""
    return _encoder.encode(document)


def error_document(error: JetStreamError) -> ApiError:
    """The `error` of an answer."""
    return ApiError(code=error.code, err_code=error.err_code, description=error.description)
