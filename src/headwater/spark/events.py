"""CloudEvents columns as Arrow arrays: one for each ce_ field.

`headwater.columns.event_columns` decodes them; here its buffers are wrapped, as in `headwater.spark.arrow` for the columns
of the message. A row that is not an event is null in every ce_ column except `ce_error` (the reason, as text) and `ce_rule`
(the broken rule, for grouping). A time that no timestamp can hold (a year beyond 9999) is null in `ce_time` and unchanged
in `ce_time_raw`: the event is valid.
"""

from typing import cast

import pyarrow as pa

from headwater.columns.event_columns import EventDecoder, EventText
from headwater.spark.arrow import text_array
from headwater.wire.columns import Columns


def event_arrays(columns: Columns, schema: pa.Schema) -> dict[str, pa.Array]:
    """The arrays of all ce_ fields of `schema`. `columns` must include raw header blocks."""
    events = EventDecoder().decode(columns)
    return {field.name: event_array(events, field.name, field.type) for field in schema if field.name.startswith("ce_")}


def event_array(events: EventText, name: str, kind: pa.DataType) -> pa.Array:
    """The array of one ce_ field."""
    match name:
        case "ce_time":
            buffers = [pa.py_buffer(events.has_time), pa.py_buffer(events.times)]
            return pa.Array.from_buffers(kind, events.rows, buffers)
        case "ce_time_raw":
            return text_array(events.texts["time"], kind, empty_is_null=True)
        case "ce_extensions":
            return extension_array(events, cast("pa.MapType", kind))
        case "ce_data":
            buffers = [pa.py_buffer(events.has_data), pa.py_buffer(events.data.offsets), pa.py_buffer(events.data.data)]
            return pa.Array.from_buffers(kind, events.rows, buffers)
        case "ce_error":
            return text_array(events.errors, kind, empty_is_null=True)
        case "ce_rule":
            return text_array(events.rules, kind, empty_is_null=True)
        case _:
            return text_array(events.texts[name.removeprefix("ce_")], kind, empty_is_null=True)


def extension_array(events: EventText, kind: pa.MapType) -> pa.Array:
    """map<string, string>: empty for an event without extensions, null for a row that is not an event."""
    keys = text_array(events.keys, kind.key_type)
    values = text_array(events.values, kind.item_type)
    entries = pa.Array.from_buffers(
        pa.struct([kind.key_field, kind.item_field]), len(keys), [None], children=[keys, values]
    )
    buffers = [pa.py_buffer(events.is_event), pa.py_buffer(events.entries)]
    return pa.Array.from_buffers(kind, events.rows, buffers, children=[entries])
