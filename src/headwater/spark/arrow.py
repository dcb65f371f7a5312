"""Decoded columns as Arrow record batches: wrapped, not copied.

Spark accepts a record batch only if its schema equals the declared one exactly, including child names and nullability. So
every array here is built *as* the type in the Arrow form of the Spark schema, never as an equivalent one. The buffers of
`headwater.wire.columns` become Arrow buffers in place; only timestamps are computed (ns to us), and validity bitmaps if a
column has nulls.
"""

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.client_connection.arrow import text_array as text_array  # readers have all of Arrow from here
from headwater.wire.columns import Columns, HeaderMap

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def arrow_schema(schema: "StructType") -> pa.Schema:
    """The Arrow schema that Spark expects for a Spark schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def record_batch(
    columns: Columns, stream: str, schema: pa.Schema, events: Mapping[str, pa.Array] | None = None
) -> pa.RecordBatch:
    """One batch with exactly the fields of `schema`; `events` has the arrays of the ce_ fields, if any."""
    arrays = []
    for field in schema:
        if events is not None and field.name in events:
            arrays.append(events[field.name])
        else:
            arrays.append(base_array(columns, stream, field))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def base_array(columns: Columns, stream: str, field: pa.Field) -> pa.Array:
    """The array of one field that is not a CloudEvents field."""
    rows = columns.rows
    match field.name:
        case "stream":
            return repeated(stream.encode(), rows, field.type)
        case "subject":
            return text_array(columns.subjects, field.type)
        case "seq":
            return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(columns.sequences)])
        case "timestamp":
            ns = pa.Array.from_buffers(
                pa.timestamp("ns", field.type.tz), rows, [None, pa.py_buffer(columns.timestamps)]
            )
            return ns.cast(field.type, safe=False)
        case "timestamp_ns":
            return pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(columns.timestamps)])
        case "headers":
            assert columns.header_map is not None
            return map_array(columns.header_map, rows, columns.unmapped, field.type)
        case "header_error":
            return sparse_array(columns.header_errors, rows, field.type)
        case "headers_raw":
            assert columns.blocks is not None
            return text_array(columns.blocks, field.type, empty_is_null=columns.blockless > 0)
        case "data":
            return text_array(columns.payloads, field.type)
        case _:
            raise AssertionError(f"no column is made for the field {field.name}")


def repeated(value: bytes, rows: int, kind: pa.DataType) -> pa.Array:
    """A string or binary array of one value. Not by way of `pa.scalar`, which imports pandas, if that is there: 0.2 s."""
    ends = pa.py_buffer(array("i", (0, len(value))))
    (one,) = pa.Array.from_buffers(kind, 1, [None, ends, pa.py_buffer(value)])
    return pa.repeat(one, rows)


def map_array(headers: HeaderMap, rows: int, null_rows: list[int], kind: pa.MapType) -> pa.Array:
    """map<string, list<string>> over the buffers of `headers`, with the types of `kind` at every level."""
    names = text_array(headers.names, kind.key_type)
    values = text_array(headers.values, kind.item_type.value_type)
    lists = pa.Array.from_buffers(kind.item_type, len(names), [None, pa.py_buffer(headers.lists)], children=[values])
    entry = pa.struct([kind.key_field, kind.item_field])
    entries = pa.Array.from_buffers(entry, len(names), [None], children=[names, lists])
    validity = bitmap_without(null_rows, rows) if null_rows else None
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(headers.entries)], children=[entries])


def bitmap_without(null_rows: list[int], rows: int) -> pa.Buffer:
    """A validity bitmap of `rows` ones, with zeros for `null_rows`."""
    bits = bytearray(b"\xff" * ((rows + 7) // 8))
    for row in null_rows:
        bits[row >> 3] &= ~(1 << (row & 7)) & 0xFF
    return pa.py_buffer(bits)


def sparse_array(values: list[tuple[int, str]], rows: int, kind: pa.DataType) -> pa.Array:
    """An array of nulls with values in a few rows."""
    if not values:
        return pa.nulls(rows, kind)
    dense: list[str | None] = [None] * rows
    for row, value in values:
        dense[row] = value
    return pa.array(dense, kind)
