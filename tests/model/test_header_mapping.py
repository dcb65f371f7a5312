import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.header_strategies import nats_headers, typed_headers

from headwater import HeaderKey, HeaderKind, Headers, HeaderValue, TypedHeaders
from headwater.model.header_mapping import EMPTY, LOSSES, MAPPING, Loss, nats_to_typed, typed_to_nats
from headwater.model.typed_headers import HeaderForm


@given(typed_headers(keys="any", wire=True))
def test_nothing_of_an_iggy_message_is_lost_in_nats_headers(typed: TypedHeaders) -> None:
    headers = Headers.parse(bytes(typed_to_nats(typed)))
    assert nats_to_typed(headers) == (typed, [])


@given(nats_headers())
def test_nothing_of_ordinary_nats_headers_is_lost_in_typed_headers(headers: Headers) -> None:
    typed, losses = nats_to_typed(headers)
    assert losses == []
    assert typed_to_nats(TypedHeaders.decode(typed.encode())) == headers


@given(
    st.lists(
        st.tuples(st.from_regex(r"[!-9;-~]{1,8}|Iggy-Typed|a#2|a", fullmatch=True), st.binary(max_size=30)), max_size=6
    )
)
def test_any_headers_map_to_typed_headers_that_can_travel(pairs: list[tuple[str, bytes]]) -> None:
    headers = Headers((name, value.translate(None, b"\r\n")) for name, value in pairs)
    typed, losses = nats_to_typed(headers)
    assert TypedHeaders.decode(typed.encode()) == typed
    assert losses == []


def test_typed_values_read_as_text_and_say_what_they_were() -> None:
    values: dict[str, HeaderValue | str | bytes | bool] = {
        "key 1": "value1",
        "key-2": True,
        "key_3": HeaderValue.from_uint64(123456),
        "blob": b"\0\xff\1",
        "f": HeaderValue.from_float32(1.5),
        "plain": "text",
    }
    assert typed_to_nats(TypedHeaders(values)).multi_items() == [
        ("key%201", "value1"),
        ("key-2", "true"),
        ("key_3", "123456"),
        ("blob", "AP8B"),
        ("f", "1.5"),
        ("plain", "text"),
        ("Iggy-Typed", "key%201 string escaped"),
        ("Iggy-Typed", "key-2 bool"),
        ("Iggy-Typed", "key_3 uint64"),
        ("Iggy-Typed", "blob raw base64"),
        ("Iggy-Typed", "f float32"),
    ]


KINDS = st.sampled_from([kind.json_name for kind in HeaderKind])
NUMBERS = st.integers(min_value=-(1 << 130), max_value=1 << 130).map(str) | st.floats().map(repr)


@given(KINDS, NUMBERS | st.text(max_size=4), st.sampled_from(["", " base64", " escaped", " base64 escaped uint8"]))
@example("int8", "999", "")
@example("uint8", "-1", "")
@example("float32", "1e300", "")
def test_any_made_up_marker_gives_typed_headers_that_can_travel(kind: str, text: str, options: str) -> None:
    text = text.replace("\r", "").replace("\n", "")
    headers = Headers([("n", text), ("Iggy-Typed", f"n {kind}{options}")])
    typed, losses = nats_to_typed(headers)
    assert TypedHeaders.decode(typed.encode(HeaderForm.TYPED), HeaderForm.TYPED) == typed
    assert losses == []


def test_a_number_behind_a_name_may_make_it_too_long() -> None:
    name = "n" * 253
    typed, losses = nats_to_typed(Headers([(f"{name}#9", "v"), *[(name, str(number)) for number in range(9)]]))
    assert len(typed) == 9
    assert losses == [Loss(name, "the name has 256 bytes, Iggy takes 255")]


def test_repeated_names_become_numbered_keys_and_repeat_again() -> None:
    headers = Headers([("a", "1"), ("b", ""), ("a", "2"), ("a", "3")])
    typed, losses = nats_to_typed(headers)
    assert losses == []
    assert [(str(key), value) for key, value in typed.items()] == [
        ("a", HeaderValue.from_str("1")),
        ("b", EMPTY),
        ("a#2", HeaderValue.from_str("2")),
        ("a#3", HeaderValue.from_str("3")),
    ]
    assert typed_to_nats(typed) == headers


def test_what_is_too_long_is_left_out_and_reported_never_cut() -> None:
    headers = Headers([("long", "x" * 256), ("n" * 256, "y"), ("good", "x" * 255)])
    typed, losses = nats_to_typed(headers)
    assert list(typed) == ["good"]
    assert losses == [
        Loss("long", "the value has 256 bytes, Iggy takes 255"),
        Loss("n" * 256, "the name has 256 bytes, Iggy takes 255"),
    ]


@pytest.mark.parametrize(
    "mark",
    [
        "n uint8",
        "n",
        "n text",
        "n bool",
        "n string escaped extra more",
        "missing uint64",
        "n raw base64",
    ],
)
def test_a_marker_that_does_not_fit_its_header_is_ordinary_text(mark: str) -> None:
    typed, losses = nats_to_typed(Headers([("n", "0300"), ("Iggy-Typed", mark)]))
    if mark == "n raw base64":  # 0300 is base64: this one fits
        assert typed == TypedHeaders({"n": b"\xd3\x7d\x34"})
    else:
        assert typed == TypedHeaders({"n": "0300", "Iggy-Typed": mark})
    assert losses == []


def test_bytes_that_are_no_text_travel_as_raw() -> None:
    typed, losses = nats_to_typed(Headers([("a", b"\xff\xfe")]))
    assert (typed, losses) == (TypedHeaders({"a": b"\xff\xfe"}), [])


def test_keys_that_would_share_a_name_do_not() -> None:
    typed = TypedHeaders({"%20": "1", " ": "2", HeaderKey(b" ", HeaderKind.RAW): "3"})
    names = [name for name in typed_to_nats(typed) if name != "Iggy-Typed"]
    assert names == ["%20", "%20%", "%20%%"]
    assert nats_to_typed(typed_to_nats(typed)) == (typed, [])


def test_the_table_and_the_losses_name_every_kind_and_face() -> None:
    text = " ".join(" ".join(row) for row in MAPPING)
    for word in ("bool", "int32", "uint128", "float64", "raw", "string", "Binary", "Timestamp"):
        assert word in text
    assert {direction for direction, _, _ in LOSSES} >= {"NATS to Iggy", "Iggy to NATS", "CloudEvents to Iggy"}


def test_keys_that_are_no_names_are_escaped_each_for_itself_and_no_name_is_given_twice() -> None:
    typed = TypedHeaders({"a b": "1", "a b#2": "2"})
    assert [name for name, _ in typed_to_nats(typed).multi_items()[:2]] == ["a%20b", "a%20b#2"]
    assert nats_to_typed(typed_to_nats(typed)) == (typed, [])
    typed = TypedHeaders({HeaderKey.of_wire(HeaderKind.RAW, b"abc"): "1", "abc": "2"})
    assert [name for name, _ in typed_to_nats(typed).multi_items()[:2]] == ["abc%", "abc"]
    assert nats_to_typed(typed_to_nats(typed)) == (typed, [])
