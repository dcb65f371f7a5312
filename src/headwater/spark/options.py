"""What `format("nats")` reads, from where, and how: Spark's strings as one checked value.

Every option is checked before anything connects. Whom to connect to is `headwater.spark.server_options`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, cast

from headwater.errors import ConfigError, SubjectError
from headwater.model.subject import validate_subject
from headwater.spark.option_values import count, instant, listed, lowered, one_of, parsed, seconds, size, truth
from headwater.spark.server_options import NAMES as SERVER_NAMES
from headwater.spark.server_options import ServerOptions, parse_server_options

Edge = Literal["earliest", "latest"]
Position = Edge | int | datetime
Positions = Position | dict[str, Position]  # of all streams alike, or of each by its name
IncludeHeaders = Literal["map", "raw", "both", "none"]
Decode = Literal["none", "cloudevents"]

BUFFER_BYTES = 64 << 20  # of core messages that wait to be read
FETCH_BATCH = 5_000  # messages per pull request; two are outstanding, so a round trip costs nothing from 2,000 on
READ_TIMEOUT = 30.0  # seconds

NAMES = (
    "stream",
    "subjects",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "includeTimestampNs",
    "decode",
    "fetchBatch",
    "readTimeout",
    "pushdown",
    "maxMessageBytes",
    "delivery",
    "bufferBytes",
    *SERVER_NAMES,
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Counts in messages, sizes in bytes, times in seconds; `ending` is the first not read.

    Without streams these are the options of core subjects.
    """

    streams: tuple[str, ...]
    server: ServerOptions = field(default_factory=ServerOptions)
    subjects: tuple[str, ...] = ()
    starting: Positions | None = None
    ending: Positions = "latest"
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: IncludeHeaders = "map"
    timestamp_ns: bool = False
    decode: Decode = "none"
    fetch_batch: int = FETCH_BATCH
    read_timeout: float = READ_TIMEOUT
    pushdown: bool = False
    max_message_bytes: int | None = None
    buffer_bytes: int = BUFFER_BYTES

    @property
    def stream(self) -> str:
        """The stream, where these are the options of one."""
        (stream,) = self.streams
        return stream

    def starting_at(self, default: Edge) -> Position:
        """Where to start in the one stream."""
        return _of_one(self.starting, self.stream, default)

    @property
    def ending_at(self) -> Position:
        return _of_one(self.ending, self.stream, "latest")

    def of(self, stream: str) -> "SourceOptions":
        """The options of one of the streams."""
        return self if self.streams == (stream,) else replace(self, streams=(stream,))

    @property
    def wants_map(self) -> bool:
        return self.include_headers in ("map", "both")

    @property
    def wants_raw(self) -> bool:
        return self.include_headers in ("raw", "both")


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """Raises ConfigError, naming the option, for one that is unknown, missing or wrong."""
    options = lowered(given, NAMES)
    streams = tuple(dict.fromkeys(listed(options.get("stream", ""))))
    _check_delivery(options, streams)
    for stream in streams:
        if any(character in stream for character in ".*>/\\ \t\r\n"):
            raise ConfigError(f"option stream: {stream!r} is no stream name", value=stream)
    return SourceOptions(
        streams=streams,
        server=parse_server_options(options),
        subjects=parsed(options, "subjects", _subjects, ()),
        starting=_edge(options, "starting", streams),
        ending=_edge(options, "ending", streams) or "latest",
        max_offsets_per_trigger=parsed(options, "maxOffsetsPerTrigger", count, None),
        max_bytes_per_trigger=parsed(options, "maxBytesPerTrigger", size, None),
        min_partitions=parsed(options, "minPartitions", count, None),
        fail_on_data_loss=parsed(options, "failOnDataLoss", truth, True),
        include_headers=cast(
            "IncludeHeaders", parsed(options, "includeHeaders", one_of("map", "raw", "both", "none"), "map")
        ),
        timestamp_ns=parsed(options, "includeTimestampNs", truth, False),
        decode=cast("Decode", parsed(options, "decode", one_of("none", "cloudevents"), "none")),
        fetch_batch=parsed(options, "fetchBatch", count, FETCH_BATCH),
        read_timeout=parsed(options, "readTimeout", seconds, READ_TIMEOUT),
        pushdown=parsed(options, "pushdown", truth, False),
        max_message_bytes=parsed(options, "maxMessageBytes", size, None),
        buffer_bytes=parsed(options, "bufferBytes", size, BUFFER_BYTES),
    )


def _check_delivery(options: Mapping[str, str], streams: tuple[str, ...]) -> None:
    """Whoever names no stream reads core subjects and must say that losing messages is meant."""
    default = "exactly-once" if streams else ""
    delivery = parsed(options, "delivery", one_of("exactly-once", "at-most-once"), default)
    if streams and delivery != "exactly-once":
        raise ConfigError("a stream is read exactly once", value=delivery, hint="leave out the option delivery")
    if not streams and "subjects" not in options:
        raise ConfigError("option stream is missing", hint="name the JetStream stream to read, or several")
    if not streams and delivery != "at-most-once":
        raise ConfigError(
            "core subjects are heard at most once: what comes while nobody listens is lost",
            hint="say delivery=at-most-once if that is meant, or name a stream that captures them",
        )
    if not streams:
        for name in ("startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp", "maxBytesPerTrigger"):
            if name.lower() in options:
                raise ConfigError(f"option {name} means nothing without a stream", value=options[name.lower()])


def _of_one(positions: Positions | None, stream: str, default: Edge) -> Position:
    if isinstance(positions, dict):
        return positions.get(stream, default)
    return default if positions is None else positions


def _edge(options: Mapping[str, str], side: str, streams: tuple[str, ...]) -> Positions | None:
    """Where to start or end: by offset or by time, not both."""
    if f"{side}offsets" in options and f"{side}timestamp" in options:
        raise ConfigError(f"options {side}Offsets and {side}Timestamp exclude each other")
    moment = parsed(options, f"{side}Timestamp", instant, None)
    return moment or parsed(options, f"{side}Offsets", lambda text: _positions(text, streams), None)


def _subjects(text: str) -> tuple[str, ...]:
    subjects = listed(text)
    for subject in subjects:
        validate_subject(subject, wildcards=True)
    if not subjects:
        raise SubjectError("no subject is named")
    return subjects


def _positions(text: str, streams: tuple[str, ...]) -> Positions:
    """One position for all streams, or a JSON object with those of some; a sequence means nothing for several."""
    if text.startswith("{"):
        stated = json.loads(text)
        for stream in stated:
            if stream not in streams:
                raise ValueError(f"{text} has the key {stream!r}, which is none of {', '.join(streams)}")
        return {stream: _position(str(position)) for stream, position in stated.items()}
    position = _position(text)
    if isinstance(position, int) and len(streams) > 1:
        raise ValueError(f"{text} must say of which stream: {json.dumps({streams[0]: position})}")
    return position


def _position(text: str) -> Position:
    match text:
        case "earliest" | "latest" as edge:
            return edge
    return count(text)
