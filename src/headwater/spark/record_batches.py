"""Convert taken columns to the record batches for Spark: base columns, event columns, and the limit on payload size."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.spark.arrow import arrow_schema, record_batch, text_array
from headwater.wire.columns import Columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headwater.spark.options import SourceOptions


def record_batches(
    taken: Iterable[Columns], stream: str, options: "SourceOptions", schema: "StructType"
) -> Iterator[pa.RecordBatch]:
    """Record batches with exactly `schema`."""
    wire_schema = arrow_schema(schema)
    for columns in taken:
        made: dict[str, pa.Array] = {}
        if options.decode == "cloudevents":
            from headwater.spark.events import event_arrays

            made = event_arrays(columns, wire_schema)
        if options.max_message_bytes is not None:
            data = text_array(columns.payloads, wire_schema.field("data").type)
            kind = wire_schema.field("data_error").type
            made["data"], made["data_error"] = without_large(data, options.max_message_bytes, kind)
        yield record_batch(columns, stream, wire_schema, made)


def without_large(data: pa.Array, limit: int, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """The payloads, with null for those larger than `limit` bytes, and an error text for each of these."""
    sizes = pc.binary_length(data)
    too_large = pc.greater(sizes, limit)
    if not pc.any(too_large).as_py():
        return data, pa.nulls(len(data), kind)
    kept = pc.if_else(too_large, pa.scalar(None, data.type), data)
    words = [
        f"the payload has {size} bytes, more than maxMessageBytes={limit}" if size > limit else None
        for size in sizes.to_pylist()
    ]
    return kept, pa.array(words, kind)
