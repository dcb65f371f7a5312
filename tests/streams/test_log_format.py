"""The codec: what goes in comes out, every flipped bit is seen, and the layout is the one that the specification draws."""

import struct
from pathlib import Path

import pytest
from google_crc32c import extend
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import CorruptLog
from headwater.streams import log_format as f
from headwater.streams.head_page import HEAD_PAGE_SIZE

IDENTITY = b"identity"
RECORDS = st.lists(
    st.tuples(
        st.binary(max_size=40),
        st.binary(max_size=60),
        st.binary(max_size=200),
        st.integers(-(1 << 63), (1 << 63) - 1),
    ),
    min_size=1,
    max_size=20,
)
Record = tuple[bytes, bytes, bytes, int]


def build(records: list[Record], base_offset: int = 0) -> f.BatchBuilder:
    builder = f.BatchBuilder(base_offset)
    for number, record in enumerate(records):
        assert builder.append(*record) == base_offset + number
    return builder


@given(RECORDS, st.integers(0, 1 << 62))
def test_records_come_back_from_a_batch_as_they_went_in(records: list[Record], base_offset: int) -> None:
    builder = build(records, base_offset)
    header, head, body = builder.encode(IDENTITY)
    assert len(head) == f.BATCH_HEADER_SIZE
    assert len(body) == builder.size == header.body_size
    assert f.decode_batch_header(b"junk" + head, 4, IDENTITY) == header
    assert f.body_is_intact(header, body)
    assert (header.base_offset, header.end_offset) == (base_offset, base_offset + len(records))
    assert (header.first_timestamp_ns, header.last_timestamp_ns) == (records[0][3], records[-1][3])
    found: list[f.StoredRecord] = []
    f.read_records(body, base_offset, base_offset, 1 << 30, 1 << 40, found)
    assert [(r.subject, r.header_block, r.payload, r.timestamp_ns) for r in found] == records
    assert [r.offset for r in found] == list(range(base_offset, base_offset + len(records)))


@given(st.integers(0, 1 << 62), st.lists(st.integers(f.APART, 3 * f.APART), min_size=1, max_size=4), st.data())
def test_large_records_are_written_in_pieces_and_are_the_same_as_joined(
    base_offset: int, sizes: list[int], data: st.DataObject
) -> None:
    blocks = [data.draw(st.binary(max_size=9)) for _ in sizes]
    records = [(b"s%d" % at, blocks[at], bytes([at]) * size, at) for at, size in enumerate(sizes)]
    header, head, pieces = build(records, base_offset).encode_apart(IDENTITY)
    assert [piece for piece in pieces if len(piece) >= f.APART] == [payload for _, _, payload, _ in records]
    body = b"".join(pieces)
    assert build(records, base_offset).encode(IDENTITY) == (header, head, body)
    assert f.body_is_intact(header, body)
    at = 0
    for number, (subject, block, payload, _) in enumerate(records):
        end = at + f.RECORD_HEAD_SIZE + len(subject) + len(block) + len(payload)
        seed = f.record_seed(IDENTITY, (base_offset + number) >> 32)
        assert body[at : at + 4] == f.HEADER_CRC.pack(extend(seed, body[at + 4 : end]))
        at = end


@given(RECORDS, st.data())
def test_any_part_of_a_batch_can_be_read(records: list[Record], data: st.DataObject) -> None:
    _, _, body = build(records).encode(IDENTITY)
    start = data.draw(st.integers(0, len(records)))
    count = data.draw(st.integers(1, len(records) + 1))
    found: list[f.StoredRecord] = []
    taken = f.read_records(body, 0, start, count, 1 << 40, found)
    assert [r.offset for r in found] == list(range(start, min(start + count, len(records))))
    size = sum(len(r.subject) + len(r.header_block) + len(r.payload) for r in found)
    assert taken == (size if start + count >= len(records) else -1 - size)


@given(st.lists(st.tuples(st.sampled_from([b"", b"a", b"b", b"ab", b"aab"]), st.binary(max_size=9))), st.data())
def test_a_cursor_finds_the_records_of_a_subject(made: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    _, _, body = build([(subject, b"", payload, at) for at, (subject, payload) in enumerate(made)], 5).encode(IDENTITY)
    wanted = data.draw(st.sampled_from([b"", b"a", b"ab", b"c"]))
    cursor = f.RecordCursor(body, 0, len(body), 5)
    found = []
    while cursor.advance_to(wanted):
        found.append((cursor.offset, cursor.subject(), cursor.payload()))
    assert found == [(5 + at, subject, payload) for at, (subject, payload) in enumerate(made) if subject == wanted]
    assert not cursor.advance_to(wanted)


@given(st.integers(1, 35))
def test_a_cursor_that_looks_for_a_subject_never_leaves_the_body(missing: int) -> None:
    _, _, body = build([(b"a", b"", b"payload", 1), (b"b", b"", b"payload", 2)]).encode(IDENTITY)
    cursor = f.RecordCursor(body, 0, len(body) - missing, 0)
    with pytest.raises(CorruptLog):
        cursor.advance_to(b"c")


@given(RECORDS, st.data())
def test_a_flipped_bit_in_a_batch_is_always_seen(records: list[Record], data: st.DataObject) -> None:
    _, head, body = build(records, 77).encode(IDENTITY)
    whole = bytearray(head + body)
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    header = f.decode_batch_header(bytes(whole), 0, IDENTITY)
    assert header is None or not f.body_is_intact(header, bytes(whole[f.BATCH_HEADER_SIZE :]))


@given(st.binary(max_size=200), st.integers(0, 64))
def test_garbage_is_no_batch(garbage: bytes, at: int) -> None:
    assert f.decode_batch_header(garbage, at, IDENTITY) is None
    assert f.decode_batch_header(f.batch_marker(IDENTITY) + garbage, 0, IDENTITY) is None


@given(st.binary(max_size=300))
def test_walking_garbage_ends_or_raises_corrupt_log(garbage: bytes) -> None:
    cursor = f.RecordCursor(garbage, 0, len(garbage), 5)
    try:
        while cursor.advance():
            assert cursor.end <= len(garbage)
    except CorruptLog as error:
        assert error.value is not None


def test_a_cursor_outside_its_buffer_is_refused() -> None:
    with pytest.raises(ValueError, match="no records"):
        f.RecordCursor(b"short", 0, 6, 0)


def test_a_batch_of_another_log_or_of_a_newer_format_is_told_apart() -> None:
    header, head, _ = build([(b"s", b"", b"p", 1)]).encode(IDENTITY)
    assert f.decode_batch_header(head, 0, b"stranger") is None
    for at, name in ((16, "version"), (17, "dialect"), (18, "flags")):
        newer = bytearray(head)
        newer[at] ^= 4
        newer[12:16] = struct.pack("<I", crc32c(bytes(newer[16:])))
        with pytest.raises(CorruptLog, match=name):
            f.decode_batch_header(bytes(newer), 0, IDENTITY)
    assert header.dialect == f.DIALECT_NATS


@pytest.mark.parametrize(("count", "span", "base"), [(0, 0, 0), (0, 1, 0), (2, 1, 0), (1, 1, f.MAX_OFFSET)])
def test_a_header_whose_numbers_make_no_sense_is_no_batch(count: int, span: int, base: int) -> None:
    header = f.BatchHeader(f.DIALECT_NATS, 0, count, span, 0, base, 0, 0, 0)
    assert f.decode_batch_header(f.encode_batch_header(header, IDENTITY), 0, IDENTITY) is None


def test_records_are_values() -> None:
    record = f.StoredRecord(1, 2, b"s", b"h", b"p")
    assert record == f.StoredRecord(1, 2, b"s", b"h", b"p")
    assert hash(record) == hash(f.StoredRecord(1, 2, b"s", b"h", b"p"))
    assert record != f.StoredRecord(1, 2, b"s", b"h", b"q")
    assert repr(record) == "<StoredRecord 1 b's' header_block=1B payload=1B at=2>"


def test_the_specification_states_the_sizes_that_the_code_uses() -> None:
    text = (Path(__file__).parents[2] / "docs" / "log-format.md").read_text()
    assert f"## Batch header, {f.BATCH_HEADER_SIZE} bytes" in text
    assert f"## Record of dialect 0 (NATS), {f.RECORD_HEAD_SIZE} bytes" in text
    assert f"## Head page, {HEAD_PAGE_SIZE} bytes" in text
    assert f"version {f.VERSION}" in text


def test_a_batch_is_these_bytes() -> None:
    _, head, body = build([(b"a.b", b"", b"hi", 1)], 5).encode(IDENTITY)
    assert body[4:18].hex() == "0100000000000000" + "05000000" + "0300"
    assert body[18:].hex() == f.record_tag(IDENTITY).to_bytes(2, "little").hex() + "0000000002000000612e626869"
    assert int.from_bytes(body[:4], "little") == crc32c(IDENTITY + bytes(4) + body[4:])
    assert head[:12] == b"HWB1identity"
    assert head[16:56].hex() == "02000000010000000100000021000000" + "0500000000000000" + "0100000000000000" * 2


def test_a_record_of_version_1_is_read() -> None:
    body = bytes.fromhex("010000000000000002000000030000000000000002000000612e626869")
    cursor = f.RecordCursor(body, 0, len(body), (1 << 32) + 5, 1)
    assert cursor.advance()
    assert cursor.record() == f.StoredRecord((1 << 32) + 7, 1, b"a.b", b"", b"hi")
    assert not cursor.advance()


def test_a_batch_may_cross_the_low_half_of_an_offset() -> None:
    base = (1 << 32) - 1
    _, _, body = build([(b"s", b"", b"p", 1)] * 3, base).encode(IDENTITY)
    found: list[f.StoredRecord] = []
    f.read_records(body, base, base, 10, 1 << 20, found)
    assert [record.offset for record in found] == [base, base + 1, base + 2]


def test_encoding_twice_gives_the_same_bytes() -> None:
    builder = build([(b"s", b"NATS/1.0\r\n\r\n", b"p" * 2000, 1), (b"t", b"", b"", 2)], 5)
    assert builder.encode(IDENTITY) == builder.encode(IDENTITY)
