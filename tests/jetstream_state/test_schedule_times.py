"""When schedules are due: once, at intervals, by cron; and what happens to turns that were missed."""

import pytest

from headwater.errors import JetStreamError
from headwater.jetstream_state.schedule_times import next_turn
from headwater.model.timestamps import SECOND, parse_time


def block(pattern: str, zone: str | None = None) -> bytes:
    more = f"Nats-Schedule-Time-Zone: {zone}\r\n" if zone is not None else ""
    return f"NATS/1.0\r\nNats-Schedule: {pattern}\r\n{more}\r\n".encode()


def turn(pattern: str, since: str, now: str = "", zone: str | None = None) -> str:
    found = next_turn(block(pattern, zone), parse_time(since), parse_time(now or since))
    assert found is not None
    assert found.at == parse_time(found.text)
    return found.text if found.repeats else f"once {found.text}"


def test_an_interval_counts_from_the_full_second() -> None:
    assert turn("@every 2s", "2026-01-01T00:00:00.4Z") == "2026-01-01T00:00:02Z"
    assert turn("@every 2s", "2026-01-01T00:00:00.5Z") == "2026-01-01T00:00:03Z"
    assert turn("@every 1s500ms", "2026-01-01T00:00:00Z") == "2026-01-01T00:00:01.5Z"


def test_turns_that_were_missed_are_not_made_up_for() -> None:
    assert turn("@every 1s", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00.2Z") == "2026-01-02T00:00:01Z"
    assert turn("@daily", "2026-01-01T00:00:00Z", "2026-02-02T10:00:00Z") == "2026-02-03T00:00:00Z"


def test_a_time_is_due_once_also_in_the_past() -> None:
    assert turn("@at 2020-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z") == "once 2020-01-01T00:00:00Z"


def test_a_zone_is_named_by_its_offset() -> None:
    assert turn("0 0 12 * * *", "2026-07-01T11:00:00Z", zone="Europe/Berlin") == "2026-07-02T12:00:00+02:00"
    assert turn("0 0 12 * * *", "2026-07-01T11:00:00Z", zone="America/New_York") == "2026-07-01T12:00:00-04:00"
    assert turn("0 0 12 * * *", "2026-01-01T11:00:00Z", zone="Europe/London") == "2026-01-01T12:00:00Z"


def test_a_wrong_zone_is_refused_even_without_a_pattern() -> None:
    with pytest.raises(JetStreamError, match="time zone"):
        next_turn(b"NATS/1.0\r\nNats-Schedule-Time-Zone: Mars\r\n\r\n", 0, 0)


@pytest.mark.parametrize("pattern", ["@every 999ms", "@every x", "@at noon", "@at 2026-01-01T24:00:00Z", "* * * * *"])
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(JetStreamError, match="pattern"):
        next_turn(block(pattern), 0, 0)


def test_a_zone_is_for_cron_only() -> None:
    for pattern in ("@every 1s", "@at 2026-01-01T00:00:00Z"):
        with pytest.raises(JetStreamError, match="pattern"):
            next_turn(block(pattern, "UTC"), 0, SECOND)
