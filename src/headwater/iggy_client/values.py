"""Values of the client: what a topic may be made with, and what is not known by the protocol's own words."""

from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum, StrEnum
from typing import Final

from headwater.iggy_wire.options import NEVER
from headwater.model.record import Record
from headwater.model.typed_header import HeaderValue
from headwater.model.typed_headers import HeaderForm, TypedHeaders

UNLIMITED: Final = NEVER
"""A size without a limit, as `max_size`; and a message that is kept for ever, as `message_expiry`."""


class UserStatus(IntEnum):
    ACTIVE = 1
    INACTIVE = 2


class Durability(StrEnum):
    """What an answer of Apache's server stands for; here it means on disk in either case."""

    REPLICATED = "replicated"
    PERSISTED = "persisted"


class Scope(IntEnum):
    """What `describe_options` is about."""

    TOPIC = 1
    STREAM = 2
    USER = 3


class TopicOptions(Record):
    """What is None is left to the server. `message_expiry`: how long a message is kept, or UNLIMITED; `max_size` and
    `segment_size` in bytes; `more`: further options by name, texts allowed."""

    compression: str | None = None
    message_expiry: timedelta | int | None = None
    max_size: int | None = None
    segment_size: int | None = None
    durability: Durability | None = None
    consumer_offset_durability: Durability | None = None
    messages_required_to_save: int | None = None
    size_of_messages_required_to_save: int | None = None
    preallocate_segments: bool | None = None
    more: Mapping[str, str] | None = None

    def encode(self) -> bytes:
        """The options block. Raises HeaderError for a number that does not fit."""
        block = TypedHeaders()
        if self.compression is not None:
            block["compression_algorithm"] = self.compression
        if self.message_expiry is not None:
            expiry = self.message_expiry
            us = expiry if isinstance(expiry, int) else expiry // timedelta(microseconds=1)
            block["message_expiry"] = HeaderValue.from_uint64(us)
        if self.max_size is not None:
            block["max_topic_size"] = HeaderValue.from_uint64(self.max_size)
        for name in ("segment_size", "size_of_messages_required_to_save"):
            if (size := getattr(self, name)) is not None:
                block[name] = HeaderValue.from_uint64(size)
        if self.messages_required_to_save is not None:
            block["messages_required_to_save"] = HeaderValue.from_uint32(self.messages_required_to_save)
        for name in ("durability", "consumer_offset_durability", "preallocate_segments"):
            if (value := getattr(self, name)) is not None:
                block[name] = value if isinstance(value, bool) else str(value)
        return block.encode(HeaderForm.TYPED) + options_block(self.more)


def options_block(options: Mapping[str, str] | None) -> bytes:
    """Options by name, as texts, in the form of the wire."""
    return TypedHeaders(options).encode(HeaderForm.TYPED) if options else b""
