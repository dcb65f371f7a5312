"""The column of typed headers: what the objects say of each block, whatever is in it."""

from array import array
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.columns.typed_columns import TypedDecoder, TypedMap, typed_headers
from headwater.model.typed_header import HeaderKey, HeaderKind, HeaderValue
from headwater.model.typed_headers import HeaderForm, TypedHeaders
from headwater.wire.columns import Text

KEYS = st.one_of(
    st.sampled_from(["key", "ce-id", "a#2", "Key:", "ключ", "50%", "1"]).map(HeaderKey),
    st.builds(
        HeaderKey.of_wire, st.sampled_from([HeaderKind.UINT8, HeaderKind.RAW]), st.binary(min_size=1, max_size=3)
    ),
)
VALUES = st.one_of(
    st.builds(HeaderValue.from_str, st.sampled_from(["v", " v", "v\t", "a b", "é", "a\r\nb: c", "%", "x" * 255, "\0"])),
    st.integers(-(1 << 127), (1 << 128) - 1).map(HeaderValue.of),
    st.builds(HeaderValue.from_int64, st.integers(-(1 << 63), (1 << 63) - 1)),
    st.builds(HeaderValue.from_uint64, st.integers(0, (1 << 64) - 1)),
    st.builds(HeaderValue.from_int8, st.integers(-128, 127)),
    st.builds(HeaderValue.from_float32, st.floats(width=32)),
    st.builds(HeaderValue.from_float64, st.floats()),
    st.builds(HeaderValue.from_raw, st.binary(min_size=1, max_size=5)),
    st.builds(HeaderValue.of_wire, st.sampled_from(list(HeaderKind)), st.binary(min_size=1, max_size=9)),
)
BLOCKS = st.one_of(
    st.lists(st.tuples(KEYS, VALUES), max_size=4).map(
        lambda pairs: b"".join(TypedHeaders([pair]).encode(HeaderForm.TYPED) for pair in pairs)  # a key may come twice
    ),
    st.binary(max_size=30),
)


def decoded(blocks: list[bytes]) -> tuple[TypedDecoder, TypedMap]:
    decoder, ends = TypedDecoder(), array("i", [0, *accumulate(map(len, blocks))])
    return decoder, decoder.decode(Text(memoryview(bytearray(b"".join(blocks))), memoryview(ends)))


def values(text: Text) -> list[bytes]:
    return [bytes(text.data[a:b]) for a, b in zip(text.offsets, text.offsets[1:], strict=False)]


def rows(found: TypedMap) -> list[dict[str, tuple[str, str, bytes]] | None]:
    keys, kinds, texts, raws = map(values, (found.keys, found.kinds, found.values, found.raws))
    spans = zip(found.entries, found.entries[1:], strict=False)
    return [
        None
        if row in found.unmapped
        else {keys[at].decode(): (kinds[at].decode(), texts[at].decode(), raws[at]) for at in range(a, b)}
        for row, (a, b) in enumerate(spans)
    ]


@given(st.lists(BLOCKS, min_size=1, max_size=5))
@example([b"\x02\x01\x00\x00\x00k\x63\x01\x00\x00\x00v", b""])
def test_every_block_becomes_what_the_objects_say(blocks: list[bytes]) -> None:
    _, found = decoded(blocks)
    assert rows(found) == [typed_headers(block) for block in blocks]
    assert len(values(found.keys)) == len({(row, key) for row, had in enumerate(rows(found)) for key in had or ()})


def test_typed_headers_keep_kind_text_and_bytes() -> None:
    source: dict[str, HeaderValue | str | bool] = {"a": "x", "n": HeaderValue.from_uint64(7), "Key:": True}
    block = TypedHeaders(source).encode(HeaderForm.TYPED)
    assert typed_headers(block) == {
        "a": ("string", "x", b"x"),
        "n": ("uint64", "7", (7).to_bytes(8, "little")),
        "Key:": ("bool", "true", b"\x01"),
    }


@pytest.mark.parametrize(
    "value",
    [
        "text",
        " é",
        True,
        -7,
        1 << 63,
        0.1,
        HeaderValue.from_float32(0.5),
        b"\x00\xff",
        HeaderValue.from_int64(-(1 << 63)),
        HeaderValue.from_raw(b"\0"),
    ],
)
def test_compiled_the_usual_kinds_need_no_reference(value: HeaderValue | str | bool | int | float | bytes) -> None:
    decoder, found = decoded([TypedHeaders({"ключ": value}).encode(HeaderForm.TYPED)])
    assert decoder.scanned == decoder.scans
    assert not found.unmapped


def test_very_many_headers_are_read_by_the_reference() -> None:
    block = TypedHeaders({f"k{number}": "v" for number in range(100)}).encode(HeaderForm.TYPED)
    decoder, found = decoded([block])
    assert decoder.scanned == 0
    assert rows(found) == [typed_headers(block)]
