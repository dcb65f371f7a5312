"""Query parameters as nats-server reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.monitoring.parameters import LARGEST, number, page, switch


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("t", True), ("TRUE", True), ("0", False), ("false", False), ("", False)]
)
def test_switches(text: str, value: bool) -> None:
    assert switch({"x": text}, "x") is value
    assert switch({}, "x") is False


@pytest.mark.parametrize(("text", "value"), [("5", 5), ("-3", -3), ("+7", 7), ("", 0), (str(LARGEST), LARGEST)])
def test_numbers(text: str, value: int) -> None:
    assert number({"x": text}, "x") == value


@pytest.mark.parametrize("text", ["x", "1.5", "٢", "0x10", "1_000", " 1", str(LARGEST + 1), "9" * 5000])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ConfigError, match=r"Error decoding int for .x.: strconv\.Atoi: parsing"):
        number({"x": text}, "x")


def test_pages_are_put_right() -> None:
    assert page({}, 1024) == (0, 1024)
    assert page({"offset": "-5", "limit": "0"}, 1024) == (0, 1024)
    assert page({"offset": "5", "limit": "7"}, 1024) == (5, 7)


@given(st.text())
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    for read in (switch, number):
        try:
            read({"x": text}, "x")
        except ConfigError as error:
            assert error.message.startswith("Error decoding")
