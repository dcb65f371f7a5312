"""The options of `format("nats")`, from Spark's strings to one checked value.

Spark hands over strings with lower-cased names, writes options into plans, event logs and checkpoints, and ignores
what it does not know. So: every option is checked before anything connects, an unknown one is an error that names its
nearest neighbour, and a secret is never an option but a reference to one (`env:NAME` or `file:PATH`), resolved in the
process that connects. Half a secret is still a secret: no message of this module quotes the value of `password` or
`token`.
"""

import difflib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from headwater.client.blocking import Credentials, server_address
from headwater.errors import ConfigError, HeadwaterError, SubjectError
from headwater.model.subject import validate_subject

T = TypeVar("T")

Edge = Literal["earliest", "latest"]
Position = Edge | int
IncludeHeaders = Literal["map", "raw", "both", "none"]
Decode = Literal["none", "cloudevents"]

FETCH_BATCH = 5_000  # messages per pull request; two are outstanding, so a round trip costs nothing from 2,000 on
READ_TIMEOUT = 30.0  # seconds

NAMES = (
    "servers",
    "stream",
    "subjects",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "includeTimestampNs",
    "decode",
    "fetchBatch",
    "readTimeout",
    "user",
    "password",
    "token",
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What to read, from where, and how. Counts in messages, times in seconds; `ending` is the first not read."""

    servers: tuple[str, ...]
    stream: str
    subjects: tuple[str, ...] = ()
    starting: Position | None = None
    ending: Position = "latest"
    max_offsets_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: IncludeHeaders = "map"
    timestamp_ns: bool = False
    decode: Decode = "none"
    fetch_batch: int = FETCH_BATCH
    read_timeout: float = READ_TIMEOUT
    user: str = ""
    password: str = ""
    token: str = ""

    @property
    def wants_map(self) -> bool:
        return self.include_headers in ("map", "both")

    @property
    def wants_raw(self) -> bool:
        return self.include_headers in ("raw", "both")

    def credentials(self) -> Credentials:
        """The secrets that the references lead to, in this process. Raises ConfigError when one leads nowhere."""
        return Credentials(self.user, resolve(self.password, "password"), resolve(self.token, "token"))


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """Raises ConfigError, naming the option, for one that is unknown, missing or wrong."""
    options = {name.lower(): value for name, value in given.items()}
    _refuse_unknown(options)
    stream = options.get("stream", "").strip()
    if not stream:
        raise ConfigError("option stream is missing", hint="name the JetStream stream to read")
    if any(character in stream for character in ".*>/\\ \t\r\n"):
        raise ConfigError(f"option stream: {stream!r} is no stream name", value=stream)
    servers = _listed(options.get("servers", "nats://127.0.0.1:4222"))
    for url in servers:
        server_address(url)
    for secret in ("password", "token"):
        _check_reference(options.get(secret, ""), secret)
    return SourceOptions(
        servers=servers,
        stream=stream,
        subjects=_parsed(options, "subjects", _subjects, ()),
        starting=_parsed(options, "startingOffsets", lambda text: _position(text, stream), None),
        ending=_parsed(options, "endingOffsets", lambda text: _position(text, stream), "latest"),
        max_offsets_per_trigger=_parsed(options, "maxOffsetsPerTrigger", _count, None),
        min_partitions=_parsed(options, "minPartitions", _count, None),
        fail_on_data_loss=_parsed(options, "failOnDataLoss", _truth, True),
        include_headers=_parsed(options, "includeHeaders", _include_headers, "map"),
        timestamp_ns=_parsed(options, "includeTimestampNs", _truth, False),
        decode=_parsed(options, "decode", _decode, "none"),
        fetch_batch=_parsed(options, "fetchBatch", _count, FETCH_BATCH),
        read_timeout=_parsed(options, "readTimeout", _seconds, READ_TIMEOUT),
        user=options.get("user", ""),
        password=options.get("password", ""),
        token=options.get("token", ""),
    )


def resolve(reference: str, name: str) -> str:
    """The secret behind `env:NAME` or `file:PATH`; empty for no reference. Raises ConfigError, without the secret."""
    kind, _, target = reference.partition(":")
    if kind == "env":
        if target not in os.environ:
            raise ConfigError(f"option {name}: no environment variable {target!r} in this process", value=target)
        return os.environ[target]
    if kind == "file":
        try:
            return Path(target).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"option {name}: cannot read {target!r} in this process: {error}", value=target
            ) from error
    return ""


def _refuse_unknown(options: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in NAMES}
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {known[near[0]]}?" if near else f"known are {', '.join(NAMES)}"
            raise ConfigError(f"unknown option {name!r}", value=name, hint=hint)


def _check_reference(reference: str, name: str) -> None:
    kind, _, target = reference.partition(":")
    if reference and (kind not in ("env", "file") or not target):
        raise ConfigError(
            f"option {name} must say where the secret is, not what it is: Spark writes options into checkpoints",
            hint="env:NAME or file:PATH",
        )


def _parsed(options: Mapping[str, str], name: str, parse: Callable[[str], T], default: T) -> T:
    """The option through `parse`, with the option's name in front of whatever that refuses."""
    text = options.get(name.lower())
    if text is None:
        return default
    try:
        return parse(text.strip())
    except HeadwaterError as error:
        raise ConfigError(f"option {name}: {error}", value=text) from error
    except ValueError as error:
        raise ConfigError(f"option {name}: {error}", value=text) from error


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _subjects(text: str) -> tuple[str, ...]:
    subjects = _listed(text)
    for subject in subjects:
        validate_subject(subject, wildcards=True)
    if not subjects:
        raise SubjectError("no subject is named")
    return subjects


def _position(text: str, stream: str) -> Position:
    """`earliest`, `latest`, a sequence, or a JSON object with the sequence of the stream."""
    match text:
        case "earliest" | "latest" as edge:
            return edge
    if text.startswith("{"):
        positions = json.loads(text)
        if set(positions) != {stream}:
            raise ValueError(f"{text} must have the one key {stream!r}")
        text = str(positions[stream])
    return _count(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ValueError(f"{text!r} is no whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text.removesuffix("s"))
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is no time in seconds above 0")
    return seconds


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _include_headers(text: str) -> IncludeHeaders:
    match text.lower():
        case "map" | "raw" | "both" | "none" as chosen:
            return chosen
    raise ValueError(f"{text!r} is none of map, raw, both, none")


def _decode(text: str) -> Decode:
    match text.lower():
        case "none" | "cloudevents" as chosen:
            return chosen
    raise ValueError(f"{text!r} is none of none, cloudevents")
