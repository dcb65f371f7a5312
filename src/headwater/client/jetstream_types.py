"""The documents of JetStream's API for programs. Those without times are shared with the server; those with times are
in `configurations`, in seconds.

Sizes in bytes. Fields at their default are left out of requests (`encode_request`); unknown fields of answers are
ignored, so that newer servers work with this client.
"""

from typing import TYPE_CHECKING, TypeVar

import msgspec

from headwater.client.configurations import (
    ClusterInfo,
    ConsumerConfig,
    ConsumerInfo,
    ConsumerLimits,
    PeerInfo,
    SourceInfo,
    StreamConfig,
    StreamInfo,
    StreamSource,
)
from headwater.client.nats_py_modules import API, API_ADVICE, API_ATTRIBUTES, names_of
from headwater.client.nats_py_names import install
from headwater.client.units import checked, read_wire, write_wire
from headwater.errors import JetStreamError, RemoteProtocolError
from headwater.jetstream_documents import sparse_writing
from headwater.jetstream_documents.account import AccountLimits
from headwater.jetstream_documents.consumers import (
    AckPolicy,
    DeliverPolicy,
    PriorityGroupState,
    ReplayPolicy,
    SequencePair,
)
from headwater.jetstream_documents.document import ApiError
from headwater.jetstream_documents.streams import (
    Compression,
    Discard,
    ExternalStream,
    LostData,
    Placement,
    Republish,
    Retention,
    SourceConsumer,
    Storage,
    StoredMessage,
    StreamState,
    SubjectTransform,
)

__all__ = [
    "AccountInfo",
    "AccountLimits",
    "AckPolicy",
    "ApiError",
    "BatchAck",
    "ClusterInfo",
    "Compression",
    "ConsumerConfig",
    "ConsumerInfo",
    "ConsumerLimits",
    "DeliverPolicy",
    "Discard",
    "ExternalStream",
    "LostData",
    "PeerInfo",
    "Placement",
    "PriorityGroupState",
    "PubAck",
    "ReplayPolicy",
    "Republish",
    "Retention",
    "SequencePair",
    "SourceConsumer",
    "SourceInfo",
    "Storage",
    "StoredMessage",
    "StreamConfig",
    "StreamInfo",
    "StreamSource",
    "StreamState",
    "SubjectTransform",
    "decode_answer",
    "encode_request",
]


class AccountInfo(msgspec.Struct, kw_only=True):
    """What an account uses of JetStream: bytes in memory and on disk, streams, consumers."""

    memory: int = 0
    storage: int = 0
    streams: int = 0
    consumers: int = 0
    domain: str = ""
    limits: AccountLimits = msgspec.field(default_factory=AccountLimits)


class PubAck(msgspec.Struct, kw_only=True):
    """A stream has stored the message as `seq`; `duplicate` when it had it before. `val`: the sum of a counter, as text."""

    stream: str
    seq: int
    duplicate: bool = False
    domain: str = ""
    val: str = ""


class BatchAck(msgspec.Struct, kw_only=True):
    """A stream has stored the `count` messages of an atomic batch, the last of them as `seq`."""

    stream: str
    seq: int
    batch: str = ""
    count: int = 0
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


def encode_request(body: object) -> bytes:
    """The JSON of a request, times in nanoseconds; b"" for None. Raises ConfigError for an invalid time."""
    return sparse_writing.encode_request(checked(body), write_wire)


def decode_answer(payload: bytes, kind: type[T], request: str) -> T:
    """Read the answer to `request`, which is named in errors. Raises JetStreamError for an error answer,
    RemoteProtocolError for invalid bytes."""
    try:
        if b'"error"' in payload and (failed := _errors.decode(payload).error) is not None:
            raise JetStreamError(failed.code, failed.err_code, failed.description)
        return msgspec.json.decode(payload, type=kind, dec_hook=read_wire)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"the answer to {request} cannot be read: {error}", value=payload[:200]) from error


for _kind, _advice in API_ATTRIBUTES.items():
    if _kind in globals():  # ObjectInfo is that of `object_store`
        install(globals()[_kind], {}, _advice)

if not TYPE_CHECKING:  # names of `nats.js.api`
    __getattr__ = names_of(__name__, API, API_ADVICE)
