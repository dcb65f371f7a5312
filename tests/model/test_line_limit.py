"""A log gets a bounded number of lines of one kind, which count every event."""

from headwater.model.line_limit import LineLimit


def test_a_period_has_its_lines_and_the_next_one_counts_what_had_none() -> None:
    limit = LineLimit(10, lines=2)
    assert [limit.due(now) for now in (0, 3, 5, 9)] == [1, 1, 0, 0]
    assert [limit.due(now) for now in (10, 11, 19)] == [3, 1, 0]
    assert limit.due(100) == 2


def test_a_period_begins_with_its_first_line() -> None:
    limit = LineLimit(1.0)
    assert [limit.due(now) for now in (0.9, 1.0, 1.8, 1.95, 2.0)] == [1, 0, 0, 3, 0]


def test_events_may_come_several_at_a_time() -> None:
    limit = LineLimit(1_000_000_000)
    assert [limit.due(now, 3) for now in (5, 6, 1_000_000_005)] == [3, 0, 6]
