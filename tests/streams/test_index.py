"""The sparse index points at or before every batch, and not far before."""

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from headwater.streams.index import SPACING, SparseIndex


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(64, 9000)), max_size=60))
def test_every_batch_is_found_at_or_a_little_before_its_place(batches: list[tuple[int, int]]) -> None:
    index = SparseIndex(4096)
    offset, position = 100, 4096
    placed = []
    for span, size in batches:
        index.add(offset, position)
        placed.append((offset, position, size))
        offset, position = offset + span, position + size
    for base, at, _ in placed:
        found, found_base = index.locate(base)
        assert found <= at < found + SPACING + max(size for _, _, size in placed)
        assert (found_base, found) in [(known, place) for known, place, _ in placed]
    assert len(index) <= 1 + (position - 4096) // SPACING


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(0, 3100))
def test_the_entry_of_any_offset_is_the_last_that_begins_there_or_before(spans: list[int], wanted: int) -> None:
    index, offset = SparseIndex(4096), 100
    for number, span in enumerate(spans):
        index.add(offset, 4096 * (number + 1))
        offset += span
    for each in (0, 99, 100, wanted, offset - 1, offset, 1 << 40):
        assert index.entry(each) == bisect_right(index.offsets, each) - 1


def test_an_empty_index_points_at_the_start() -> None:
    assert SparseIndex(4096).locate(7) == (4096, 0)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1000, 9000)), max_size=60), st.integers(-1, 51))
def test_no_record_below_the_offset_for_a_time_is_as_young(batches: list[tuple[int, int]], wanted: int) -> None:
    index = SparseIndex(4096)
    position = 4096
    for offset, (time, size) in enumerate(batches):
        index.add(offset, position, time, time)
        position += size
    start = index.offset_before(wanted)
    assert all(time < wanted for time, _ in batches[:start])
    copy = SparseIndex.restored(4096, index.offsets, index.positions, index.times, index.latest)
    assert copy.offset_before(wanted) == start
