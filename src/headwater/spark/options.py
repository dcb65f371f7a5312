"""The options of `format("nats")` for reading: Spark's strings as one checked value.

Every option is checked before anything connects. `headwater.spark.server_options` has the servers and credentials.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from headwater.errors import ConfigError, SubjectError
from headwater.model.subject import validate_subject
from headwater.spark.option_values import listed, lowered, one_of, parsed, size, truth
from headwater.spark.read_options import READ_NAMES, Positions, ReadOptions, parse_read_options, position
from headwater.spark.server_options import NAMES as SERVER_NAMES
from headwater.spark.server_options import ServerOptions, parse_server_options

BUFFER_BYTES = 64 << 20  # of core messages waiting to be read
Transport = Literal["auto", "consumer"]
FETCH_BATCH = 5_000  # messages per pull request; two are outstanding, which hides the round trip from 2,000 on

NAMES = (
    "stream",
    "subjects",
    *READ_NAMES,
    "includeTimestampNs",
    "pushdown",
    "delivery",
    "bufferBytes",
    "transport",
    *SERVER_NAMES,
)


@dataclass(frozen=True, slots=True)
class SourceOptions(ReadOptions):
    """`buffer_bytes`: of core messages waiting to be read. Without streams these are the options of core subjects.
    `transport`: `auto` reads stored batches if they are offered and there is no filter, `consumer` never does."""

    streams: tuple[str, ...]
    server: ServerOptions = field(default_factory=ServerOptions)
    subjects: tuple[str, ...] = ()
    timestamp_ns: bool = False
    fetch_batch: int = field(default=FETCH_BATCH, kw_only=True)
    pushdown: bool = False
    buffer_bytes: int = BUFFER_BYTES
    transport: Transport = "auto"

    @property
    def stream(self) -> str:
        """The only stream of these options."""
        (stream,) = self.streams
        return stream

    def of(self, stream: str) -> "SourceOptions":
        """The options for one of the streams."""
        return self if self.streams == (stream,) else replace(self, streams=(stream,))


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """Parse the options. Raises ConfigError, naming the option, for one that is unknown, missing or invalid."""
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
        timestamp_ns=parsed(options, "includeTimestampNs", truth, False),
        pushdown=parsed(options, "pushdown", truth, False),
        buffer_bytes=parsed(options, "bufferBytes", size, BUFFER_BYTES),
        transport=cast(Transport, parsed(options, "transport", one_of("auto", "consumer"), "auto")),
        **parse_read_options(
            options, ("map", "raw", "both", "none"), FETCH_BATCH, lambda text: _positions(text, streams)
        ),
    )


def _check_delivery(options: Mapping[str, str], streams: tuple[str, ...]) -> None:
    """Without a stream core subjects are read, and delivery=at-most-once must confirm that messages may be lost."""
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


def _subjects(text: str) -> tuple[str, ...]:
    subjects = listed(text)
    for subject in subjects:
        validate_subject(subject, wildcards=True)
    if not subjects:
        raise SubjectError("no subject is named")
    return subjects


def _positions(text: str, streams: tuple[str, ...]) -> Positions:
    """Parse one position for all streams, or a JSON object with those of some; a sequence is not allowed for several
    streams."""
    if text.startswith("{"):
        stated = json.loads(text)
        for stream in stated:
            if stream not in streams:
                raise ValueError(f"{text} has the key {stream!r}, which is none of {', '.join(streams)}")
        return {stream: position(str(stated[stream]), 1) for stream in stated}
    found = position(text, 1)
    if isinstance(found, int) and len(streams) > 1:
        raise ValueError(f"{text} must say of which stream: {json.dumps({streams[0]: found})}")
    return found
