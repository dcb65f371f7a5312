"""Tombstones come back as they went in, in batches that a reader of records passes over."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from headwater.streams import tombstones
from headwater.streams.log_format import body_is_intact, decode_batch_header
from headwater.streams.tombstones import RANGES_PER_BATCH, decode_tombstones, encode_tombstones

IDENTITY = b"identity"
RANGES = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 50)).map(lambda pair: (pair[0], pair[0] + pair[1])))


@given(RANGES)
def test_ranges_come_back(ranges: list[tuple[int, int]]) -> None:
    found = []
    for header, head, body in encode_tombstones([*chain.from_iterable(ranges)], 2000, 5, IDENTITY):
        assert decode_batch_header(head, 0, IDENTITY) == header
        assert body_is_intact(header, body)
        assert not header.holds_records
        assert header.end_offset == 2000
        found += decode_tombstones(header, body)
    assert found == ranges


def test_many_ranges_take_several_batches_and_none_takes_one() -> None:
    assert len(encode_tombstones([0, 1] * (RANGES_PER_BATCH + 1), 9, 0, IDENTITY)) == 2
    ((header, _, body),) = encode_tombstones([], 9, 0, IDENTITY)
    assert (header.record_count, header.offset_span, body) == (0, 0, b"")


def test_what_makes_no_sense_is_passed_over() -> None:
    ((header, _, body),) = encode_tombstones([5, 5, 7, 6, 0, 10, 2, 3], 9, 0, IDENTITY)
    assert decode_tombstones(header, body) == [(2, 3)]
    assert tombstones.RANGE.size == 16
