"""The options of `df.write.format("nats")` and `writeStream.format("nats")`, and the columns that they accept.

A column that is not in `COLUMNS` is refused rather than ignored: a `header` that should have been `headers` would otherwise
be lost silently.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from headwater.errors import ConfigError
from headwater.model.subject import validate_subject
from headwater.spark.option_values import count, lowered, one_of, parsed, seconds
from headwater.spark.progress import source_name
from headwater.spark.server_options import NAMES as SERVER_NAMES
from headwater.spark.server_options import ServerOptions, parse_server_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Target = Literal["jetstream", "core"]
Delivery = Literal["exactly-once", "at-least-once"]
Encode = Literal["binary", "structured"]

WINDOW = 2_000  # unacknowledged publishes; more does not make nats-server faster
WRITE_TIMEOUT = 30.0  # seconds
DUPLICATE_WINDOW = 120.0  # seconds, JetStream's default

NAMES = (
    "subject",
    "stream",
    "target",
    "delivery",
    "contentMode",
    "minDuplicateWindow",
    "window",
    "writeTimeout",
    *SERVER_NAMES,
)
COLUMNS = ("subject", "data", "headers", "msg_id", "event")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """`subject` is for rows that have none; times are in seconds."""

    server: ServerOptions
    subject: str = ""
    stream: str = ""
    target: Target = "jetstream"
    delivery: Delivery = "exactly-once"
    content_mode: Encode = "binary"
    min_duplicate_window: float = DUPLICATE_WINDOW
    window: int = WINDOW
    write_timeout: float = WRITE_TIMEOUT

    @property
    def exactly_once(self) -> bool:
        return self.delivery == "exactly-once"

    @property
    def name(self) -> str:
        """The name in progress reports: `nats[ORDERS@host:4222]`, of the stream or else the subject; `*`: each row's."""
        return source_name((self.stream or self.subject or "*",), self.server.servers, self.server.context)


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse the options. Raises ConfigError, naming the option, for one that is unknown or invalid."""
    options = lowered(given, NAMES)
    target = parsed(options, "target", one_of("jetstream", "core"), "jetstream")
    default = "exactly-once" if target == "jetstream" else "at-least-once"
    delivery = parsed(options, "delivery", one_of("exactly-once", "at-least-once"), default)
    if target == "core" and (delivery == "exactly-once" or options.get("stream")):
        raise ConfigError("core NATS neither stores nor acknowledges: it has no stream, and delivers at least once")
    return SinkOptions(
        server=parse_server_options(options),
        subject=parsed(options, "subject", validate_subject, ""),
        stream=options.get("stream", "").strip(),
        target=cast("Target", target),
        delivery=cast("Delivery", delivery),
        content_mode=cast("Encode", parsed(options, "contentMode", one_of("binary", "structured"), "binary")),
        min_duplicate_window=parsed(options, "minDuplicateWindow", seconds, DUPLICATE_WINDOW),
        window=parsed(options, "window", count, WINDOW),
        write_timeout=parsed(options, "writeTimeout", seconds, WRITE_TIMEOUT),
    )


def has_ids(schema: "StructType") -> bool:
    """Whether the rows have columns from which message ids are made."""
    return not {"msg_id", "event"}.isdisjoint(schema.names)


def check_columns(schema: "StructType", options: SinkOptions) -> None:
    """Raise ConfigError for a frame that cannot be published."""
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name in kinds:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, 1)
            hint = f"did you mean {near[0]}?" if near else "select what is to be published"
            raise ConfigError(f"column {name!r} is none of {', '.join(COLUMNS)}", value=name, hint=hint)
    if "subject" not in kinds and not options.subject:
        raise ConfigError("there is neither a column nor an option subject", hint='.option("subject", "orders.new")')
    if "event" in kinds and not kinds.keys().isdisjoint(("data", "headers")):
        raise ConfigError("an event brings its own headers and data", value="event", hint="drop data and headers")
    if "event" not in kinds and "data" not in kinds:
        raise ConfigError(
            "there is neither a column data nor a column event", hint="to_json(struct(*)) makes JSON data"
        )
    allowed = {
        "subject": ("string",),
        "data": ("binary", "string"),
        "headers": ("map<string,string>", "map<string,array<string>>"),
        "msg_id": ("string",),
    }
    for name, kind in kinds.items():
        if name == "event":
            if not kind.startswith("struct<"):
                raise ConfigError(f"column event is a {kind}, not a struct", value=kind)
        elif kind not in allowed[name]:
            raise ConfigError(f"column {name} is {kind}, not {' or '.join(allowed[name])}", value=kind)
