"""The pieces of the scan are sound: what they accept, a well-kept library accepts, and reads as the same."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import json_values

from headwater.cloudevents.attributes import check_string, to_datetime
from headwater.cloudevents.event import is_json_type as reference_is_json_type
from headwater.columns.event_scan import is_json_type, is_string, is_utf8, skip_value, timestamp_micros
from headwater.errors import CloudEventError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def judged(text: bytes) -> int:
    """Where the JSON value in the middle of other bytes ends, counted from its start; or -1."""
    end: int = skip_value(bytearray(b"]" + text), 1, 1 + len(text))
    return end - 1 if end >= 0 else -1


@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_every_json_value_is_skipped_whole(value: Any, escaped: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent).encode()
    assert judged(text) == len(text)
    if text[:1] in b'[{"':
        assert judged(text + b" , 1") == len(text)


@given(st.binary(max_size=12) | st.text('[]{},:"\\u0018dDeE.-+ tfn', max_size=14).map(str.encode))
def test_what_is_skipped_is_json(text: bytes) -> None:
    end = judged(text)
    if end >= 0 and is_utf8(bytearray(text), 0, end):
        json.loads(text[:end], parse_constant=pytest.fail)
        msgspec.json.decode(b"[%b]" % text[:end], type=list[msgspec.Raw])


BAD_STRUCTURE = ["", "[", "[1,]", "[1 2]", '{"a":}', '{"a"}', "{,}", '{"a":1,}', "{1:1}", "[}"]
BAD_NUMBERS = ["01", "-", "1.", ".5", "1e", "1e+", "+1", "NaN"]
BAD_TEXT = ["tru", "nul", '"', '"\\x"', '"\\u12g4"', '"\t"', '"\\ud800"', '"\\ud800\\u0041"', '"\\udc00"']


@pytest.mark.parametrize("text", [*BAD_STRUCTURE, *BAD_NUMBERS, *BAD_TEXT])
def test_what_is_no_json_is_not_skipped(text: str) -> None:
    end = judged(text.encode())
    assert end < len(text)  # a 0 before a 1 is a value: it is the comma behind it that is missing


def test_nesting_is_followed_to_a_depth() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        assert judged((opening * 64 + "1" + closing * 64).encode()) > 0
        assert judged((opening * 65 + "1" + closing * 65).encode()) == -1


@given(st.binary(max_size=8) | st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_utf8_is_what_python_decodes_and_a_string_is_what_cloudevents_allows(text: bytes) -> None:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        assert not is_utf8(bytearray(text), 0, len(text))
        assert not is_string(bytearray(text), 0, len(text))
        return
    assert is_utf8(bytearray(text), 0, len(text))
    try:
        check_string("x", decoded)
    except CloudEventError:
        assert not is_string(bytearray(text), 0, len(text))
    else:
        assert is_string(bytearray(text), 0, len(text))


@given(st.integers(0, 0x10FFFF))
def test_every_character_is_judged_as_cloudevents_does(code: int) -> None:
    text = chr(code).encode("utf-8", "surrogatepass")
    try:
        check_string("x", chr(code))
        allowed = True
    except CloudEventError:
        allowed = False
    assert is_string(bytearray(text), 0, len(text)) == allowed


@given(
    st.sampled_from(["application/json", "text/JSON", "a/b+json", "json", "/json", "a/+json", "a/b/json", "a/xjson"]),
    st.sampled_from(["", " ", ";charset=utf-8", "\t; x=/json", ";"]),
)
def test_a_json_media_type_is_known_by_its_end(media: str, parameters: str) -> None:
    text = (media + parameters).encode()
    assert is_json_type(bytearray(text), 0, len(text)) == reference_is_json_type(text.decode())


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),
    st.integers(-1439, 1439),
    st.sampled_from(["", "%06d", "%06d999"]),
)
def test_a_timestamp_is_the_instant_that_it_names(local: datetime, zone: int, fraction: str) -> None:
    instant = local.replace(tzinfo=timezone(timedelta(minutes=zone)))
    text = local.isoformat(timespec="seconds") + (f".{fraction % local.microsecond}" if fraction else "")
    text += "Z" if zone == 0 else f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02}:{abs(zone) % 60:02}"
    wire = bytearray(text.encode())
    expected = instant if fraction else instant.replace(microsecond=0)
    assert timestamp_micros(wire, 0, len(wire)) == (expected - EPOCH) // timedelta(microseconds=1)


@given(
    st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,8})?([Zz]|[+-][0-9:]{5})", fullmatch=True
    )
)
def test_what_is_no_timestamp_is_left_to_the_reference(text: str) -> None:
    if not text.isascii():
        return
    wire = bytearray(text.encode())
    micros = timestamp_micros(wire, 0, len(wire))
    if micros > -(1 << 62):
        assert to_datetime("time", text) == EPOCH + timedelta(microseconds=micros)
