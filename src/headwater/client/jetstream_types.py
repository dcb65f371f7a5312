"""What JetStream is asked and what it answers, as far as this client uses it. Spans in nanoseconds, sizes in bytes.

Fields at their default are left out of requests; unknown fields of answers are ignored, so that newer servers can talk
to us. Times of answers stay RFC 3339 texts: they have nanoseconds, and datetime has not.
"""

from typing import Literal, TypeVar

import msgspec

from headwater.errors import JetStreamError, RemoteProtocolError


class StreamConfig(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A stream: which subjects it captures and how much it keeps; -1 is no limit."""

    name: str
    subjects: list[str] = []
    description: str = ""
    retention: Literal["limits", "interest", "workqueue"] = "limits"
    storage: Literal["file", "memory"] = "file"
    discard: Literal["old", "new"] = "old"
    max_consumers: int = -1
    max_msgs: int = -1
    max_bytes: int = -1
    max_age: int = 0
    max_msgs_per_subject: int = -1
    max_msg_size: int = -1
    num_replicas: int = 1
    duplicate_window: int = 0  # 0: the server's default, two minutes
    allow_direct: bool = False
    metadata: dict[str, str] = {}


class StreamState(msgspec.Struct, kw_only=True):
    """What a stream holds; sequences are 1-based, `last_seq` is included."""

    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    last_seq: int = 0
    first_ts: str = ""
    last_ts: str = ""
    consumer_count: int = 0


class StreamInfo(msgspec.Struct, kw_only=True):
    """A stream as the server describes it; `created` is an RFC 3339 text."""

    config: StreamConfig
    state: StreamState
    created: str = ""


class ConsumerConfig(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A pull consumer: a reading position on a stream. Without `durable_name` it ends when it is not used.

    Messages are to be acknowledged one by one, unless `ack_policy` says otherwise.
    """

    name: str = ""
    durable_name: str = ""
    deliver_policy: Literal["all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"] = "all"
    opt_start_seq: int = 0
    opt_start_time: str = ""
    # Always sent, for the server's own default is "none"; a default from a factory is never left out.
    ack_policy: Literal["explicit", "all", "none"] = msgspec.field(default_factory=lambda: "explicit")
    ack_wait: int = 0
    max_deliver: int = 0
    filter_subject: str = ""
    filter_subjects: list[str] = []
    max_ack_pending: int = 0
    inactive_threshold: int = 0
    num_replicas: int = 0
    mem_storage: bool = False
    headers_only: bool = False


class SequencePair(msgspec.Struct, kw_only=True):
    """A position: the consumer's own count, and the stream's sequence."""

    consumer_seq: int = 0
    stream_seq: int = 0


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
