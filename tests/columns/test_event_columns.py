"""The decoder of CloudEvents columns gives what the reference gives: for every vector, and for generated messages."""

import json
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.decoded_rows import columns_of_messages
from support.event_strategies import events, extension_names, strings

from headwater.cloudevents import CloudEvent, DataKind, canonical_string, from_nats, to_binary, to_json, to_structured
from headwater.columns.event_columns import SLOTS, EventDecoder
from headwater.errors import CloudEventError
from headwater.model.message import Message
from headwater.spark.arrow import arrow_schema
from headwater.spark.events import event_array
from headwater.spark.options import parse_options
from headwater.spark.schema import EVENT_FIELDS, source_schema

Wire = tuple[bytes, bytes]  # header block, payload

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "vectors" / "cloudevents.json").read_bytes())[
    "vectors"
]
SCHEMA = arrow_schema(source_schema(parse_options({"stream": "S", "decode": "cloudevents"})))
JSON_MODE = b"NATS/1.0\r\nContent-Type: application/cloudevents+json\r\n\r\n"
PLAIN = b"NATS/1.0\r\nce-specversion: 1.0\r\nce-id: 1\r\nce-source: /x\r\nce-type: t\r\n\r\n"


def decoded_rows(messages: Sequence[Wire], scans: bool = True) -> tuple[list[dict[str, Any]], int]:
    """The ce_ columns of the messages, row by row, and how many of them the scan settled."""
    decoder = EventDecoder()
    decoder.scans = scans
    taken = decoder.decode(columns_of_messages(messages))
    arrays = {field.name: event_array(taken, field.name, SCHEMA.field(field.name).type) for field in EVENT_FIELDS}
    table = pa.RecordBatch.from_pydict(arrays)
    table.validate(full=True)
    return table.to_pylist(), decoder.scanned


def stated_by_reference(block: bytes, payload: bytes) -> dict[str, Any]:
    """What the columns have to hold, by the reference alone."""
    row: dict[str, Any] = {field.name: None for field in EVENT_FIELDS}
    try:
        event = from_nats(Message("", payload, "", block))
    except CloudEventError as error:
        row["ce_error"] = str(error).encode("utf-8", "replace").decode()
        row["ce_rule"] = error.rule
        return row
    row |= {f"ce_{name}": event.attributes.get(name) for name in SLOTS if name != "time"}
    row["ce_time_raw"] = event.time_text
    try:
        row["ce_time"] = event.time.astimezone(UTC) if event.time is not None else None
    except (CloudEventError, OverflowError):
        row["ce_time"] = None
    row["ce_extensions"] = [(name, canonical_string(name, value)) for name, value in event.extensions.items()]
    row["ce_data"] = None if event.kind is DataKind.ABSENT else event.payload
    return row


def check(messages: Sequence[Wire]) -> int:
    """Both ways of decoding agree with the reference on every row; how many rows were scanned."""
    expected = [stated_by_reference(*message) for message in messages]
    rows, scanned = decoded_rows(messages)
    assert rows == expected
    assert decoded_rows(messages, scans=False) == (expected, 0)
    return scanned


def wire(message: Any) -> Wire:
    return bytes(message.headers), message.data


def block_of(pairs: Sequence[Sequence[str]]) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in pairs])
    return f"NATS/1.0\r\n{lines}\r\n".encode("utf-8", "surrogateescape")


def of_vector(vector: dict[str, Any]) -> Wire:
    payload = bytes.fromhex(vector["payload_hex"]) if "payload_hex" in vector else vector["payload_utf8"].encode()
    return (block_of(vector["headers"]) if "headers" in vector else JSON_MODE), payload


READ = [v for v in VECTORS if v["kind"] in ("mode", "binary_decode", "json_decode")]


@pytest.mark.parametrize("vector", READ, ids=lambda vector: str(vector["name"]))
def test_a_vector_is_read_as_the_reference_reads_it(vector: dict[str, Any]) -> None:
    check([of_vector(vector)])


def test_rows_do_not_touch_each_other() -> None:
    messages = [of_vector(vector) for vector in READ]
    scanned = check(messages * 2)
    assert scanned > len(READ) // 2
    check(messages[::-1])


@given(st.lists(st.tuples(events(), st.booleans()), max_size=2))
def test_any_event_in_either_mode_is_read_as_the_reference_reads_it(chosen: list[tuple[CloudEvent, bool]]) -> None:
    check([wire(to_structured(event) if structured else to_binary(event)) for event, structured in chosen])


names = st.sampled_from(
    ["ce-id", "ce-source", "ce-type", "ce-specversion", "ce-time", "CE-Subject", "ce-data", "ce-", "ce-a-b", "Ce-X1"]
) | st.sampled_from(["Content-Type", "content-type", "Nats-Msg-Id", "ce-datacontenttype", "ce-dataschema", "ce-id"])
texts = (
    strings
    | st.sampled_from(
        ["1.0", "/x", "a%20b", "%", "%zz", "%C3%A9", "%c3", "%00", '"q"', "é", "\x7f", "\u0085", "\ufffe", "\U0001fffe"]
    )
    | st.sampled_from(
        ["\udcff", "application/json", "application/cloudevents+json", "application/cloudevents; charset=utf-8"]
    )
    | st.sampled_from(
        ["application/cloudevents-batch+json", "application/cloudevents+xml", "Text/X+JSON ; a", "", "x" * 1100 + "%20"]
    )
    | st.sampled_from(
        ["2018-04-05T03:56:24Z", "2018-02-30T03:56:24Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"]
    )
    | st.sampled_from(
        [
            "2024-02-29t23:59:59.1234567-01:30",
            "2016-12-31T23:59:60Z",
            "2018-04-05T03:56:24",
            "9999-12-31T23:59:59-01:00",
        ]
    )
)
members = st.dictionaries(
    st.sampled_from(
        ["id", "source", "type", "specversion", "time", "subject", "data", "data_base64", "datacontenttype"]
    )
    | st.sampled_from(["ext", "Ext", "a_b", "e1", "e2"]),
    texts | st.none() | st.booleans() | st.integers(-(2**33), 2**33) | st.floats(allow_nan=False) | st.just({"a": [1]}),
)
BASE = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/x"), ("ce-type", "t")]


@given(st.lists(st.tuples(names, texts), max_size=6), st.booleans(), st.binary(max_size=8) | st.just(b'{"id":"1"}'))
def test_any_headers_are_read_as_the_reference_reads_them(
    pairs: list[tuple[str, str]], with_base: bool, payload: bytes
) -> None:
    clean = [(name, value.replace("\r", "").replace("\n", "")) for name, value in pairs]
    check([(block_of((BASE if with_base else []) + clean), payload)])


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_instant_that_its_zone_carries_out_of_all_years_is_null_and_its_text_stays(text: str) -> None:
    row = decoded_rows([(PLAIN[:-2] + f"ce-time: {text}\r\n\r\n".encode(), b"")])[0][0]
    assert (row["ce_time"], row["ce_time_raw"], row["ce_error"]) == (None, text, None)


@given(members, st.booleans(), st.sampled_from([(",", ":"), (" ,\n", "\t: ")]), st.booleans())
def test_any_members_are_read_as_the_reference_reads_them(
    given_members: dict[str, Any], with_base: bool, separators: tuple[str, str], escaped: bool
) -> None:
    base = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t"} if with_base else {}
    text = json.dumps(base | given_members, separators=separators, ensure_ascii=escaped)
    check([(JSON_MODE, text.encode("utf-8", "surrogatepass")), (b"", text.encode("utf-8", "surrogatepass"))])


@given(st.binary(max_size=60), st.binary(max_size=60))
@example(b"NATS/1.0\r\nce-id: 1\r\n\r\ntrailing", b"")
@example(b"NATS/1.0\r\nce-id: 1\n\r\n\r\n", b"")
@example(b"NATS/1.0\r\n\r\n", b"\xef\xbb\xbf{}")
@example(b"NATS/1.0 503\r\n\r\n", b"{}")
def test_any_bytes_are_read_as_the_reference_reads_them(block: bytes, payload: bytes) -> None:
    check([(block, payload), (PLAIN + block, payload), (b"NATS/1.0\r\n" + block, payload)])


@given(st.data())
def test_a_damaged_event_is_read_as_the_reference_reads_it(data: st.DataObject) -> None:
    event = data.draw(events(extension_values=strings))
    block, payload = wire(to_binary(event)) if data.draw(st.booleans()) else (JSON_MODE, to_json(event))
    text = bytearray(payload if block == JSON_MODE else block)
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    check([(JSON_MODE, bytes(text)) if block == JSON_MODE else (bytes(text), payload)])


@pytest.mark.parametrize("structured", [True, False])
def test_what_senders_write_needs_no_second_opinion(structured: bool) -> None:
    event = CloudEvent(
        id="a 1",
        source="/é",
        type="t",
        subject="s",
        time="2024-02-29T23:59:59.123456789+01:00",
        dataschema="urn:s",
        datacontenttype="application/json; charset=utf-8",
        data={"nested": [1, -2.5e3, True, None, "é\n\U0001f600", {}, []]},
        extensions={"traceparent": "00-1", "sampledrate": 7, "flag": True},
        strict=False,
    )
    text = CloudEvent(id="2", source="/x", type="t", datacontenttype="text/plain", data="words")
    for each in (event, text, CloudEvent(id="3", source="/x", type="t")):
        assert check([wire(to_structured(each) if structured else to_binary(each))] * 3) == 3


def test_what_is_no_event_at_all_needs_no_second_opinion() -> None:
    assert check([(b"", b"words"), (b"", b""), (b"NATS/1.0\r\nA: b\r\n\r\n", b"[1]")]) == 3


@given(extension_names)
def test_an_extension_twice_is_refused_whatever_its_case(name: str) -> None:
    rows, _ = decoded_rows([(block_of([*BASE, ("ce-" + name, "1"), ("CE-" + name.upper(), "2")]), b"")])
    assert rows[0]["ce_rule"] == "duplicate"


def test_the_payload_serves_as_data_until_a_row_differs() -> None:
    columns = columns_of_messages([(PLAIN, b"one"), (PLAIN, b""), (b"", b"no event")])
    assert EventDecoder().decode(columns).data is columns.payloads
    mixed = [(PLAIN, b"one"), (PLAIN, b""), (JSON_MODE, to_json(CloudEvent(id="1", source="/x", type="t", data=[1])))]
    rows, _ = decoded_rows([*mixed, (PLAIN, b"two"), (b"", b"no")])
    assert [row["ce_data"] for row in rows] == [b"one", None, b"[1]", b"two", None]
