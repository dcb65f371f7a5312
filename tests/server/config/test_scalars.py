"""Durations as Go writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.server.config.scalars import duration, scalar


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2m", 120.0),
        ("1h30m", 5400.0),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("0", 0.0),
        ("-2s", -2.0),
        ("+3s", 3.0),
        ("7us", 7e-6),
        ("7µs", 7e-6),
        ("9ns", 9e-9),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "2 m", "2x", "1d", ".s", "1..5s", "٢s", "9999999h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|longer"):
        duration(text)


@given(st.text())
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    for reader in (duration, scalar):
        try:
            reader(text)
        except ValueError as error:
            assert str(error)
