"""Record batches as rows to publish: Arrow's buffers under the names that `headwater.wire.row_frames` expects.

They are copied once per batch, because ops are written from memory of our own. A column `event` becomes header blocks and
payloads through `headwater.cloudevents`, one event at a time, so its rules are checked on output as well.
"""

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headwater.cloudevents import CloudEvent, message_id, to_binary, to_structured
from headwater.cloudevents.attributes import CORE
from headwater.cloudevents.event import is_json_type
from headwater.errors import CloudEventError
from headwater.spark.sink_options import SinkOptions
from headwater.wire.columns import HeaderMap, Text
from headwater.wire.row_frames import Rows

EVENT_FIELDS = (*sorted(CORE), "extensions", "data")
FLIGHT_ROWS, FLIGHT_BYTES = 50_000, 8 << 20


def together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of `batches` in fewer batches, of about FLIGHT_ROWS rows or FLIGHT_BYTES, whichever is less: behind each the
    publisher waits until all of it is acknowledged, as long as a stream's write takes, and Spark's have 10,000 rows."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= FLIGHT_ROWS or size >= FLIGHT_BYTES:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def rows_of(batch: pa.RecordBatch, options: SinkOptions, id_prefix: bytes, id_start: int) -> Rows:
    """The rows of a batch. `id_prefix` and `id_start` make the ids of rows without one; an empty prefix: no ids. Raises
    CloudEventError, naming the row, for an invalid event.
    """
    names = set(batch.schema.names)
    ids = text_of(batch.column("msg_id")) if "msg_id" in names else None
    headers: HeaderMap | None = None
    blocks: Text | None = None
    payloads: Text | None = None
    if "event" in names:
        made = [message_of(row, event, options) for row, event in enumerate(batch.column("event").to_pylist())]
        blocks = text_from([block for block, _, _ in made])
        payloads = text_from([payload for _, payload, _ in made])
        if ids is None and id_prefix:
            ids = text_from([identity for _, _, identity in made])
    else:
        payloads = text_of(batch.column("data"))
        headers = header_map(batch.column("headers")) if "headers" in names else None
    return Rows(
        rows=batch.num_rows,
        subjects=text_of(batch.column("subject")) if "subject" in names else None,
        subject=options.subject.encode(),
        payloads=payloads,
        headers=headers,
        blocks=blocks,
        ids=ids,
        id_prefix=b"" if ids is not None else id_prefix,
        id_start=id_start,
        lines=f"Nats-Expected-Stream: {options.stream}\r\n".encode() if options.stream else b"",
    )


def text_of(values: pa.Array) -> Text:
    """The bytes of strings or byte strings; a null is empty."""
    if values.null_count:
        values = pc.fill_null(values, b"" if pa.types.is_binary(values.type) else "")
    if values.type not in (pa.string(), pa.binary()):
        values = values.cast(pa.binary())
    _, offsets, data = values.buffers()
    return Text(memoryview(bytearray(data or b"")), _int32(offsets, values.offset, len(values) + 1))


def text_from(values: list[bytes]) -> Text:
    ends = array("i", [0])
    end = 0
    for value in values:
        end += len(value)
        ends.append(end)
    return Text(memoryview(bytearray(b"".join(values))), memoryview(ends))


def header_map(maps: pa.MapArray) -> HeaderMap:
    """map<string, string> or map<string, list<string>>; a null map is empty."""
    items = maps.items
    if pa.types.is_list(items.type):
        values = items.values
        lists = _int32(items.buffers()[1], items.offset, len(items) + 1)
    else:
        values = items
        lists = _numbers(len(items) + 1)
    entries = _int32(maps.buffers()[1], maps.offset, len(maps) + 1)
    return HeaderMap(entries, text_of(maps.keys), lists, text_of(values))


@lru_cache(maxsize=2)
def _numbers(count: int) -> memoryview:
    """0, 1, 2, ...: as dear to make as to publish one row in twenty, and batches are mostly of one size."""
    return memoryview(array("i", range(count)))


def _int32(buffer: pa.Buffer | None, start: int, count: int) -> memoryview:
    """A copy of int32 values; an array without rows may have no buffer at all."""
    copied = array("i", bytes(4 * count))
    if buffer is not None and buffer.size >= 4 * (start + count):
        memoryview(copied).cast("B")[:] = memoryview(buffer).cast("B")[4 * start : 4 * (start + count)]
    return memoryview(copied)


def message_of(row: int, event: dict[str, Any] | None, options: SinkOptions) -> tuple[bytes, bytes, bytes]:
    """Header block, payload and message id (source and id) of one event struct."""
    try:
        made = event_of(event or {})
        message = to_structured(made) if options.content_mode == "structured" else to_binary(made)
    except CloudEventError as error:
        raise CloudEventError(
            f"row {row} of the batch: {error}", attribute=error.attribute, value=error.value, rule=error.rule
        ) from error
    return bytes(message.headers), message.data, message_id(made).encode()


def event_of(fields: dict[str, Any]) -> CloudEvent:
    """The event in a struct: attributes by name, `extensions` a map, `data` binary or string. Data with a JSON content type
    is a JSON text; other data is opaque. Raises CloudEventError.
    """
    for name in fields:
        if name not in EVENT_FIELDS:
            raise CloudEventError(
                f"the struct event has a field {name!r}, which is none of {', '.join(EVENT_FIELDS)}", rule="bad name"
            )
    context = {name: fields[name] for name in CORE if fields.get(name) is not None}
    extensions = fields.get("extensions") or ()
    attributes = context | dict(extensions.items() if isinstance(extensions, dict) else extensions)
    attributes.setdefault("specversion", "1.0")
    data: Any = fields.get("data")
    if isinstance(data, str):
        data = data.encode()
    if data is not None and is_json_type(str(context.get("datacontenttype", ""))):
        data = msgspec.Raw(data)
    return CloudEvent.from_attributes(attributes, data, strict=False)  # as lenient as reading
