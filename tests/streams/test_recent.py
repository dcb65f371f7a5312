"""The cache of recent batches: bounded, consecutive, and never in the way of older ones."""

from headwater.streams.log_format import BatchBuilder, BatchHeader
from headwater.streams.recent import OBJECT_COST, RecentBatches


def batch(base: int, records: int = 1, size: int = 100) -> tuple[BatchHeader, bytes]:
    builder = BatchBuilder(base)
    for _ in range(records):
        builder.append(b"", b"", bytes(size), 0)
    header, _, body = builder.encode(b"identity")
    return header, body


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


def test_the_batch_of_an_offset_is_found_or_none() -> None:
    recent = RecentBatches(10_000)
    recent.add(*batch(10, 5))
    recent.add(*batch(20, 5))
    held = {offset: recent.at(offset) for offset in (9, 10, 14, 15, 19, 20, 24, 25)}
    assert {offset: found[0].base_offset for offset, found in held.items() if found} == {10: 10, 14: 10, 20: 20, 24: 20}


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
