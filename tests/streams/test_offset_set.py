"""The set of offsets against Python's own."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headwater.streams.offset_set import BLOCK, OffsetSet

EDGE = st.one_of(st.integers(0, 40), st.integers(BLOCK - 20, BLOCK + 20), st.integers(3 * BLOCK - 9, 3 * BLOCK + 9))
RANGES = st.lists(st.tuples(EDGE, EDGE).map(lambda pair: (min(pair), max(pair))), max_size=12)


@given(RANGES, EDGE, EDGE)
def test_it_answers_as_a_set_would(ranges: list[tuple[int, int]], one: int, other: int) -> None:
    ours = OffsetSet()
    model: set[int] = set()
    for start, end in ranges:
        new = set(range(start, end)) - model
        assert ours.add(start, end) == len(new)
        model |= new
    assert len(ours) == len(model)
    low, high = sorted((one, other))
    inside = [offset for offset in range(low, high) if offset in model]
    assert ours.count(low, high) == len(inside)
    assert ours.touches(low, high) == bool(inside)
    assert (low in ours) == ours.has(low) == (low in model)
    for offset in (high, BLOCK - 1, BLOCK, 2 * BLOCK, low):
        assert ours.has(offset) == (offset in model)
    assert ours.next_outside(low) == next(offset for offset in range(low, 5 * BLOCK) if offset not in model)
    runs = list(ours.ranges(low, high))
    assert [offset for start, end in runs for offset in range(start, end)] == inside
    assert all(left[1] < right[0] for left, right in pairwise(runs)), "runs are as long as they can be"
    part = ours.part(low, high)
    assert list(part.ranges(0, 5 * BLOCK)) == runs
    assert len(part) == len(inside)
    several = [one, other, one, low + 1, high + 30, 2 * BLOCK]
    expected = [offset for offset in dict.fromkeys(several) if low <= offset < high and offset not in model]
    assert ours.add_each(several, low, high) == expected
    model.update(expected)
    assert len(ours) == len(model) and all(ours.has(offset) == (offset in model) for offset in several)


@given(RANGES, EDGE)
def test_what_is_below_may_be_forgotten_and_nothing_above_is(ranges: list[tuple[int, int]], limit: int) -> None:
    ours = OffsetSet()
    model: set[int] = set()
    for start, end in ranges:
        ours.add(start, end)
        model.update(range(start, end))
    ours.discard_below(limit)
    above = {offset for offset in model if offset >= limit}
    assert {offset for start, end in ours.ranges(limit, 5 * BLOCK) for offset in range(start, end)} == above
    assert len(ours) == len({offset for offset in model if offset // BLOCK >= limit // BLOCK})


def test_a_long_run_costs_a_shared_block() -> None:
    ours = OffsetSet()
    assert ours.add(5, 1_000_000) == 999_995
    assert ours.next_outside(7) == 1_000_000
    assert list(ours.ranges(0, 2_000_000)) == [(5, 1_000_000)]


def test_a_block_that_fills_one_by_one_is_full_and_goes_on_as_one() -> None:
    ours = OffsetSet()
    for offset in range(BLOCK + 3):
        assert ours.add_each([offset, offset], 0, 2 * BLOCK) == [offset]
        assert ours.next_outside(0) == offset + 1
    assert ours.add(0, BLOCK) == 0
    assert (len(ours), ours.count(0, 2 * BLOCK), list(ours.ranges(0, 9 * BLOCK))) == (
        BLOCK + 3,
        BLOCK + 3,
        [(0, BLOCK + 3)],
    )
    other = ours.part(7, BLOCK + 1)
    assert other.add(0, 7) == 7 and other.add_each([BLOCK + 1], 0, 2 * BLOCK) == [BLOCK + 1]
    assert (len(other), len(ours)) == (BLOCK + 2, BLOCK + 3)
    ours.discard_below(BLOCK)
    assert len(ours) == 3 and ours.add(1, 2) == 1 and ours.has(1) and not ours.has(2)
