"""The base class of the JetStream API's documents, fields that are never left out, and number ranges.

A field that holds its default is left out of the JSON, as Go's `omitempty` does, unless it is made by `always`. Strict
clients refuse a field too many as well as one too few, so each document marks its fields as one or the other. Fields
stand in the order in which nats-server 2.15 writes them. Times are RFC 3339 texts, because they have nanoseconds and
`datetime` has not; durations are nanoseconds, sizes bytes.

Unknown fields are ignored here, so that a client can read the answer of a newer server. A server must not ignore a
setting: `strict_reading.py` refuses them.
"""

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Uint64 = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]  # half of what Go takes: msgspec bounds fit an int64

Text = Annotated[str, Meta(min_length=1)]  # may be absent, but is not empty when it is there

T = TypeVar("T")


def always(default: T) -> T:
    """A field that may be absent when a document is read, and is there whenever one is written.

    msgspec leaves out a field that holds its `default`, but never one whose default comes from a factory.
    """
    return msgspec.field(default_factory=lambda: default)


class Document(Struct, kw_only=True, omit_defaults=True):
    """Root of the documents."""


class ApiError(Document, kw_only=True):
    """Why a request was refused, or why a stream cannot be copied: an HTTP-like code, nats-server's number, and its text."""

    code: int
    err_code: int
    description: str
