"""Names, types and canonical strings of context attributes, beyond the vectors."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cloudevents import (
    AttributeType,
    CloudEvent,
    CloudEventError,
    canonical_string,
    from_nats,
    to_binary,
    to_structured,
)
from headwater.cloudevents import attributes as rules

GOOD: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


@pytest.mark.parametrize("text", ["2024-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "2020-04-30T23:59:60+23:59"])
def test_timestamp_on_a_day_that_the_month_has_is_one(text: str) -> None:
    assert rules.is_timestamp(text)


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2020-04-31T00:00:00Z",
        "2020-02-30T00:00:00Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:00:61Z",
        "2020-01-01T00:00:00.Z",
        "2020-01-01T00:00:00Z\n",
        "2020-01-01 00:00:00Z",
        "2020-01-01T00:00:00+24:00",
        "٢020-01-01T00:00:00Z",
        "",
    ],
)
def test_timestamp_that_rfc_3339_does_not_know_is_none(text: str) -> None:
    assert not rules.is_timestamp(text)
    with pytest.raises(CloudEventError) as caught:
        canonical_string("due", text, AttributeType.TIMESTAMP)
    assert caught.value.attribute == "due"
    assert caught.value.rule == ("control character" if "\n" in text else "not RFC3339")


@given(st.datetimes(timezones=st.just(UTC) | st.builds(timezone, st.timedeltas(timedelta(0), timedelta(minutes=1)))))
def test_datetime_survives_as_timestamp_or_is_refused_for_its_zone(value: datetime) -> None:
    try:
        text = rules.from_datetime("time", value)
    except CloudEventError:
        assert value.utcoffset() not in (timedelta(0), timedelta(minutes=1))
    else:
        assert rules.to_datetime("time", text) == value


def test_naive_datetime_is_refused() -> None:
    with pytest.raises(CloudEventError, match="needs a time zone"):
        canonical_string("time", datetime(2020, 1, 1))


def test_leap_second_is_the_first_of_the_next_minute_and_nanoseconds_are_cut() -> None:
    assert rules.to_datetime("time", "2016-12-31T23:59:60.123456789Z") == datetime(2017, 1, 1, 0, 0, 0, 123456, UTC)
    assert rules.to_datetime("time", "2020-01-01T00:00:00.5+01:00") == datetime(2019, 12, 31, 23, 0, 0, 500000, UTC)


@pytest.mark.parametrize("text", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z"])
def test_timestamp_that_no_datetime_holds_keeps_its_text(text: str) -> None:
    event = CloudEvent(id="1", source="/s", type="t", time=text)
    assert event.time_text == text
    with pytest.raises(CloudEventError, match="does not fit a datetime"):
        _ = event.time


@pytest.mark.parametrize(
    ("value", "declared", "rule"),
    [
        (True, AttributeType.INTEGER, "wrong type"),
        ("5", AttributeType.INTEGER, "wrong type"),
        ("/relative", AttributeType.URI, "not a URI"),
        ("a b", AttributeType.URI_REFERENCE, "not a URI-reference"),
        ("a%2", AttributeType.URI_REFERENCE, "not a URI-reference"),
        ("a#b#c", AttributeType.URI_REFERENCE, "not a URI-reference"),
        (-(2**31) - 1, None, "out of range"),
        (None, None, "not an attribute type"),
        ([], None, "not an attribute type"),
        ("a\x85", None, "control character"),
        ("a\U0001ffff", None, "noncharacter"),
        ("\ufdd0", None, "noncharacter"),
        ("\ud800", None, "unpaired surrogate"),
    ],
)
def test_value_outside_its_type_is_refused_by_rule(value: Any, declared: AttributeType | None, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        canonical_string("x", value, declared)
    assert (caught.value.attribute, caught.value.rule) == ("x", rule)


def test_error_names_attribute_header_value_and_rule() -> None:
    with pytest.raises(CloudEventError) as caught:
        rules.check_context(GOOD | {"time": "noon"}, prefix="ce-")
    error = caught.value
    assert (error.attribute, error.header, error.value, error.rule) == ("time", "ce-time", "noon", "not RFC3339")
    assert str(error) == "attribute 'time' (header 'ce-time'): not RFC3339, got 'noon'"


def test_what_is_not_ascii_in_a_uri_is_to_be_percent_encoded() -> None:
    with pytest.raises(CloudEventError, match="not a URI-reference: percent-encode what is not ASCII, got '/ü'"):
        CloudEvent(id="1", source="/ü", type="t")


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("source", "a b", "not a URI-reference"),
        ("source", "/ü", "not a URI-reference"),
        ("dataschema", "/relative", "not a URI"),
        ("datacontenttype", "json", "not a media type"),
    ],
)
def test_grammar_of_core_attributes_is_held_to_in_writing_and_left_alone_in_reading(
    name: str, value: str, rule: str
) -> None:
    attributes = GOOD | {name: value}
    lenient = CloudEvent.from_attributes(attributes, strict=False)
    assert lenient.attributes[name] == value
    core = {key: each for key, each in attributes.items() if key in rules.CORE}
    with pytest.raises(CloudEventError) as caught:
        CloudEvent.from_attributes(attributes)
    assert (caught.value.attribute, caught.value.rule) == (name, rule)
    with pytest.raises(CloudEventError) as caught:
        CloudEvent(**core)
    assert (caught.value.attribute, caught.value.rule) == (name, rule)
    for message in (to_binary(lenient), to_structured(lenient)):
        assert from_nats(message).attributes[name] == value
        with pytest.raises(CloudEventError) as caught:
            from_nats(message, strict=True)
        assert (caught.value.attribute, caught.value.rule) == (name, rule)


def test_the_first_of_several_errors_is_the_same_whatever_the_hash_seed() -> None:
    program = (
        "from headwater.cloudevents import CloudEvent\n"
        "try: CloudEvent(id='', source='', type='', subject='', dataschema='', datacontenttype='', time='')\n"
        "except ValueError as error: print(error.attribute, error.rule)"
    )
    for seed in range(6):
        env = {**os.environ, "PYTHONHASHSEED": str(seed)}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
        assert done.stdout == "id empty\n"
