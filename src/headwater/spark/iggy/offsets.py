"""Where a reader stands in the partitions of Iggy topics, and what a partition says of itself. Pure.

    {"v": 1, "topics": {"orders": {"0": {"next": 123, "created": 1763701776000000}, "1": {"next": 0, "created": ...}}}}

`next` is the first offset not yet read: ranges are half-open. `created` is the partition's creation time in microseconds:
offsets of a topic that was deleted and made anew start over, and would silently mean other messages. A partition that was
added later is read from its first message on.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from headwater.errors import ConfigError, DataLossError

FORMAT_VERSION = 1


class Place(NamedTuple):
    """One partition of the stream that is read."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionOffset:
    """A position in one partition."""

    place: Place
    next: int
    created: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition at one moment. Offsets below `end` were given out; how many of them are still there, `messages`
    says: `first` is the lowest that is, if none was deleted singly."""

    place: Place
    created: int
    end: int
    messages: int = 0
    bytes: int = 0

    @property
    def first(self) -> int:
        return max(0, self.end - self.messages)

    def messages_in(self, size: int) -> int:
        """About how many messages have `size` bytes together; at least one."""
        return max(1, size * self.messages // self.bytes) if self.bytes else 1

    def at(self, offset: int) -> PartitionOffset:
        return PartitionOffset(self.place, offset, self.created)


@dataclass(frozen=True, slots=True)
class IggyRange:
    """Offsets `start <= o < end` of a partition made at `created`; `mean` bytes a message."""

    topic: str
    partition: int
    created: int
    start: int
    end: int
    mean: int = 0

    def __len__(self) -> int:
        return self.end - self.start


def to_json(offsets: Iterable[PartitionOffset]) -> dict[str, Any]:
    """What lies in the checkpoint."""
    topics: dict[str, dict[str, Any]] = {}
    for offset in offsets:
        partitions = topics.setdefault(offset.place.topic, {})
        partitions[str(offset.place.partition)] = {"next": offset.next, "created": offset.created}
    return {"v": FORMAT_VERSION, "topics": topics}


def from_json(document: Mapping[str, Any], topics: Iterable[str]) -> dict[Place, PartitionOffset]:
    """The positions by partition. Raises ConfigError when the checkpoint is of another format or of other topics."""
    if document.get("v") != FORMAT_VERSION or not isinstance(document.get("topics"), dict):
        raise ConfigError(
            f"the checkpoint holds offsets of format {document.get('v')!r}, not {FORMAT_VERSION}",
            value=document,
            hint="it was written by another version or another source",
        )
    stated = document["topics"]
    if not set(stated) <= set(topics):
        raise ConfigError(
            f"the checkpoint belongs to other topics than {', '.join(topics)}",
            value=document,
            hint="use a new checkpoint location for other topics",
        )
    return {
        place: PartitionOffset(place, int(entry["next"]), int(entry["created"]))
        for topic, partitions in stated.items()
        for partition, entry in partitions.items()
        for place in (Place(topic, int(partition)),)
    }


def loss(start: PartitionOffset, state: PartitionState | None) -> DataLossError | None:
    """What is gone of the partition that `start` was taken from, or None when all from `start` on may still be there."""
    restart = "use a new checkpoint, or failOnDataLoss=false to go on from the first message"
    if state is None:
        return DataLossError(f"partition {start.place} is gone", value=start.next, hint=restart)
    if start.created != state.created:
        return DataLossError(f"partition {start.place} was made anew", value=start.next, hint=restart)
    if start.next > max(state.end, 1):  # an empty partition does not tell whether offset 0 was ever given out
        return DataLossError(
            f"partition {start.place} ends at offset {state.end - 1}, before the reader's position {start.next}: it was "
            "purged, or restored from an older state",
            value=start.next,
            hint=restart,
        )
    if start.next < state.first:
        return DataLossError(
            f"offsets {start.next} to {state.first - 1} of partition {start.place} are gone (expired or purged)",
            value=(start.next, state.first),
            hint="failOnDataLoss=false reads on from what is left",
        )
    return None


def resumed(start: PartitionOffset, state: PartitionState) -> PartitionOffset:
    """Where to go on after a loss that is accepted."""
    if start.created == state.created and start.next <= state.end:
        return state.at(max(start.next, state.first))
    return state.at(state.first)


def split(wholes: list[IggyRange], pieces: int | None) -> list[IggyRange]:
    """A piece for each range that is not empty; more, in proportion, where at least `pieces` are wanted."""
    wholes = [whole for whole in wholes if len(whole) > 0]
    total = sum(map(len, wholes))
    found: list[IggyRange] = []
    for whole in wholes:
        parts = 1 if pieces is None else min(len(whole), max(1, pieces * len(whole) // total))
        edges = [whole.start + len(whole) * part // parts for part in range(parts + 1)]
        found += [replace(whole, start=a, end=b) for a, b in itertools.pairwise(edges)]
    return found
