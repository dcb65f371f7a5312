"""Cron patterns: what the next time is, in any zone; and what is no pattern."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.cron import Cron, utc_offset, zone_named

BERLIN = "Europe/Berlin"


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


@pytest.mark.parametrize(
    ("pattern", "since", "expected"),
    [
        ("* * * * * *", "2026-01-01T00:00:00", "2026-01-01T00:00:01"),
        ("0 0 12 * * *", "2026-01-01T12:00:00", "2026-01-02T12:00:00"),
        ("30 5 * * * *", "2026-01-01T23:05:30", "2026-01-02T00:05:30"),
        ("@yearly", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("@weekly", "2026-11-22T00:00:00", "2026-11-29T00:00:00"),
        ("0 0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 0 31 * *", "2026-01-31T00:00:00", "2026-03-31T00:00:00"),
        ("0 0 0 13 * FRI", "2026-11-14T00:00:00", "2026-11-20T00:00:00"),
        ("0 0 0 13 * *", "2026-11-14T00:00:00", "2026-12-13T00:00:00"),
        ("0 0 0 */2 * MON", "2026-11-01T00:00:00", "2026-11-02T00:00:00"),
        ("0 0/20 8-9 ? jan-FEB mon", "2026-11-01T00:00:00", "2027-01-04T08:00:00"),
    ],
)
def test_the_next_time_is_the_first_that_matches(pattern: str, since: str, expected: str) -> None:
    assert Cron(pattern).after(at(since), utc_offset) == at(expected)


@pytest.mark.parametrize(
    ("pattern", "since", "expected"),
    [
        ("0 0 12 * * *", "2026-07-01T00:00:00", "2026-07-01T12:00:00"),
        ("0 30 2 * * *", "2026-03-28T12:00:00", "2026-03-30T02:30:00"),  # on the 29th there is no half past two
        ("0 30 2 * * *", "2026-10-25T00:00:00", "2026-10-25T02:30:00"),
        ("0 0 0 * * *", "2026-10-24T12:00:00", "2026-10-25T00:00:00"),
        ("0 0 0 * * *", "2026-10-25T12:00:00", "2026-10-26T00:00:00"),
    ],
)
def test_a_zone_says_when_a_clock_shows_it(pattern: str, since: str, expected: str) -> None:
    assert Cron(pattern).after(at(since, BERLIN), zone_named(BERLIN)) == at(expected, BERLIN)


@given(st.integers(0, 2**31), st.lists(st.integers(0, 59), min_size=1), st.lists(st.integers(0, 23), min_size=1))
def test_nothing_between_the_two_times_matches(since: int, minutes: list[int], hours: list[int]) -> None:
    found = Cron(f"0 {','.join(map(str, minutes))} {','.join(map(str, hours))} * * *").after(since, utc_offset)
    matching = [
        moment
        for moment in range(since + 1 + -(since + 1) % 60, since + 86_461, 60)
        if (local := datetime.fromtimestamp(moment, UTC)).minute in minutes and local.hour in hours
    ]
    assert found == matching[0]


@pytest.mark.parametrize(
    "pattern", ["0 0 0 30 2 *", "0 0 0 , 1 *", "* * * * *", "60 * * * * *", "x", "", "0 0 0 * * 7"]
)
def test_what_is_no_pattern_or_never_due_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError):
        Cron(pattern).after(0, utc_offset)


@pytest.mark.parametrize("name", ["", "Mars/One", "+02:00", "../UTC", "Europe"])
def test_an_unknown_zone_is_an_error(name: str) -> None:
    with pytest.raises(ValueError):
        zone_named(name)


def test_the_zone_of_the_machine_has_an_offset() -> None:
    local = datetime.fromtimestamp(0).astimezone().utcoffset()
    assert local is not None
    assert zone_named("Local")(0) == local.total_seconds()
