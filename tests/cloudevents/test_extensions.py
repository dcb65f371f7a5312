"""Extensions by name: types come back from headers, and what does not fit is refused when it is read."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cloudevents import (
    AttributeType,
    CloudEvent,
    CloudEventError,
    Extension,
    Registry,
    documented,
    from_json,
    from_nats,
    to_binary,
    to_json,
)
from headwater.cloudevents.extensions import DOCUMENTED

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def event(**extensions: Any) -> CloudEvent:
    return CloudEvent(id="1", source="/s", type="t", extensions=extensions)


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("sampledrate", 30, 30),
        ("severitynumber", 0, 0),
        ("deprecated", True, True),
        ("expirytime", "2026-11-21T08:15:30.5+01:00", datetime(2026, 11, 21, 7, 15, 30, 500000, UTC)),
        ("traceparent", TRACE, TRACE),
        ("dataref", "claims/7", "claims/7"),
        ("sequence", "0007", "0007"),
        ("authtype", "user", "user"),
        ("unheardof", "5", "5"),
    ],
)
def test_extension_has_its_type_in_whichever_mode_the_event_came(name: str, value: Any, seen: Any) -> None:
    sent = event(**{name: value})
    for come in (from_nats(to_binary(sent)), from_json(to_json(sent)), sent):
        assert come.extension(name) == seen
        assert type(come.extension(name)) is type(seen)


def test_types_that_headers_lost_are_restored() -> None:
    sent = event(sampledrate=30, deprecated=False, expirytime="2026-11-21T08:15:30Z", other="1")
    come = from_nats(to_binary(sent))
    assert come != sent
    assert come.with_types() == sent
    assert come.with_types(Registry()) == come


def test_program_registers_its_own() -> None:
    mine = Registry([*DOCUMENTED, Extension("blob", AttributeType.BINARY), Extension("retries", AttributeType.INTEGER)])
    come = from_nats(to_binary(event(blob=b"\x00\xff", retries=-3)))
    assert (come.extension("blob"), come.extension("blob", mine)) == ("AP8=", b"\x00\xff")
    assert come.extension("retries", mine) == -3
    assert "retries" in mine
    assert "retries" not in documented
    assert mine["retries"].type is AttributeType.INTEGER
    assert mine.names() == sorted([*documented.names(), "blob", "retries"])


@pytest.mark.parametrize(("name", "rule"), [("Bad", "bad name"), ("data", "bad name"), ("id", "duplicate")])
def test_name_that_no_extension_may_have_is_not_registered(name: str, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        Registry().register(Extension(name))
    assert (caught.value.attribute, caught.value.rule) == (name, rule)


def test_core_attribute_is_no_extension() -> None:
    with pytest.raises(CloudEventError, match="core attribute"):
        event().extension("id")
    assert event().extension("sampledrate") is None


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("sampledrate", "0", "bad extension value"),
        ("sampledrate", "1.5", "wrong type"),
        ("sampledrate", "01", "wrong type"),
        ("sampledrate", "٣", "wrong type"),
        ("sampledrate", "2147483648", "out of range"),
        ("sampledrate", True, "wrong type"),
        ("severitynumber", "-1", "bad extension value"),
        ("deprecated", "True", "wrong type"),
        ("expirytime", "tomorrow", "not RFC3339"),
        ("expirytime", 5, "wrong type"),
        ("dataref", "", "bad extension value"),
        ("dataref", "a b", "not a URI-reference"),
        ("deprecationmigration", "/relative", "not a URI"),
        ("traceparent", TRACE.upper(), "bad extension value"),
        ("traceparent", TRACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32), "bad extension value"),
        ("traceparent", "ff" + TRACE[2:], "bad extension value"),
        ("traceparent", TRACE + "-x", "bad extension value"),
        ("traceparent", 5, "wrong type"),
        ("partitionkey", "", "bad extension value"),
        ("partitionkey", b"k", "wrong type"),
    ],
)
def test_value_that_does_not_fit_is_refused_when_asked_for_or_written(name: str, value: Any, rule: str) -> None:
    odd = event(**{name: value})
    for attempt in (lambda: odd.extension(name), lambda: odd.with_types(), lambda: documented.typed({name: value})):
        with pytest.raises(CloudEventError) as caught:
            attempt()
        assert (caught.value.attribute, caught.value.rule) == (name, rule)


def test_values_are_checked_and_typed_before_an_event_is_made() -> None:
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    given_values: dict[str, Any] = {
        "sampledrate": "30",
        "expirytime": "2026-11-21T00:00:00z",
        "recordedtime": moment,
        "authid": None,
    }
    made = event(**documented.typed(given_values | {"other": 5}))
    assert made.extensions == {
        "sampledrate": 30,
        "expirytime": "2026-11-21T00:00:00z",
        "recordedtime": "2026-11-21T00:00:00Z",
        "other": 5,
    }
    with pytest.raises(CloudEventError) as caught:
        documented.typed({"Bad": 1})
    assert caught.value.rule == "bad name"


@given(st.sampled_from(documented.names()), st.text(max_size=12) | st.integers(-5, 5) | st.booleans() | st.binary())
def test_any_value_has_its_type_or_raises_our_error(name: str, value: Any) -> None:
    try:
        sent = event(**{name: value})
        seen = sent.extension(name)
    except CloudEventError as error:
        assert error.rule
    else:
        assert seen is not None
        assert from_nats(to_binary(sent)).extension(name) == seen
