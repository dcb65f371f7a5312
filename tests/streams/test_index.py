"""The sparse index points at or before every batch, and not far before."""

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


def test_an_empty_index_points_at_the_start() -> None:
    assert SparseIndex(4096).locate(7) == (4096, 0)
