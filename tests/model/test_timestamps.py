"""RFC 3339 with nanoseconds, and Go's durations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.timestamps import format_duration, format_time, parse_time, tidied_time


@given(st.integers(0, 253_402_300_799_999_999_999))
def test_a_time_comes_back_to_the_nanosecond(ns: int) -> None:
    assert parse_time(format_time(ns)) == ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1970-01-01T00:00:00Z", 0), ("1970-01-01T01:00:00.5+01:00", 500_000_000), ("1970-01-01t00:00:00.000000001z", 1)],
)
def test_other_spellings_are_read(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize("text", ["", "now", "2024-01-01", "2024-13-01T00:00:00Z", "2024-01-01T00:00:00"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (10**9, "1s"),
        (1_500_000_000, "1.5s"),
        (120 * 10**9, "2m0s"),
        (3_600 * 10**9, "1h0m0s"),
        (300_000_000, "300ms"),
    ],
)
def test_durations_are_printed_as_go_prints_them(ns: int, text: str) -> None:
    assert format_duration(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_500_000_000, "1970-01-01T00:00:01.5Z"),
        (10, "1970-01-01T00:00:00.00000001Z"),
    ],
)
def test_a_time_has_no_zeros_at_its_end(ns: int, text: str) -> None:
    assert format_time(ns) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01t00:00:00.500z", "2020-01-01T00:00:00.5Z"),
        ("2020-01-01T00:00:00.000+01:00", "2020-01-01T00:00:00+01:00"),
        ("2020-01-01T00:00:00.1234567899-00:00", "2020-01-01T00:00:00.123456789Z"),
    ],
)
def test_a_given_time_is_tidied_and_keeps_its_zone(given: str, text: str) -> None:
    assert tidied_time(given) == text
    assert parse_time(tidied_time(given)) == parse_time(given)
