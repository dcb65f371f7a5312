import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import HeaderKey, HeaderKind, HeaderValue
from headwater.errors import HeaderError

INTEGERS = [kind for kind in HeaderKind if kind.name.startswith(("INT", "UINT"))]


def rule_of(call: object, *arguments: object) -> str:
    with pytest.raises(HeaderError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.rule


@pytest.mark.parametrize("kind", INTEGERS)
def test_an_integer_kind_holds_its_range_and_not_one_more(kind: HeaderKind) -> None:
    assert kind.width is not None
    bits = 8 * kind.width
    signed = kind.name.startswith("INT")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    make = getattr(HeaderValue, f"from_{kind.json_name}")
    for value in (low, 0, high):
        assert getattr(make(value), f"as_{kind.json_name}")() == value
        assert make(value).python == value
    assert rule_of(make, low - 1) == rule_of(make, high + 1) == "out of range"
    assert rule_of(make, True) == rule_of(make, "1") == "not a header value"


def test_there_are_fifteen_kinds_with_the_codes_and_names_of_the_seed() -> None:
    names = "raw string bool int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 float32 float64".split()
    assert [(int(kind), kind.json_name) for kind in HeaderKind] == list(enumerate(names, 1))


@pytest.mark.parametrize("kind", HeaderKind)
def test_an_accessor_refuses_every_other_kind(kind: HeaderKind) -> None:
    value = HeaderValue(kind, b"\1" * (kind.width or 1))
    for other in HeaderKind:
        accessor = getattr(value, f"as_{'str' if other is HeaderKind.STRING else other.json_name}")
        if other is kind:
            accessor()
        else:
            assert rule_of(accessor) == "wrong kind"


@pytest.mark.parametrize("kind", HeaderKind)
def test_length_and_width_are_checked_where_a_value_is_made(kind: HeaderKind) -> None:
    assert rule_of(HeaderValue, kind, b"") == "value length"
    assert rule_of(HeaderValue, kind, b"x" * 256) == "value length"
    if kind.width is not None:
        assert rule_of(HeaderValue, kind, b"\1" * (kind.width + 1)) == "value width"


def test_a_value_from_the_wire_keeps_a_wrong_width_until_it_is_asked_for() -> None:
    value = HeaderValue.of_wire(HeaderKind.INT128, b"\5")
    assert value.raw == b"\5"
    assert rule_of(value.as_int128) == "value width"
    assert rule_of(HeaderValue.of_wire(HeaderKind.BOOL, b"\2").as_bool) == "out of range"
    assert rule_of(HeaderValue.of_wire(HeaderKind.STRING, b"\xff").as_str) == "not UTF-8"


def test_python_values_find_their_kind() -> None:
    kinds: dict[str | bytes | bool | int | float, HeaderKind] = {
        "a": HeaderKind.STRING,
        b"a": HeaderKind.RAW,
        True: HeaderKind.BOOL,
        -5: HeaderKind.INT64,
        2**63: HeaderKind.UINT64,
        -(2**63) - 1: HeaderKind.INT128,
        2**127: HeaderKind.UINT128,
        0.5: HeaderKind.FLOAT64,
    }
    for value, kind in kinds.items():
        assert HeaderValue.of(value).kind is kind
        assert HeaderValue.of(value).python == value
    assert rule_of(HeaderValue.of, 2**128) == "out of range"
    assert rule_of(HeaderValue.of, None) == "not a header value"


def test_a_float32_is_the_nearest_one_or_refused() -> None:
    assert HeaderValue.from_float32(1.5).as_float32() == 1.5
    assert HeaderValue.from_float32(float("inf")).as_float32() == float("inf")
    assert rule_of(HeaderValue.from_float32, 1e300) == "out of range"


def test_a_string_key_is_its_text_and_case_counts() -> None:
    key = HeaderKey("Key 1")
    assert key == "Key 1" and hash(key) == hash("Key 1") and str(key) == "Key 1"
    assert key != "key 1" and key != HeaderKey(b"Key 1", HeaderKind.RAW)
    assert HeaderKey("?") != "\ud800"
    assert HeaderKey.seed("Key 1") == "key 1"
    assert HeaderKey(key) == key
    assert pickle.loads(pickle.dumps(key)) == key


def test_a_key_of_another_kind_shows_its_value() -> None:
    key = HeaderKey((7).to_bytes(4, "little"), HeaderKind.UINT32)
    assert (str(key), repr(key)) == ("7", "HeaderKey('7', uint32)")
    assert str(HeaderKey.of_wire(HeaderKind.UINT32, b"\7")) == "07"
    assert repr(HeaderKey("a")) == "HeaderKey('a')"


@pytest.mark.parametrize(("key", "rule"), [("", "key length"), ("ä" * 128, "key length"), ("\ud800", "not UTF-8")])
def test_a_key_that_cannot_travel_is_refused(key: str, rule: str) -> None:
    assert rule_of(HeaderKey, key) == rule


def test_an_error_names_the_rule_and_what_was_wrong() -> None:
    with pytest.raises(HeaderError, match=r"int16 has 2 bytes, not 1") as caught:
        HeaderValue(HeaderKind.INT16, b"\1")
    assert caught.value.rule == "value width"
    assert rule_of(HeaderKind.of_code, 16) == rule_of(HeaderKind.of_json_name, "Int8") == "unknown kind"


@given(
    st.text(min_size=1, max_size=60).filter(
        lambda text: text.encode("utf-8", "surrogatepass").decode(errors="replace") == text
    )
)
def test_a_text_comes_back(text: str) -> None:
    assert HeaderValue.from_str(text).as_str() == text
