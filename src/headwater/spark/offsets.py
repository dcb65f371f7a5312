"""A reader's position in a log, as stored in Spark's checkpoint, and the state of the log at one moment.

A log is a JetStream stream or one partition of an Iggy topic; `place` is its name: that of the stream, or topic and
partition. The checkpoint of a JetStream source:

    {"v": 1, "streams": {"ORDERS": {"next": 123, "created": "2026-11-21T03:49:36.1Z"}}}

`next` is the first position not yet read (a stream sequence, or an Iggy offset): ranges are half-open, and the position in
a log of which nothing was read is its first message. `created` is the creation time in the server's notation. Positions in
a log that was deleted and created again start over, and would silently mean other messages; the creation time distinguishes
the two.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from headwater.errors import ConfigError, RemoteProtocolError

FORMAT_VERSION = 1

PlaceT = TypeVar("PlaceT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Offset(Generic[PlaceT]):
    """A position in one log."""

    place: PlaceT
    next: int
    created: str | int


@dataclass(frozen=True, slots=True)
class LogState(Generic[PlaceT]):
    """A log at one moment: positions `first <= p < end` may exist (some may have been deleted individually)."""

    kind: ClassVar[str] = "log"  # names of the log and of a position in error messages
    unit: ClassVar[str] = "position"

    place: PlaceT
    created: str | int
    first: int
    end: int
    messages: int = 0
    bytes: int = 0

    def messages_in(self, size: int) -> int:
        """The approximate number of messages in `size` bytes of this log, by its mean; at least one."""
        return max(1, size * self.messages // self.bytes) if self.bytes else 1

    def at(self, position: int) -> Offset[PlaceT]:
        return Offset(self.place, position, self.created)


@dataclass(frozen=True, slots=True)
class StreamState(LogState[str]):
    """A JetStream stream at one moment. `stored_batches`: the version of the stored-batches request that its server
    supports, or 0."""

    kind: ClassVar[str] = "stream"
    unit: ClassVar[str] = "sequence"

    retention: str = "limits"
    replicas: int = 1
    stored_batches: int = 0

    @classmethod
    def from_info(cls, info: Mapping[str, Any]) -> Self:
        """The state from an answer to STREAM.INFO. Raises RemoteProtocolError when a field is missing."""
        try:
            state = info["state"]
            end = int(state["last_seq"]) + 1
            # An empty stream that never held a message has 0 and 0; a purged one has first = last + 1.
            first = int(state["first_seq"]) or end
            config = info["config"]
            retention = str(config.get("retention", "limits"))
            held = int(state.get("messages", 0)), int(state.get("bytes", 0))
            replicas = int(config.get("num_replicas", 1))
            offered = int(info.get("stored_batches", 0))
            return cls(str(config["name"]), str(info["created"]), first, end, *held, retention, replicas, offered)
        except (KeyError, TypeError, ValueError) as error:
            raise RemoteProtocolError(f"STREAM.INFO was answered without {error}", value=dict(info)) from error


def to_json(offsets: Iterable[Offset[str]]) -> dict[str, Any]:
    """The checkpoint document for positions in streams."""
    streams = {offset.place: {"next": offset.next, "created": offset.created} for offset in offsets}
    return {"v": FORMAT_VERSION, "streams": streams}


def from_json(document: Mapping[str, Any], streams: Sequence[str]) -> list[Offset[str]]:
    """The positions in `streams`, in their order. Raises ConfigError for a checkpoint with another format or other
    streams.
    """
    check_format(document)
    stated = document.get("streams")
    if not isinstance(stated, dict) or set(stated) != set(streams):
        raise ConfigError(
            f"the checkpoint belongs to another stream than {', '.join(streams)}",
            value=document,
            hint="use a new checkpoint location for other streams",
        )
    return [Offset(name, int(stated[name]["next"]), str(stated[name]["created"])) for name in streams]


def check_format(document: Mapping[str, Any]) -> None:
    """Raise ConfigError for a checkpoint of another format."""
    if document.get("v") != FORMAT_VERSION:
        raise ConfigError(
            f"the checkpoint holds offsets of format {document.get('v')!r}, not {FORMAT_VERSION}",
            value=document,
            hint="it was written by another version or another source",
        )
