"""The columns of `format("iggy")`, and their arrays.

    stream, topic string | partition int | offset long | timestamp, origin_timestamp | id string, 32 hexadecimal digits
    headers map<string, array<string>>, as in `format("nats")`: typed headers as text (docs/header-mapping.md)
    headers_typed map<string, struct<kind, value, raw>> | headers_raw binary, the header block in Iggy's form
    data binary | the ce_ columns of `format("nats")`

All arrays wrap decoded buffers.
"""

from array import array
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headwater.columns.iggy_columns import IggyColumns
from headwater.columns.typed_columns import TypedDecoder
from headwater.spark.arrow import bitmap_without, map_array, repeated, sparse_array, text_array
from headwater.spark.iggy.offsets import IggyRange
from headwater.spark.schema import message_fields
from headwater.wire.columns import Text

if TYPE_CHECKING:
    from headwater.spark.iggy.options import IggySourceOptions

TYPED = StructType(
    [
        StructField("kind", StringType(), nullable=False),
        StructField("value", StringType(), nullable=False),
        StructField("raw", BinaryType(), nullable=False),
    ]
)


def iggy_schema(options: "IggySourceOptions") -> StructType:
    """The schema of a read with these options."""
    fields = [
        StructField("stream", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("timestamp", TimestampType(), nullable=False),
        StructField("origin_timestamp", TimestampType(), nullable=False),
        StructField("id", StringType(), nullable=False),
    ]
    typed = [StructField("headers_typed", MapType(StringType(), TYPED, valueContainsNull=False))]
    return StructType(fields + message_fields(options, *(typed if options.wants_typed else ())))


def iggy_array(taken: IggyColumns, wanted: IggyRange, stream: str, field: pa.Field) -> pa.Array:
    """The array of one field other than `data` and the CloudEvents fields."""
    columns = taken.columns
    rows = columns.rows
    match field.name:
        case "stream":
            return repeated(stream.encode(), rows, field.type)
        case "topic":
            return repeated(wanted.place.topic.encode(), rows, field.type)
        case "partition":
            numbers = array("i", (wanted.place.partition,)) * rows
            return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(numbers)])
        case "offset":
            return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(columns.sequences)])
        case "timestamp":
            return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(columns.timestamps)])
        case "origin_timestamp":
            return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(taken.origins)])
        case "id":
            return text_array(taken.ids, field.type)
        case "headers":
            assert columns.header_map is not None
            return map_array(columns.header_map, rows, columns.unmapped, field.type)
        case "header_error":
            return sparse_array(columns.header_errors, rows, field.type)
        case "headers_raw":
            assert taken.typed is not None
            return text_array(taken.typed, field.type, empty_is_null=True)
        case "headers_typed":
            assert taken.typed is not None
            return typed_array(taken.typed, field.type)
        case _:
            raise AssertionError(f"no column is made for the field {field.name}")


def typed_array(blocks: Text, kind: pa.MapType) -> pa.Array:
    """map<string, struct<kind, value, raw>>; null for a malformed block."""
    typed = TypedDecoder().decode(blocks)
    rows = len(blocks.offsets) - 1
    item = kind.item_type
    parts = [text_array(text, item[at].type) for at, text in enumerate((typed.kinds, typed.values, typed.raws))]
    keys = text_array(typed.keys, kind.key_type)
    items = pa.Array.from_buffers(item, len(keys), [None], children=parts)
    entry = pa.struct([kind.key_field, kind.item_field])
    entries = pa.Array.from_buffers(entry, len(keys), [None], children=[keys, items])
    validity = bitmap_without(typed.unmapped, rows) if typed.unmapped else None
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(typed.entries)], children=[entries])
