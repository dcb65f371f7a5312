"""What has to go: never more than the limits demand, never less, always the oldest."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.jetstream_state.retention import Limits, Oldest, refusal
from headwater.streams.log import Log, LogOptions


class Weighed(NamedTuple):
    """One of the oldest records."""

    size: int
    timestamp_ns: int


RECORDS = st.lists(st.builds(Weighed, st.integers(31, 80), st.integers(0, 100)), max_size=20)
LIMITS = st.builds(Limits, st.integers(-1, 15), st.integers(-1, 700), st.integers(0, 80))


def stored(records: list[Weighed]) -> Log:
    """A log with records that weigh this much."""
    log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0), 1)
    for record in records:
        log.stage(b"s", b"", bytes(record.size - 31), record.timestamp_ns)
    if (batch := log.seal()) is not None:
        log.write(batch)
        log.publish(batch)
    return log


def surplus(limits: Limits, records: list[Weighed], now: int, removed: frozenset[int] = frozenset()) -> int:
    """How many have to go of those that were not removed otherwise."""
    log = stored(records)
    log.discard(*removed)
    left = [record for at, record in enumerate(records) if at not in removed]
    oldest, gone = Oldest(log, in_memory=False), 0
    while some := oldest.surplus(limits, len(left) - gone, sum(record.size for record in left[gone:]), now):
        assert [len(record.payload) + 31 for record in some] == [each.size for each in left[gone : gone + len(some)]]
        log.discard(*[record.offset for record in some])
        gone += len(some)
    return gone


def fits(limits: Limits, records: list[Weighed], now: int) -> bool:
    count, size = len(records), sum(record.size for record in records)
    return not (
        0 < limits.max_records < count
        or 0 < limits.max_bytes < size
        or (limits.max_age_ns > 0 and bool(records) and records[0].timestamp_ns <= now - limits.max_age_ns)
    )


@given(LIMITS, RECORDS, st.integers(0, 200), st.frozensets(st.integers(0, 19)))
def test_the_fewest_of_the_oldest_go(limits: Limits, records: list[Weighed], now: int, removed: frozenset[int]) -> None:
    gone = surplus(limits, records, now, removed)
    records = [record for at, record in enumerate(records) if at not in removed]
    assert fits(limits, records[gone:], now)
    assert not any(fits(limits, records[fewer:], now) for fewer in range(gone)), "fewer would have done"


@given(LIMITS, RECORDS, st.integers(1, 50))
def test_what_is_not_refused_fits(limits: Limits, records: list[Weighed], weight: int) -> None:
    size = sum(record.size for record in records)
    after = [*records, Weighed(weight, 0)]
    assert bool(refusal(limits, len(records), size, weight)) != fits(limits._replace(max_age_ns=0), after, 0) or (
        not fits(limits._replace(max_age_ns=0), records, 0)
    )


def test_without_limits_nothing_goes() -> None:
    assert not Limits().any
    assert surplus(Limits(), [Weighed(100, 0)] * 5, 1 << 60) == 0
