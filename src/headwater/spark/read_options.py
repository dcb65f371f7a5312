"""The options that `format("nats")` and `format("iggy")` share for reading, as checked values.

Positions are given as in Spark's Kafka source: one word, number or time for all, or a JSON object with a position for each.
Each source has its own parser for the JSON object, which names streams or partitions.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from headwater.errors import ConfigError
from headwater.spark.option_values import count, instant, one_of, parsed, seconds, size, truth

Edge = Literal["earliest", "latest"]
Position = Edge | int | datetime
Positions = Position | dict[Hashable, Position]  # one for all places, or one for each by its name
IncludeHeaders = Literal["map", "typed", "raw", "both", "none"]
Decode = Literal["none", "cloudevents"]

READ_TIMEOUT = 30.0  # seconds

READ_NAMES = (
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "decode",
    "fetchBatch",
    "readTimeout",
    "maxMessageBytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Counts are in messages, sizes in bytes, times in seconds; `ending` is exclusive."""

    starting: Positions | None = None
    ending: Positions | None = None
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: IncludeHeaders = "map"
    decode: Decode = "none"
    fetch_batch: int
    read_timeout: float = READ_TIMEOUT
    max_message_bytes: int | None = None

    def starting_at(self, place: Hashable, default: Edge) -> Position:
        return _of_one(self.starting, place, default)

    def ending_at(self, place: Hashable) -> Position:
        return _of_one(self.ending, place, "latest")

    @property
    def wants_map(self) -> bool:
        return self.include_headers in ("map", "both")

    @property
    def wants_raw(self) -> bool:
        return self.include_headers in ("raw", "both")


def _of_one(positions: Positions | None, place: Hashable, default: Edge) -> Position:
    if isinstance(positions, dict):
        return positions.get(place, default)
    return default if positions is None else positions


def parse_read_options(
    options: Mapping[str, str], headers: tuple[str, ...], fetch_batch: int, positions: Callable[[str], Positions]
) -> dict[str, Any]:
    """The fields of `ReadOptions` by name, from options with lower-cased names.

    `headers`: the choices of includeHeaders. `fetch_batch`: the default of fetchBatch. `positions`: the parser of
    startingOffsets and endingOffsets. Raises ConfigError, naming the option, for an invalid one.
    """
    starting, ending = _edge(options, "starting", positions), _edge(options, "ending", positions)
    _check_order(starting, ending)
    return {
        "starting": starting,
        "ending": ending,
        "max_offsets_per_trigger": parsed(options, "maxOffsetsPerTrigger", count, None),
        "max_bytes_per_trigger": parsed(options, "maxBytesPerTrigger", size, None),
        "min_partitions": parsed(options, "minPartitions", count, None),
        "fail_on_data_loss": parsed(options, "failOnDataLoss", truth, True),
        "include_headers": parsed(options, "includeHeaders", one_of(*headers), "map"),
        "decode": parsed(options, "decode", one_of("none", "cloudevents"), "none"),
        "fetch_batch": parsed(options, "fetchBatch", count, fetch_batch),
        "read_timeout": parsed(options, "readTimeout", seconds, READ_TIMEOUT),
        "max_message_bytes": parsed(options, "maxMessageBytes", size, None),
    }


def _edge(options: Mapping[str, str], side: str, positions: Callable[[str], Positions]) -> Positions | None:
    """Where to start or end: by offset or by time, but not both."""
    if f"{side}offsets" in options and f"{side}timestamp" in options:
        raise ConfigError(f"options {side}Offsets and {side}Timestamp exclude each other")
    moment = parsed(options, f"{side}Timestamp", instant, None)
    return moment or parsed(options, f"{side}Offsets", positions, None)


def _check_order(starting: Positions | None, ending: Positions | None) -> None:
    """Raise ConfigError for a read that begins behind its end: it would give nothing, and say nothing. Equal positions are
    an empty read, as a job has that goes on from its last end."""
    places = {place for positions in (starting, ending) if isinstance(positions, dict) for place in positions}
    for place in places or {""}:
        begin, end = _of_one(starting, place, "earliest"), _of_one(ending, place, "latest")
        numbers = isinstance(begin, int) and isinstance(end, int) and begin > end
        times = isinstance(begin, datetime) and isinstance(end, datetime) and begin > end
        if numbers or times:
            raise ConfigError(
                f"the read begins at {begin}, behind its end at {end}",
                value=begin,
                limit=end,
                hint="the ending is the first that is not read: put the smaller one first",
            )


def position(text: str, smallest: int) -> Position:
    """Parse one position: a word, or a number of at least `smallest`. Raises ValueError."""
    if text in ("earliest", "latest"):
        return cast("Edge", text)
    if not (text.isascii() and text.isdigit()) or int(text) < smallest:
        raise ValueError(f"{text!r} is neither earliest nor latest, nor a whole number from {smallest} on")
    return int(text)
