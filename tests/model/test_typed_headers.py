import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.header_strategies import typed_headers

from headwater import HeaderKey, HeaderKind, HeaderValue, TypedHeaders
from headwater.errors import HeaderError
from headwater.model.typed_header import PythonValue
from headwater.model.typed_headers import TOTAL_LIMIT, HeaderForm, check_total

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "iggy_seed.json").read_text(encoding="utf-8"))
VALUES = {
    "key 1": HeaderValue.from_str("value1"),
    "key-2": HeaderValue.from_bool(True),
    "key_3": HeaderValue.from_uint64(123456),
    "key": HeaderValue.from_float64(123.45),
    "raw": HeaderValue.from_raw(b"\0\xff\1"),
    "i8": HeaderValue.from_int8(-1),
    "i16": HeaderValue.from_int16(-2),
    "i32": HeaderValue.from_int32(-3),
    "i64": HeaderValue.from_int64(-4),
    "i128": HeaderValue.from_int128(-5),
    "u8": HeaderValue.from_uint8(255),
    "u16": HeaderValue.from_uint16(65535),
    "u32": HeaderValue.from_uint32(2**32 - 1),
    "u128": HeaderValue.from_uint128(1),
    "f32": HeaderValue.from_float32(1.5),
    "UPPER": HeaderValue.from_str("x"),
}


def rule_of(data: bytes, form: HeaderForm = HeaderForm.SEED, strict: bool = False) -> str:
    with pytest.raises(HeaderError) as caught:
        TypedHeaders.decode(data, form, strict)
    return caught.value.rule


@pytest.mark.parametrize("vector", VECTORS["headers"], ids=lambda vector: vector["key_given"])
def test_a_header_is_written_and_read_as_the_upstream_functions_did(vector: dict[str, str]) -> None:
    given_key = vector["key_given"]
    headers = TypedHeaders({HeaderKey.seed(given_key): VALUES[given_key]})
    assert headers.encode().hex() == vector["hex"]
    assert TypedHeaders.decode(bytes.fromhex(vector["hex"]), strict=True) == headers
    assert next(iter(headers.values())).kind.json_name == vector["kind"]


def test_the_example_of_the_seed_document() -> None:
    headers = TypedHeaders()
    headers["key 1"] = "value1"
    headers["key-2"] = True
    headers["key_3"] = HeaderValue.from_uint64(123456)
    assert headers["key 1"].as_str() == "value1"
    assert headers["key-2"].as_bool() is True
    assert headers["key_3"].as_uint64() == 123456
    assert headers.get("key") is None and "key-2" in headers and len(headers) == 3
    del headers["key-2"]
    assert headers.to_python() == {"key 1": "value1", "key_3": 123456}
    assert headers.value_bytes == 14
    assert (
        repr(headers)
        == "TypedHeaders({'key 1': string b'value1', 'key_3': uint64 b'@\\xe2\\x01\\x00\\x00\\x00\\x00\\x00'})"
    )


@given(typed_headers(keys="any"))
def test_the_newer_binary_form_brings_all_back(headers: TypedHeaders) -> None:
    data = headers.encode(HeaderForm.TYPED)
    assert TypedHeaders.decode(data, HeaderForm.TYPED, strict=True) == headers
    assert TypedHeaders.from_json(json.loads(json.dumps(headers.to_json(HeaderForm.TYPED))), strict=True) == headers


@given(typed_headers())
def test_the_forms_of_the_seed_bring_string_keys_back(headers: TypedHeaders) -> None:
    assert TypedHeaders.decode(headers.encode(), strict=True) == headers
    assert list(TypedHeaders.decode(headers.encode())) == list(headers)
    assert TypedHeaders.from_json(json.loads(json.dumps(headers.to_json())), strict=True) == headers


@given(st.binary(max_size=200), st.sampled_from(HeaderForm), st.booleans())
def test_any_bytes_decode_or_raise_our_error(data: bytes, form: HeaderForm, strict: bool) -> None:
    try:
        decoded = TypedHeaders.decode(data, form, strict)
    except HeaderError:
        return
    assert TypedHeaders.decode(decoded.encode(form), form) == decoded


@given(typed_headers().filter(len), st.data())
def test_a_block_that_is_cut_is_never_taken_for_a_whole_header(headers: TypedHeaders, data: st.DataObject) -> None:
    block = headers.encode()
    cut = block[: data.draw(st.integers(0, len(block) - 1))]
    try:
        assert len(TypedHeaders.decode(cut)) < len(headers)
    except HeaderError as error:
        assert error.rule == "truncated"


def values_of(headers: TypedHeaders) -> dict[str, PythonValue] | str:
    try:
        return headers.to_python()
    except HeaderError as error:
        return error.rule


@given(
    typed_headers(keys="any").filter(len), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3)
)
def test_a_block_has_the_same_values_before_and_after_it_is_taken_apart(
    headers: TypedHeaders, changes: list[tuple[int, int]]
) -> None:
    block = bytearray(headers.encode(HeaderForm.TYPED))
    for at, byte in changes:
        block[at % len(block)] = byte
    try:
        whole, parts = TypedHeaders.decode(block, HeaderForm.TYPED), TypedHeaders.decode(block, HeaderForm.TYPED)
    except HeaderError:
        return
    for key, value in parts.items():  # which takes it apart
        assert HeaderKey.of_wire(key.kind, key.raw) == key and HeaderValue.of_wire(value.kind, value.raw) == value
    assert repr(values_of(whole)) == repr(values_of(parts))  # not ==, for nan
    assert whole == parts and list(whole) == list(parts)


def test_headers_of_a_block_can_be_changed() -> None:
    given: dict[str, PythonValue] = {"a": 1, "b": "two", "c": b"3", "d": 2.5, "e": True, "f": 2**100}
    block = TypedHeaders(given).encode(HeaderForm.TYPED)
    headers = TypedHeaders.decode(block, HeaderForm.TYPED)
    assert headers.to_python() == given
    headers["a"] = -1
    del headers["f"]
    assert headers.to_python() == {"a": -1, "b": "two", "c": b"3", "d": 2.5, "e": True}
    copy = pickle.loads(pickle.dumps(TypedHeaders.decode(block, HeaderForm.TYPED)))
    assert copy["b"].as_str() == "two" and len(copy) == 6


def test_keys_that_read_alike_count_as_they_do_taken_apart() -> None:
    number = HeaderKey(b"\5", HeaderKind.UINT8)
    blocks = [TypedHeaders({key: value}).encode(HeaderForm.TYPED) for key, value in (("5", 1), (number, 2), ("5", 3))]
    assert TypedHeaders.decode(b"".join(blocks), HeaderForm.TYPED).to_python() == {"5": 2}
    assert TypedHeaders.decode(blocks[0] + blocks[2], HeaderForm.TYPED).to_python() == {"5": 3}


def test_what_is_wrong_is_refused_by_its_rule() -> None:
    good = bytes.fromhex("020000006938" + "04" + "01000000ff")
    assert rule_of(good[:-1]) == "truncated"
    assert rule_of(good + good[:3]) == "truncated"
    assert rule_of(good[:6]) == "truncated"
    assert rule_of(good.replace(b"\x04", b"\x10")) == "unknown kind"
    assert rule_of(bytes(4) + good) == "key length"
    assert rule_of(good[:7] + bytes(4)) == "value length"
    assert rule_of(bytes.fromhex("01000000ff" + "04" + "01000000ff")) == "not UTF-8"
    assert rule_of(bytes.fromhex("ffffffff") + good) == "truncated"
    assert rule_of(b"\0" + good, HeaderForm.TYPED) == "unknown kind"


def test_leniency_ends_with_strict() -> None:
    narrow = bytes.fromhex("0100000061" + "08" + "0100000005")
    assert TypedHeaders.decode(narrow)["a"].raw == b"\5"
    assert rule_of(narrow, strict=True) == "value width"
    twice = TypedHeaders({"a": 1}).encode() + TypedHeaders({"a": 2}).encode()
    assert TypedHeaders.decode(twice)["a"].as_int64() == 2
    assert rule_of(twice, strict=True) == "duplicate"


def test_a_typed_key_has_no_place_in_the_forms_of_the_seed() -> None:
    headers = TypedHeaders({HeaderKey(b"\1", HeaderKind.UINT8): "x"})
    for write in (headers.encode, headers.to_json):
        with pytest.raises(HeaderError, match="a key in this form is a string"):
            write()


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ("x", "not a header value"),
        ([{"key": 1}], "not a header value"),
        ({"a": "b"}, "not a header value"),
        ({"a": {"kind": "text", "value": ""}}, "unknown kind"),
        ({"a": {"kind": "raw", "value": "*"}}, "not base64"),
        ({"a": {"kind": "raw", "value": ""}}, "value length"),
        ({"": {"kind": "raw", "value": "AA=="}}, "key length"),
    ],
)
def test_json_that_is_no_header_is_refused(document: Any, rule: str) -> None:
    with pytest.raises(HeaderError) as caught:
        TypedHeaders.from_json(document)
    assert caught.value.rule == rule


def test_json_without_headers_is_no_headers() -> None:
    assert TypedHeaders.from_json(None) == TypedHeaders.from_json({}) == TypedHeaders()
    assert TypedHeaders().encode() == b""


def test_the_total_limit_is_100_kb_of_values() -> None:
    check_total(401 * 255)
    check_total(TOTAL_LIMIT)
    with pytest.raises(HeaderError) as caught:
        check_total(402 * 255)
    assert caught.value.rule == "total size"
