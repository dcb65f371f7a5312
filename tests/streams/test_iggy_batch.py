import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.streams import iggy_batch
from headwater.streams.iggy_batch import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    FRAME,
    FRAME_SIZE,
    batch_fields,
    check_frames,
    checksums_of,
    frames,
    skip_frames,
    stamp,
)

HEADER = b"\2" + struct.pack("<I", 1) + b"k" + b"\2" + struct.pack("<I", 1) + b"v"
contents = st.lists(
    st.tuples(st.binary(min_size=1, max_size=20), st.integers(0, 3).map(lambda count: HEADER * count)),
    min_size=1,
    max_size=8,
)


def batch_of(messages: list[tuple[bytes, bytes]]) -> bytearray:
    body = bytearray(BATCH_HEADER_SIZE)
    for delta, (payload, headers) in enumerate(messages):
        body += FRAME.pack(delta + 100, bytes(16), delta, 0, len(headers), len(payload), 0) + payload + headers
    BATCH_HEADER.pack_into(body, 0, 0, 0, 0, 0, len(body), 0, len(messages))
    return body


def verdict(body: bytearray, count: int, end: int | None = None) -> int:
    return check_frames(body, BATCH_HEADER_SIZE, len(body) if end is None else end, count, bytearray(8 * count))


@given(contents)
def test_a_batch_in_order_passes_and_can_be_walked(messages: list[tuple[bytes, bytes]]) -> None:
    body = batch_of(messages)
    checksums = bytearray(8 * len(messages))
    assert check_frames(body, BATCH_HEADER_SIZE, len(body), len(messages), checksums) == 0
    assert struct.unpack(f"<{len(messages)}Q", checksums) == tuple(range(100, 100 + len(messages)))
    stored = bytes(body)
    found = frames(stored)
    assert [(stored[f.payload_at : f.headers_at], stored[f.headers_at : f.end]) for f in found] == messages
    assert [frame.offset_delta for frame in found] == list(range(len(messages)))
    for index, frame in enumerate(found):
        assert skip_frames(stored, BATCH_HEADER_SIZE, len(stored), index) == frame.start
    assert skip_frames(stored, BATCH_HEADER_SIZE, len(stored), 99) == len(stored)
    assert checksums_of(stored, BATCH_HEADER_SIZE, len(stored)) == checksums


@given(contents, st.data())
def test_a_changed_byte_never_makes_the_walk_leave_the_batch(
    messages: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    body = batch_of(messages)
    at = data.draw(st.integers(BATCH_HEADER_SIZE, len(body) - 1))
    body[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(BATCH_HEADER_SIZE, len(body)))
    if verdict(body, len(messages), cut) == 0:
        found = frames(bytes(body[:cut]))
        assert len(found) == len(messages) and found[-1].end == cut


def broken(offset: int, layout: str, value: int, headers: bytes = HEADER) -> int:
    body = batch_of([(b"payload", headers), (b"x", b"")])
    struct.pack_into("<" + layout, body, BATCH_HEADER_SIZE + offset, value)
    return verdict(body, 2)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (broken(24, "I", 1), iggy_batch.BAD_OFFSET),
        (broken(32, "I", 5000), iggy_batch.BAD_TILING),
        (broken(36, "I", 0xFFFFFFFF), iggy_batch.BAD_TILING),
        (broken(40, "Q", 1 << 40), iggy_batch.BAD_RESERVED),
        (broken(FRAME_SIZE + 7, "B", 0), iggy_batch.BAD_KIND),
        (broken(FRAME_SIZE + 7, "B", 16), iggy_batch.BAD_KIND),
        (broken(FRAME_SIZE + 8, "I", 0), iggy_batch.BAD_KEY),
        (broken(FRAME_SIZE + 8, "I", 256), iggy_batch.BAD_KEY),
        (broken(FRAME_SIZE + 12, "B", 0xFF), iggy_batch.BAD_KEY),
        (broken(FRAME_SIZE + 14, "I", 2), iggy_batch.BAD_VALUE),
        (broken(0, "Q", 0, headers=HEADER[:6]), iggy_batch.BAD_VALUE),
        (broken(0, "Q", 0, headers=HEADER[:3]), iggy_batch.BAD_KEY),
        (broken(0, "Q", 0, headers=HEADER * 9000), iggy_batch.BIG_HEADERS),
        (broken(0, "Q", 0), 0),
    ],
)
def test_each_fault_has_its_verdict(wrong: int, expected: int) -> None:
    assert wrong == expected


def test_counts_and_empty_batches_are_told() -> None:
    body = batch_of([(b"a", b""), (b"b", b"")])
    assert verdict(body, 1) == verdict(body, 3) == iggy_batch.BAD_COUNT
    assert verdict(batch_of([(b"", b"")]), 1) == iggy_batch.NO_PAYLOAD
    assert verdict(body, 2, len(body) - 1) == iggy_batch.BAD_TILING
    assert verdict(body, 2, BATCH_HEADER_SIZE + 10) == iggy_batch.BAD_TILING


def test_the_stamp_is_24_bytes() -> None:
    body = batch_of([(b"a", b"")])
    before = bytes(body)
    stamp(body, 0, 3, 1000, 77)
    assert batch_fields(body)[:3] == (3, 1000, 77)
    assert body[24:] == before[24:]
