"""Messages as Arrow record batches: the buffers that the reader filled become Arrow's in place.

The only module of the client that knows Arrow; `Subscription.record_batches` imports it when it is used, and the Spark
source has its columns of text from here. The fields are
`subject` (string), `reply` (string, null when absent), `header_block` (binary, null when absent) and `data` (binary).
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.wire.columns import Text
from headwater.wire.message_columns import TakenMessages

SCHEMA = pa.schema(
    [
        pa.field("subject", pa.string(), nullable=False),
        pa.field("reply", pa.string()),
        pa.field("header_block", pa.binary()),
        pa.field("data", pa.binary(), nullable=False),
    ]
)


def record_batch(taken: TakenMessages) -> Any:
    """A `pyarrow.RecordBatch` with SCHEMA, over the buffers of `taken`."""
    arrays = [
        text_array(taken.subjects, pa.string()),
        text_array(taken.replies, pa.string(), empty_is_null=True),
        text_array(taken.blocks, pa.binary(), empty_is_null=True),
        text_array(taken.payloads, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def text_array(text: Text, kind: Any, *, empty_is_null: bool = False) -> Any:
    """A string or binary array over the buffers of `text`."""
    rows = len(text.offsets) - 1
    offsets = pa.py_buffer(text.offsets)
    validity = None
    if empty_is_null:
        if len(text.data) == 0:
            return pa.nulls(rows, kind)
        ends = pa.Array.from_buffers(pa.int32(), rows + 1, [None, offsets])
        validity = pc.not_equal(ends.slice(1), ends.slice(0, rows)).buffers()[1]
    return pa.Array.from_buffers(kind, rows, [validity, offsets, pa.py_buffer(text.data)])
