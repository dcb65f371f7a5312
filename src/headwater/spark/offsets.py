"""Where a reader stands in a stream, as Spark's checkpoint keeps it, and what the stream says of itself.

    {"v": 1, "streams": {"ORDERS": {"next": 123, "created": "2026-11-21T03:49:36.1Z"}}}

`next` is the first stream sequence not yet read: ranges are half-open, and a stream of which nothing was read stands
at its first sequence. `created` is the creation time of the stream as the server writes it. Sequences of a stream that
was deleted and made anew start over, and would silently mean other messages; the creation time tells the two apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from headwater.errors import ConfigError, RemoteProtocolError

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position in one stream."""

    stream: str
    next: int
    created: str


def to_json(offsets: Iterable[StreamOffset]) -> dict[str, Any]:
    """What lies in the checkpoint."""
    streams = {offset.stream: {"next": offset.next, "created": offset.created} for offset in offsets}
    return {"v": FORMAT_VERSION, "streams": streams}


def from_json(document: Mapping[str, Any], streams: Sequence[str]) -> list[StreamOffset]:
    """The positions in `streams`, in their order.

    Raises ConfigError when the checkpoint is of another format or of other streams.
    """
    if document.get("v") != FORMAT_VERSION:
        raise ConfigError(
            f"the checkpoint holds offsets of format {document.get('v')!r}, not {FORMAT_VERSION}",
            value=document,
            hint="it was written by another version or another source",
        )
    stated = document.get("streams")
    if not isinstance(stated, dict) or set(stated) != set(streams):
        raise ConfigError(
            f"the checkpoint belongs to another stream than {', '.join(streams)}",
            value=document,
            hint="use a new checkpoint location for other streams",
        )
    return [StreamOffset(name, int(stated[name]["next"]), str(stated[name]["created"])) for name in streams]


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream at one moment: sequences `first <= s < end` may be there (some may have been deleted singly)."""

    stream: str
    created: str
    first: int
    end: int
    retention: str
    messages: int = 0
    bytes: int = 0

    @classmethod
    def from_info(cls, info: Mapping[str, Any]) -> Self:
        """From the answer to STREAM.INFO. Raises RemoteProtocolError when a field is missing."""
        try:
            state = info["state"]
            end = int(state["last_seq"]) + 1
            # A stream that never held a message says 0 and 0; one that was purged says first = last + 1.
            first = int(state["first_seq"]) or end
            config = info["config"]
            retention = str(config.get("retention", "limits"))
            held = int(state.get("messages", 0)), int(state.get("bytes", 0))
            return cls(str(config["name"]), str(info["created"]), first, end, retention, *held)
        except (KeyError, TypeError, ValueError) as error:
            raise RemoteProtocolError(f"STREAM.INFO was answered without {error}", value=dict(info)) from error

    def messages_in(self, size: int) -> int:
        """About how many messages of this stream have `size` bytes together, by its mean; at least one."""
        return max(1, size * self.messages // self.bytes) if self.bytes else 1

    def at(self, sequence: int) -> StreamOffset:
        return StreamOffset(self.stream, sequence, self.created)
