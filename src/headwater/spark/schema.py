"""The columns of `format("nats")` for the given options. ADR 0008 gives the reasons.

Spark cannot prune columns of a Python source, so unwanted columns must not be in the schema: `includeHeaders`,
`includeTimestampNs` and `decode` select them.
"""

import difflib
import re
from typing import Protocol

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headwater.errors import ConfigError
from headwater.spark.options import SourceOptions

HEADERS_TYPE = MapType(StringType(), ArrayType(StringType(), containsNull=False), valueContainsNull=False)

EVENT_FIELDS = (
    StructField("ce_specversion", StringType()),
    StructField("ce_id", StringType()),
    StructField("ce_source", StringType()),
    StructField("ce_type", StringType()),
    StructField("ce_subject", StringType()),
    StructField("ce_time", TimestampType()),
    StructField("ce_time_raw", StringType()),
    StructField("ce_datacontenttype", StringType()),
    StructField("ce_dataschema", StringType()),
    StructField("ce_extensions", MapType(StringType(), StringType(), valueContainsNull=False)),
    StructField("ce_data", BinaryType()),
    StructField("ce_error", StringType()),
    StructField("ce_rule", StringType()),
)


def source_schema(options: SourceOptions) -> StructType:
    """The schema of a read with these options; the order of columns is part of it."""
    fields = [
        StructField("stream", StringType(), nullable=False),
        StructField("subject", StringType(), nullable=False),
        StructField("seq", LongType(), nullable=False),
        StructField("timestamp", TimestampType(), nullable=False),
    ]
    if options.timestamp_ns:
        fields.append(StructField("timestamp_ns", LongType(), nullable=False))
    return StructType(fields + message_fields(options))


def check_schema(wanted: StructType, made: StructType) -> None:
    """Raise ConfigError for a schema of the user's (`.schema(...)`) that is not a selection of the columns `made`: under
    another type Spark would read the bytes of ours, and a long as an int would be half of another."""
    kinds = {field.name: _plain(field) for field in made.fields}
    for field in wanted.fields:
        if field.name not in kinds:
            near = difflib.get_close_matches(field.name, kinds, 1)
            hint = f"did you mean {near[0]}?" if near else f"with these options there are {', '.join(kinds)}"
            raise ConfigError(f"the schema has a column {field.name!r}, which is not read", value=field.name, hint=hint)
        if _plain(field) != kinds[field.name]:
            raise ConfigError(
                f"the schema has the column {field.name} as {_plain(field)}, and it is read as {kinds[field.name]}",
                value=_plain(field),
                hint="leave out .schema(...), and cast in a select",
            )


def _plain(field: StructField) -> str:
    """The type without collations, which Spark applies itself."""
    return re.sub(r" collate \w+", "", field.dataType.simpleString(), flags=re.IGNORECASE)


class MessageOptions(Protocol):
    """The options with which both sources select their columns."""

    @property
    def wants_map(self) -> bool: ...
    @property
    def wants_raw(self) -> bool: ...
    @property
    def max_message_bytes(self) -> int | None: ...
    @property
    def decode(self) -> str: ...


def message_fields(options: MessageOptions, *typed: StructField) -> list[StructField]:
    """The columns of the message itself: headers (followed by those in `typed`), data, and the event in it."""
    fields: list[StructField] = []
    if options.wants_map:
        fields += [StructField("headers", HEADERS_TYPE), StructField("header_error", StringType())]
    fields += typed
    if options.wants_raw:
        fields.append(StructField("headers_raw", BinaryType()))
    fields.append(StructField("data", BinaryType(), nullable=options.max_message_bytes is not None))
    if options.max_message_bytes is not None:
        fields.append(StructField("data_error", StringType()))
    return [*fields, *EVENT_FIELDS] if options.decode == "cloudevents" else fields
