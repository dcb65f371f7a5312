"""The short judgement of attributes never says yes where the rules say no."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cloudevents import attributes as rules
from headwater.cloudevents.plain_text import is_common, is_common_time, is_plain_name, is_visible

GOOD: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


class Text(str):
    """A str with behaviour of its own."""


@given(st.text(max_size=6) | st.text("az09AZ~ \x7f\t", max_size=6) | st.just("data"))
def test_plain_name_is_a_name_and_visible_text_a_string(text: str) -> None:
    assert is_plain_name(text) == rules.is_attribute_name(text)
    assert is_visible(text) == (bool(text) and rules.is_plain(text))
    if is_visible(text):
        rules.check_string("x", text)


@pytest.mark.parametrize("value", ["", Text("x"), b"x", 5, None])
def test_what_is_no_plain_str_is_not_judged(value: object) -> None:
    assert not is_visible(value)
    assert not is_plain_name(value)
    assert not is_common_time(value)


@pytest.mark.parametrize(
    ("text", "common"),
    [
        ("2026-11-21T08:15:30Z", True),
        ("2026-11-21T08:15:30.1Z", True),
        ("2026-11-21T08:15:30.12345678901234567Z", True),
        ("0000-01-01T00:00:00Z", True),
        ("2026-12-28T23:59:59.0Z", True),
        ("2026-11-21T08:15:30.Z", False),
        ("2026-11-21T08:15:30.1 Z", False),
        ("2026-11-21T08:15:30+00:00", False),
        ("2026-11-21T08:15:60Z", False),
        ("2026-11-21T08:60:30Z", False),
        ("2026-11-21T24:15:30Z", False),
        ("2026-11-29T08:15:30Z", False),
        ("2026-11-00T08:15:30Z", False),
        ("2026-00-21T08:15:30Z", False),
        ("2026-13-21T08:15:30Z", False),
        ("2026-11-21t08:15:30Z", False),
        ("2026-11-21T08:15:30z", False),
        ("2026/11-21T08:15:30Z", False),
        ("2026-11/21T08:15:30Z", False),
        ("2026-11-21T08.15:30Z", False),
        ("2026-11-21T08:15.30Z", False),
        ("٢026-11-21T08:15:30Z", False),
        ("2026-11-21T08:15:3", False),
    ],
)
def test_common_time_is_utc_before_the_29th(text: str, common: bool) -> None:
    assert is_common_time(text) == common


@given(
    st.text("0123456789-:TZ.+", min_size=15, max_size=24)
    | st.from_regex(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", fullmatch=True)
)
def test_common_time_is_a_timestamp(text: str) -> None:
    if is_common_time(text):
        assert rules.is_timestamp(text)


odd_values = st.sampled_from(["", "1.0", "2.0", "é", Text("1.0"), "2020-01-01T00:00:00Z", "2020-02-30T00:00:00Z", 5])


@given(st.dictionaries(st.sampled_from([*sorted(rules.CORE), "ext", "Bad", "data"]), odd_values, max_size=4))
def test_common_event_is_an_event(changes: dict[str, Any]) -> None:
    attributes = GOOD | changes
    if is_common(attributes):
        assert all(rules.is_attribute_name(name) for name in attributes)
        rules.check_context(attributes)


def test_event_of_required_attributes_is_common_and_one_without_them_is_not() -> None:
    assert is_common(GOOD)
    assert is_common(GOOD | {"subject": "s", "time": "2020-01-01T00:00:00Z", "ext": "x y"})
    for name in GOOD:
        assert not is_common({key: value for key, value in GOOD.items() if key != name})
