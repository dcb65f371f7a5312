"""The columns of `format("nats")` for the given options. ADR 0008 gives the reasons.

Spark cannot prune columns of a Python source, so unwanted columns must not be in the schema: `includeHeaders`,
`includeTimestampNs` and `decode` select them.
"""

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
