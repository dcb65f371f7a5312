"""CloudEvents columns from decoded rows: one event per row, or the reason why it is none.

`event_arrays` is the whole interface: taken columns in, Arrow arrays by field name out. Inside, each row goes through
`headwater.cloudevents.from_nats`; a decode that fills the arrays straight from header blocks may replace that without
anybody noticing but the clock.

A row that is no event has null in every ce_ column but `ce_error`. A time that no timestamp can hold (a leap second, a
year beyond 9999) is null in `ce_time` and as written in `ce_time_raw`: the event is valid.
"""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.cloudevents import CloudEvent, DataKind, NATSMessage, canonical_string, from_nats
from headwater.errors import CloudEventError, HeadwaterError
from headwater.model.headers import Headers
from headwater.wire.columns import Columns, Text

NO_HEADERS = Headers()

_VALUES = ("specversion", "id", "source", "type", "subject", "datacontenttype", "dataschema")


@dataclass(slots=True)
class _Events:
    """Columns under construction; every list has one entry per row."""

    values: dict[str, list[Any]] = field(
        default_factory=lambda: {
            f"ce_{name}": [] for name in (*_VALUES, "time", "time_raw", "extensions", "data", "error")
        }
    )

    def add(self, event: CloudEvent) -> None:
        attributes = event.attributes
        values = self.values
        for name in _VALUES:
            values[f"ce_{name}"].append(attributes.get(name))
        values["ce_time"].append(_instant(event))
        values["ce_time_raw"].append(event.time_text)
        extensions = event.extensions
        values["ce_extensions"].append([(name, canonical_string(name, value)) for name, value in extensions.items()])
        values["ce_data"].append(None if event.kind is DataKind.ABSENT else event.payload)
        values["ce_error"].append(None)

    def refuse(self, reason: str) -> None:
        for column in self.values.values():
            column.append(None)
        # The reason may quote bytes that are no UTF-8, which Arrow would not take.
        self.values["ce_error"][-1] = reason.encode("utf-8", "replace").decode()


def event_arrays(columns: Columns, schema: pa.Schema) -> dict[str, pa.Array]:
    """The arrays of all ce_ fields of `schema`. `columns` must have been decoded with raw header blocks."""
    assert columns.blocks is not None
    events = _Events()
    for row in range(columns.rows):
        try:
            events.add(decode_row(_slice(columns.blocks, row), _slice(columns.payloads, row)))
        except HeadwaterError as error:
            events.refuse(str(error))
    return {name: pa.array(values, schema.field(name).type) for name, values in events.values.items()}


def decode_row(block: bytes, payload: bytes) -> CloudEvent:
    """The event in a message. Raises CloudEventError, and HeaderError for a malformed header block."""
    return from_nats(NATSMessage(Headers.parse(block) if block else NO_HEADERS, payload))


def _slice(text: Text, row: int) -> bytes:
    return bytes(text.data[text.offsets[row] : text.offsets[row + 1]])


def _instant(event: CloudEvent) -> Any:
    try:
        return event.time
    except CloudEventError:
        return None
