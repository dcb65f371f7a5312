"""A reader's positions in partitions of Iggy topics (`headwater.spark.offsets` defines the terms). In the checkpoint:

    {"v": 1, "topics": {"orders": {"0": {"next": 123, "created": 1763701776000000}, "1": {"next": 0, "created": ...}}}}

`created` is the partition's creation time in microseconds since 1970. A partition that is added later is read from its
first message.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headwater.errors import ConfigError, DataLossError
from headwater.spark import ranges
from headwater.spark.offsets import FORMAT_VERSION, LogState, Offset, check_format
from headwater.spark.ranges import Range


class Place(NamedTuple):
    """One partition of the stream that is read."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class PartitionState(LogState[Place]):
    """A partition at one moment."""

    __slots__ = ()

    kind = "partition"
    unit = "offset"


PartitionOffset = Offset[Place]
IggyRange = Range[Place]


def partition_state(place: Place, created: int, end: int, messages: int = 0, size: int = 0) -> PartitionState:
    """A state from the server's numbers: offsets below `end` were assigned, and `messages` of them are left. The first
    offset follows from this, if no message was deleted individually."""
    return PartitionState(place, created, max(0, end - messages), end, messages, size)


def to_json(offsets: Iterable[PartitionOffset]) -> dict[str, Any]:
    """The checkpoint document for positions in partitions."""
    topics: dict[str, dict[str, Any]] = {}
    for offset in offsets:
        partitions = topics.setdefault(offset.place.topic, {})
        partitions[str(offset.place.partition)] = {"next": offset.next, "created": offset.created}
    return {"v": FORMAT_VERSION, "topics": topics}


def from_json(document: Mapping[str, Any], topics: Iterable[str]) -> dict[Place, PartitionOffset]:
    """The positions by partition. Raises ConfigError for a checkpoint with another format or other topics."""
    check_format(document)
    stated = document.get("topics")
    if not isinstance(stated, dict) or not set(stated) <= set(topics):
        raise ConfigError(
            f"the checkpoint belongs to other topics than {', '.join(topics)}",
            value=document,
            hint="use a new checkpoint location for other topics",
        )
    return {
        place: Offset(place, int(entry["next"]), int(entry["created"]))
        for topic, partitions in stated.items()
        for partition, entry in partitions.items()
        for place in (Place(topic, int(partition)),)
    }


def loss(start: PartitionOffset, state: PartitionState | None) -> DataLossError | None:
    """Like `ranges.loss`; `state` is None for a partition that no longer exists."""
    if state is None:
        hint = "use a new checkpoint, or failOnDataLoss=false to go on without it"
        return DataLossError(f"partition {start.place} is gone", value=start.next, hint=hint)
    return ranges.loss(start, state)
