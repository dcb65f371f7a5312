"""Record batches become rows: nulls, slices, both kinds of maps, and events through their rules."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from support.sent_ops import SentOp, read_ops

from headwater.cloudevents import CloudEvent, from_nats
from headwater.errors import CloudEventError
from headwater.model.header_block import decode_header_block
from headwater.model.message import Message
from headwater.spark import sink_rows
from headwater.spark.sink_options import parse_sink_options
from headwater.spark.sink_rows import rows_of, together
from headwater.wire.memory import OutputBuffer
from headwater.wire.row_frames import RowFrames

EVENT = pa.struct(
    [(name, pa.string()) for name in ("id", "source", "type", "datacontenttype")]
    + [("time", pa.timestamp("us", "UTC")), ("extensions", pa.map_(pa.string(), pa.string())), ("data", pa.binary())]
)


def sent(batch: pa.RecordBatch, id_prefix: bytes = b"", **options: str) -> list[SentOp]:
    rows = rows_of(batch, parse_sink_options({"subject": "s", **options}), id_prefix, 10)
    output = OutputBuffer()
    frames = RowFrames(output, rows, b"", 1 << 20)
    for row in range(rows.rows):
        frames.append(row)
    return read_ops(output.take())


def pairs(op: SentOp) -> list[tuple[str, str]]:
    return decode_header_block(op.block)[1].multi_items() if op.block else []


def batch_of(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_small_batches_go_out_together_up_to_a_number_of_rows_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_rows, "FLIGHT_ROWS", 5)
    monkeypatch.setattr(sink_rows, "FLIGHT_BYTES", 2000)
    sizes = [2, 2, 3, 1, 0, 4, 1]
    maps = pa.map_(pa.string(), pa.list_(pa.string()))
    given, number = [], 0
    for size in sizes:
        rows = range(number, number + size)
        headers = pa.array([[("n", [str(row)])] for row in rows], maps)
        given.append(batch_of(data=pa.array([b"%d" % row for row in rows], pa.binary()), headers=headers))
        number += size
    made = list(together(given))
    assert [batch.num_rows for batch in made] == [7, 5, 1]
    read = [op for batch in made for op in sent(batch)]
    assert [(op.payload, pairs(op)) for op in read] == [(b"%d" % row, [("n", str(row))]) for row in range(number)]
    large = batch_of(data=pa.array([bytes(3000)]))
    assert [batch.num_rows for batch in together([large, large])] == [1, 1]
    assert not list(together([]))


def test_strings_and_bytes_and_what_is_null() -> None:
    made = batch_of(
        subject=pa.array(["a", None, "c"]),
        data=pa.array([b"1", None, b""], pa.binary()),
        msg_id=pa.array(["x", "y", "z"]),
    )
    assert [(op.subject, op.payload) for op in sent(made)] == [(b"a", b"1"), (b"s", b""), (b"c", b"")]
    assert [pairs(op) for op in sent(made, b"unused/")] == [[("Nats-Msg-Id", each)] for each in "xyz"]
    large = batch_of(data=pa.array(["é", None], pa.large_string()))
    assert [op.payload for op in sent(large)] == ["é".encode(), b""]


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string())])
def test_both_kinds_of_header_maps(kind: pa.DataType) -> None:
    many = pa.types.is_list(kind)
    values: list[Any] = [[("A", ["1", "2"] if many else "1")], None, [], [("B", ["é"] if many else "é"), ("C", None)]]
    made = batch_of(data=pa.array([b""] * 4), headers=pa.array(values, pa.map_(pa.string(), kind)))
    expected = [
        [("A", "1"), ("A", "2")] if many else [("A", "1")],
        [],
        [],
        [("B", "é")] + ([] if many else [("C", "")]),
    ]
    assert [pairs(op) for op in sent(made)] == expected


def test_a_slice_is_what_it_shows() -> None:
    whole = batch_of(
        subject=pa.array(["a", "b", "c", "d"]),
        data=pa.array([b"1", b"2", b"3", b"4"]),
        headers=pa.array([[(each, ["v" + each])] for each in "ABCD"], pa.map_(pa.string(), pa.list_(pa.string()))),
    )
    part = sent(whole.slice(1, 2), b"q/")
    assert [(op.subject, op.payload) for op in part] == [(b"b", b"2"), (b"c", b"3")]
    assert [pairs(op) for op in part] == [
        [("B", "vB"), ("Nats-Msg-Id", "q/10")],
        [("C", "vC"), ("Nats-Msg-Id", "q/11")],
    ]
    assert sent(whole.slice(0, 0)) == []


def test_a_named_stream_is_expected_by_every_message() -> None:
    (op,) = sent(batch_of(data=pa.array([b""])), stream="S")
    assert pairs(op) == [("Nats-Expected-Stream", "S")]


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_an_event_goes_out_as_it_is_stated(mode: str) -> None:
    time = datetime(2026, 11, 21, 3, 49, 36, 123456, UTC)
    full = {
        "id": "a 1",
        "source": "/é",
        "type": "t",
        "datacontenttype": "application/json",
        "time": time,
        "extensions": [("traceparent", "00-1")],
        "data": b'{"n": 1}',
    }
    bare = {"id": "2", "source": "/x", "type": "t", "data": b"\xff"}
    first, second = sent(batch_of(event=pa.array([full, bare], EVENT)), b"q/", contentMode=mode)
    read = [from_nats(Message("", op.payload, "", op.block)) for op in (first, second)]
    assert read[0] == CloudEvent(
        id="a 1",
        source="/é",
        type="t",
        datacontenttype="application/json",
        time=time,
        extensions={"traceparent": "00-1"},
        data=msgspec.Raw(b'{"n": 1}'),
        strict=False,
    )
    assert (read[1].id, read[1].data) == ("2", b"\xff")
    assert dict(pairs(first))["Nats-Msg-Id"] == "/%C3%A9 a%201"


@pytest.mark.parametrize("event", [None, {"id": "1"}, {"id": "1", "source": "/x", "type": "", "data": None}])
def test_what_is_no_event_is_refused_with_its_row(event: dict[str, Any] | None) -> None:
    with pytest.raises(CloudEventError, match="row 1"):
        sent(batch_of(event=pa.array([{"id": "1", "source": "/x", "type": "t"}, event], EVENT)))


def test_json_data_that_is_none_is_refused() -> None:
    broken = {"id": "1", "source": "/x", "type": "t", "datacontenttype": "application/json", "data": b"{"}
    with pytest.raises(CloudEventError, match="row 0"):
        sent(batch_of(event=pa.array([broken], EVENT)))


def test_a_field_that_events_do_not_have_is_refused() -> None:
    with pytest.raises(CloudEventError, match="'topic'"):
        sent(batch_of(event=pa.array([{"id": "1", "topic": "x"}])))
