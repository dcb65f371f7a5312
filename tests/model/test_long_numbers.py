"""Integers as texts, whatever their length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.long_numbers import read_number, write_number


@given(st.integers(), st.integers(0, 20_000), st.booleans())
def test_a_number_of_any_length_survives_its_text(number: int, digits: int, plus: bool) -> None:
    number *= 10**digits
    text = write_number(number)
    assert read_number(text) == number
    if number >= 0 and plus:
        assert read_number("+" + text) == number


@pytest.mark.parametrize("text", ["", "+", "-", "1.5", "1_0", "--1", "٣", " 1"])
def test_what_is_no_integer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an integer"):
        read_number(text)
