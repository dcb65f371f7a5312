"""What has to go: never more than the limits demand, never less, always the oldest."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.retention import Limits, Weighed, refusal, surplus

RECORDS = st.lists(st.builds(Weighed, st.integers(1, 50), st.integers(0, 100)), max_size=20)
LIMITS = st.builds(Limits, st.integers(-1, 15), st.integers(-1, 400), st.integers(0, 80))


def fits(limits: Limits, records: list[Weighed], now: int) -> bool:
    count, size = len(records), sum(record.size for record in records)
    return not (
        0 < limits.max_records < count
        or 0 < limits.max_bytes < size
        or (limits.max_age_ns > 0 and bool(records) and records[0].timestamp_ns <= now - limits.max_age_ns)
    )


@given(LIMITS, RECORDS, st.integers(0, 200))
def test_the_fewest_of_the_oldest_go(limits: Limits, records: list[Weighed], now: int) -> None:
    gone = surplus(limits, len(records), sum(record.size for record in records), records, now)
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
    assert surplus(Limits(), 5, 500, [Weighed(100, 0)] * 5, 1 << 60) == 0
