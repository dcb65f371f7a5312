"""The cache of recent batches: bounded, consecutive, and never in the way of older ones."""

import pytest

from headwater.streams.log_format import APART, DIALECT_IGGY, BatchBuilder, BatchHeader
from headwater.streams.recent import MARK_EVERY, OBJECT_COST, RecentBatches
from headwater.streams.segment import LARGE_BATCH


def batch(base: int, records: int = 1, size: int = 100) -> tuple[BatchHeader, list[bytes]]:
    builder = BatchBuilder(base)
    for _ in range(records):
        builder.append(b"", b"", bytes(size), 0)
    header, _, body = builder.encode_apart(b"identity")
    return header, body


def test_a_large_batch_is_found_whole_though_it_was_added_in_pieces() -> None:
    recent = RecentBatches(1 << 20)
    header, pieces = batch(7, 3, APART)
    body = b"".join(pieces)
    assert len(pieces) > 1
    recent.add(header, pieces)
    found = recent.record(8)
    assert found is not None and found.payload == bytes(APART)
    assert recent.since(7, 1) == [(header, body)]


def test_it_holds_the_newest_batches_up_to_its_limit() -> None:
    recent = RecentBatches(10_000)
    for base in range(100):
        recent.add(*batch(base))
        assert recent.size <= 10_000
    held = [base for base in range(100) if recent.since(base, 1)]
    assert held == list(range(held[0], 100))
    assert len(held) >= 7_000 // (124 + OBJECT_COST)


def test_the_newest_batch_stays_whatever_its_size() -> None:
    recent = RecentBatches(1000)
    recent.add(*batch(0))
    recent.add(*batch(1, size=5000))
    assert recent.since(0, 1) is None
    assert [header.base_offset for header, _ in recent.since(1, 1) or []] == [1]


def test_the_record_of_an_offset_is_found_or_none() -> None:
    recent = RecentBatches(10_000)
    recent.add(*batch(10, 5))
    recent.add(*batch(20, 5))
    held = {offset: recent.record(offset) for offset in (9, 10, 14, 15, 19, 20, 24, 25)}
    assert {offset: found.offset for offset, found in held.items() if found} == {
        each: each for each in (10, 14, 20, 24)
    }


@pytest.mark.parametrize("records", [MARK_EVERY - 1, MARK_EVERY, MARK_EVERY + 1, 3 * MARK_EVERY, 3 * MARK_EVERY + 1])
def test_every_record_of_a_long_batch_is_found_in_any_order(records: int) -> None:
    recent = RecentBatches(1 << 20)
    recent.add(*batch(100, records, size=7))
    for offset in [*range(99 + records, 99, -1), *range(100, 100 + records)]:
        found = recent.record(offset)
        assert found is not None and found.offset == offset
    assert recent.record(100 + records) is None


def test_what_is_dropped_is_not_found_by_its_old_marks() -> None:
    recent = RecentBatches(4000)
    recent.add(*batch(0, 20))
    assert recent.record(7) is not None
    recent.add(*batch(20, 40))
    assert recent.record(7) is None
    assert recent.record(33) is not None


def test_older_offsets_are_none_and_offsets_behind_the_end_are_empty() -> None:
    recent = RecentBatches(10_000)
    assert recent.since(0, 1) is None
    recent.add(*batch(10, 5))
    recent.add(*batch(20, 5))
    assert recent.since(9, 1) is None
    assert [header.base_offset for header, _ in recent.since(14, 1 << 20) or []] == [10, 20]
    assert [header.base_offset for header, _ in recent.since(15, 1 << 20) or []] == [20], "in a gap"
    assert recent.since(25, 1) == []


def test_no_more_is_given_than_was_asked_for() -> None:
    recent = RecentBatches(100_000)
    for base in range(20):
        recent.add(*batch(base))
    assert len(recent.since(0, 300) or []) == 3


def test_a_limit_of_zero_keeps_nothing() -> None:
    recent = RecentBatches(0)
    recent.add(*batch(0))
    assert recent.since(0, 1) is None


def test_a_large_batch_of_iggys_is_not_kept_and_nothing_before_it() -> None:
    def of_iggy(base: int, size: int) -> tuple[BatchHeader, list[bytes]]:
        return BatchHeader(DIALECT_IGGY, 0, 1, 1, size, base, 0, 0, 0), [bytes(size)]

    recent = RecentBatches(1 << 20)
    recent.add(*of_iggy(0, LARGE_BATCH - 1))
    assert recent.since(0, 1) is not None
    recent.add(*of_iggy(1, LARGE_BATCH))
    assert recent.since(0, 1) is None and recent.since(1, 1) is None and recent.size == 0
    recent.add(*of_iggy(2, 10))
    found = recent.since(2, 1)
    assert found is not None and [header.base_offset for header, _ in found] == [2]
