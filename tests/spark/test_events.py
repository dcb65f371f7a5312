"""Rows to CloudEvents columns: every attribute, and a reason where there is no event."""

from datetime import UTC, datetime
from typing import Any

from support.decoded_rows import decoded

from headwater.spark.arrow import arrow_schema
from headwater.spark.events import event_arrays
from headwater.spark.options import parse_options
from headwater.spark.schema import EVENT_FIELDS, source_schema

MINIMAL = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/x", "ce-type": "t"}


def block(**headers: str) -> bytes:
    lines = {**MINIMAL, **{f"ce-{name}": value for name, value in headers.items()}}
    return ("NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n").encode()


def columns_of(blocks: list[bytes]) -> dict[str, list[Any]]:
    schema = arrow_schema(source_schema(parse_options({"stream": "S", "decode": "cloudevents"})))
    arrays = event_arrays(decoded(blocks), schema)
    assert set(arrays) == {field.name for field in EVENT_FIELDS}
    return {name: array.to_pylist() for name, array in arrays.items()}


def test_every_attribute_has_its_column() -> None:
    full = block(
        subject="sub%20ject",
        time="2026-11-21T03:49:36.123456789+01:00",
        datacontenttype="text/plain",
        dataschema="urn:s",
        traceparent="00-1",
    )
    (row,) = zip(*columns_of([full]).values(), strict=True)
    values = dict(zip(columns_of([full]), row, strict=True))
    assert values["ce_specversion"] == "1.0"
    assert (values["ce_id"], values["ce_source"], values["ce_type"]) == ("1", "/x", "t")
    assert values["ce_subject"] == "sub ject"
    assert values["ce_time"] == datetime(2026, 11, 21, 2, 49, 36, 123456, UTC)
    assert values["ce_time_raw"] == "2026-11-21T03:49:36.123456789+01:00"
    assert (values["ce_datacontenttype"], values["ce_dataschema"]) == ("text/plain", "urn:s")
    assert values["ce_extensions"] == [("traceparent", "00-1")]
    assert values["ce_data"] == b"p1"
    assert values["ce_error"] is None


def test_what_is_not_set_is_null_and_no_extensions_are_an_empty_map() -> None:
    values = columns_of([block()])
    for name in ("subject", "time", "time_raw", "datacontenttype", "dataschema", "error"):
        assert values[f"ce_{name}"] == [None]
    assert values["ce_extensions"] == [[]]


def test_rows_that_are_no_events_have_a_reason_and_spoil_no_other() -> None:
    broken = [b"garbage", b"NATS/1.0\r\nce-id: 1\r\n\r\n", b"", b"NATS/1.0\r\nce-id: \xff\xfe\r\n\r\n"]
    blocks = [block(), *broken, block()]
    values = columns_of(blocks)
    assert values["ce_id"] == ["1", None, None, None, None, "1"]
    assert [reason is None for reason in values["ce_error"]] == [True, False, False, False, False, True]
    for name, column in values.items():
        if name not in ("ce_error", "ce_rule"):
            assert column[1:5] == [None] * 4


def test_a_time_that_no_timestamp_can_hold_is_kept_as_text() -> None:
    values = columns_of([block(time="2026-11-21T03:49:60.5-00:00"), block(time="nonsense")])
    assert values["ce_time_raw"][0] == "2026-11-21T03:49:60.5-00:00"
    assert values["ce_error"][0] is None
    assert "time" in values["ce_error"][1]


def test_the_rule_that_is_broken_has_a_column_to_group_by() -> None:
    broken = [block(), block(id=""), b"garbage", block(specversion="0.3"), b""]
    assert columns_of(broken)["ce_rule"] == [None, "empty", "bad version line", "unsupported", "not a CloudEvent"]
