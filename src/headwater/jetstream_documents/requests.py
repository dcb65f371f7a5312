"""Documents that clients send to the API under `$JS.API.>`, other than configurations. Server side: read by
`strict_reading.py`.

A request whose class is not a `Document` may have unknown fields: nats-server ignores them there.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.document import Document, Int64, Text, Uint64
from headwater.jetstream_documents.streams import StreamConfig


class StreamConfigRequest(StreamConfig, kw_only=True):
    """STREAM.CREATE and STREAM.UPDATE. `pedantic`: refuse settings that the server would otherwise correct."""

    pedantic: bool = False


class StreamInfoRequest(Document, kw_only=True):
    """STREAM.INFO. `offset`: in the list of subjects."""

    offset: Int64 = 0
    deleted_details: bool = False
    subjects_filter: str = ""


class ListRequest(Document, kw_only=True):
    """STREAM.NAMES, STREAM.LIST, CONSUMER.NAMES, CONSUMER.LIST. `subject`: only streams that capture it."""

    offset: Int64 = 0
    subject: str = ""


class MessageGetRequest(Document, kw_only=True):
    """STREAM.MSG.GET."""

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


class DirectGetRequest(Struct, kw_only=True, omit_defaults=True):
    """DIRECT.GET, with the fields of MessageGetRequest; unknown fields are ignored."""

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


class PurgeRequest(Document, kw_only=True):
    """STREAM.PURGE. `filter`: a subject. Purge below `seq`, or all but the last `keep`."""

    filter: str = ""
    seq: Uint64 = 0
    keep: Uint64 = 0


class MessageDeleteRequest(Document, kw_only=True):
    """STREAM.MSG.DELETE. `no_erase`: the bytes may stay on disk for a while."""

    seq: Uint64 = 0
    no_erase: bool = False


def _any_consumer() -> ConsumerConfig:
    return ConsumerConfig(ack_policy="none")


class CreateConsumerRequest(Document, kw_only=True):
    """CONSUMER.CREATE and CONSUMER.DURABLE.CREATE."""

    stream_name: str = ""
    config: ConsumerConfig = msgspec.field(default_factory=_any_consumer)
    action: Literal["", "create", "update"] = ""
    pedantic: bool = False


class PauseRequest(Document, kw_only=True):
    """CONSUMER.PAUSE; without a time the consumer resumes."""

    pause_until: Text = ""


class ResetRequest(Struct, kw_only=True):
    """CONSUMER.RESET; without `seq` the consumer starts after its ack floor."""

    seq: Uint64 = 0


class UnpinRequest(Struct, kw_only=True):
    """CONSUMER.UNPIN."""

    group: str = ""
