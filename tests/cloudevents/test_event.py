"""`CloudEvent` as a value: what it takes as data, what it shows, what cannot be done to it."""

import pickle
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headwater.cloudevents import CloudEvent, CloudEventError, DataKind


def event(**changes: Any) -> CloudEvent:
    return CloudEvent(**({"id": "1", "source": "/s", "type": "t"} | changes))


@pytest.mark.parametrize(
    ("data", "content_type", "kind", "payload", "seen"),
    [
        (None, None, DataKind.ABSENT, b"", None),
        (b"", None, DataKind.BINARY, b"", b""),
        (b"{}", "application/json", DataKind.BINARY, b"{}", b"{}"),
        (memoryview(b"ab"), None, DataKind.BINARY, b"ab", b"ab"),
        ("é", "text/plain", DataKind.TEXT, "é".encode(), "é"),
        ("é", None, DataKind.JSON, '"é"'.encode(), "é"),
        ({"a": [1, None]}, "application/json", DataKind.JSON, b'{"a":[1,null]}', {"a": [1, None]}),
        (msgspec.Raw(b" null "), None, DataKind.JSON, b" null ", None),
        (2**70, None, DataKind.JSON, b"1180591620717411303424", 2**70),
        (False, "text/json", DataKind.JSON, b"false", False),
    ],
)
def test_data_is_held_encoded_and_shown_decoded(
    data: Any, content_type: str | None, kind: DataKind, payload: bytes, seen: Any
) -> None:
    made = event(data=data, datacontenttype=content_type)
    assert (made.kind, made.payload, made.data) == (kind, payload, seen)


@pytest.mark.parametrize(
    "data", [float("nan"), [None, float("inf")], {"a": None, "b": -float("inf")}, object(), "\ud800"]
)
def test_data_without_a_json_form_is_refused(data: Any) -> None:
    with pytest.raises(CloudEventError) as caught:
        event(data=data)
    assert (caught.value.attribute, caught.value.rule) == ("data", "JSON")


def test_raw_data_that_is_no_json_is_refused() -> None:
    for text in (b"", b"{", b"NaN", b'"\xff"', b"[" * 100_000):
        with pytest.raises(CloudEventError, match="no JSON"):
            event(data=msgspec.Raw(text))


def test_value_for_a_content_type_that_is_not_json_is_refused() -> None:
    with pytest.raises(CloudEventError, match="data is bytes or str"):
        event(data={"a": 1}, datacontenttype="application/xml")


def test_nothing_is_invented_and_nothing_is_shared() -> None:
    data = {"a": [1]}
    made = event(data=data, extensions={"n": 5})
    data["a"].append(2)
    made.data["a"].append(3)
    made.extensions["n"] = 6
    assert made.data == {"a": [1]}
    assert dict(made.attributes) == {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "n": 5}
    assert made.time is None


def test_event_is_frozen() -> None:
    made = event()
    with pytest.raises(AttributeError):
        made.id = "2"  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.attributes["id"] = "2"  # type: ignore[index]


def test_attributes_have_their_types() -> None:
    made = event(
        subject="s", time=datetime(2020, 1, 1, tzinfo=UTC), extensions={"flag": True, "b": b"\x01", "at": None, "n": -1}
    )
    assert (made.subject, made.time_text, made.time) == ("s", "2020-01-01T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC))
    assert made.extensions == {"flag": True, "b": b"\x01", "n": -1}
    assert (made.dataschema, made.datacontenttype, made.specversion) == (None, None, "1.0")


@pytest.mark.parametrize(
    ("changes", "attribute", "rule"),
    [
        ({"id": ""}, "id", "empty"),
        ({"id": None}, "id", "missing"),
        ({"id": 5}, "id", "wrong type"),
        ({"source": "a\n"}, "source", "control character"),
        ({"subject": ""}, "subject", "empty"),
        ({"specversion": "0.3"}, "specversion", "unsupported"),
        ({"time": "yesterday"}, "time", "not RFC3339"),
        ({"extensions": {"Bad": "x"}}, "Bad", "bad name"),
        ({"extensions": {"data": "x"}}, "data", "bad name"),
        ({"extensions": {"x\n": "x"}}, "x\n", "bad name"),
        ({"extensions": {"id": "x"}}, "id", "duplicate"),
        ({"extensions": {"x": 1.5}}, "x", "not an attribute type"),
        ({"extensions": {"x": {}}}, "x", "not an attribute type"),
        ({"extensions": {"x": 2**31}}, "x", "out of range"),
    ],
)
def test_event_that_breaks_a_rule_is_refused_by_attribute(changes: dict[str, Any], attribute: str, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        event(**changes)
    assert (caught.value.attribute, caught.value.rule) == (attribute, rule)


def test_equality_compares_json_by_value_and_tells_null_from_absent() -> None:
    assert event(data=msgspec.Raw(b'{"a": 1, "b": 2}')) == event(data={"b": 2, "a": 1})
    assert event(data=msgspec.Raw(b"null")) != event()
    assert event(data=b"1") != event(data=b"2")
    assert event() != event(subject="x")
    assert event() != "event"
    assert len({event(), event(subject="x"), event()}) == 2


def test_event_survives_pickling_and_prints_short() -> None:
    made = event(subject="x" * 500, data=b"123")
    assert pickle.loads(pickle.dumps(made)) == made
    assert len(repr(made)) < 250
    assert repr(made).endswith("data=<3 bytes of binary>)")
