"""Polled batches as columns: the same rows as the objects say, whatever the headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.columns.iggy_columns import IggyColumns, IggyDecoder
from headwater.errors import RemoteProtocolError
from headwater.iggy_wire.batches import Part, build, build_stored
from headwater.model.header_mapping import MARKER, typed_to_nats
from headwater.model.headers import Headers
from headwater.model.typed_header import HeaderKey, HeaderKind, HeaderValue
from headwater.model.typed_headers import HeaderForm, TypedHeaders
from headwater.streams.iggy_batch import stamp
from headwater.wire.columns import Text

KEYS = st.one_of(
    st.sampled_from(["key", "ce-id", "a#2", "a", "Key:", "ключ", "50%"]),
    st.builds(HeaderKey.of_wire, st.sampled_from([HeaderKind.INT8, HeaderKind.RAW]), st.binary(min_size=1, max_size=3)),
)
VALUES = st.one_of(
    st.builds(HeaderValue.from_str, st.sampled_from(["v", " v", "v ", "a b", "é", "a\r\nb: c", "%", "x" * 255])),
    st.builds(HeaderValue.from_bool, st.booleans()),
    st.integers(-(1 << 127), (1 << 128) - 1).map(HeaderValue.of),
    st.builds(HeaderValue.from_int8, st.integers(-128, 127)),
    st.builds(HeaderValue.from_int32, st.integers(-(1 << 31), (1 << 31) - 1)),
    st.builds(HeaderValue.from_float64, st.floats()),
    st.builds(HeaderValue.from_raw, st.binary(min_size=1, max_size=5)),
    st.builds(HeaderValue.of_wire, st.sampled_from(list(HeaderKind)), st.binary(min_size=1, max_size=9)),
)


def decoder(start: int = 0, end: int = 1 << 40) -> IggyDecoder:
    return IggyDecoder(start, end, with_map=True, with_blocks=True, with_typed=True)


def values(text: Text) -> list[bytes]:
    return [bytes(text.data[a:b]) for a, b in zip(text.offsets, text.offsets[1:], strict=False)]


def maps(taken: IggyColumns) -> list[dict[str, list[str]]]:
    header_map = taken.columns.header_map
    assert header_map is not None
    names, items = values(header_map.names), values(header_map.values)
    return [
        {
            names[entry].decode(): [
                value.decode() for value in items[header_map.lists[entry] : header_map.lists[entry + 1]]
            ]
            for entry in range(a, b)
        }
        for a, b in zip(header_map.entries, header_map.entries[1:], strict=False)
    ]


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=4), min_size=1, max_size=4))
def test_any_typed_headers_become_what_the_mapping_says(rows: list[dict[str, HeaderValue]]) -> None:
    typed = [TypedHeaders(row) for row in rows]
    parts = [
        Part(bytes(15) + b"\x01", b"p%d" % n, each.encode(HeaderForm.TYPED), 100 + n) for n, each in enumerate(typed)
    ]
    body = bytearray(build_stored(parts, range(7, 7 + len(parts)), 3, 1_000_000))
    reader = decoder()
    assert reader.feed(body, 0, len(body)) == len(parts)
    taken = reader.take_rows()
    assert list(taken.columns.sequences) == list(range(7, 7 + len(parts)))
    assert list(taken.columns.timestamps) == [1_000_000] * len(parts)
    assert list(taken.origins) == [100 + n for n in range(len(parts))]
    assert values(taken.columns.payloads) == [b"p%d" % n for n in range(len(parts))]
    assert values(taken.ids) == [b"01" + b"0" * 30] * len(parts)
    assert taken.typed is not None
    assert values(taken.typed) == [part.headers for part in parts]
    for found, each in zip(maps(taken), typed, strict=True):
        expected = Headers([pair for pair in typed_to_nats(each).multi_items() if pair[0] != MARKER])
        grouped: dict[str, list[str]] = {}
        for name, value in expected.multi_items():
            grouped.setdefault(name, []).append(value)
        assert found == grouped


def test_rows_outside_of_the_range_and_rows_seen_before_are_left_out() -> None:
    body = bytearray(build([Part(bytes(16), b"%d" % n, b"", 1) for n in range(10)])[0])
    stamp(body, 0, 0, 100, 5)
    reader = decoder(103, 107)
    assert reader.feed(body, 0, len(body)) == 10
    assert reader.complete
    assert list(reader.take_rows().columns.sequences) == [103, 104, 105, 106]
    assert reader.feed(body, 0, len(body)) == 10
    assert reader.take_rows().columns.rows == 0


def test_a_block_that_is_none_is_a_row_with_a_reason() -> None:
    parts = [Part(bytes(16), b"a", b"\x02\x01\x00\x00\x00k\x63\x01\x00\x00\x00v", 1), Part(bytes(16), b"b", b"", 1)]
    body = bytearray(build(parts)[0])
    reader = decoder()
    reader.feed(body, 0, len(body))
    taken = reader.take_rows()
    assert taken.columns.rows == 2
    assert taken.columns.unmapped == [0]
    assert "kind" in taken.columns.header_errors[0][1]


@pytest.mark.parametrize("at", [0, 1, 255, 256, 300, -1])
def test_bytes_that_are_no_batches_are_refused(at: int) -> None:
    body = bytearray(build([Part(bytes(16), b"x" * 50, b"", 1) for _ in range(3)])[0])
    cut = body[:at] if at else bytearray(256) + body
    if cut:
        with pytest.raises(RemoteProtocolError):
            decoder().feed(cut, 0, len(cut))
