"""`CloudEvent` as a value: what it takes as data, what it shows, what cannot be done to it."""

import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from support.event_strategies import events

from headwater.cloudevents import (
    CloudEvent,
    CloudEventError,
    DataKind,
    canonical_string,
    from_json,
    from_nats,
    message_id,
    to_binary,
    to_json,
    to_structured,
)


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


class Kind(str, Enum):  # noqa: UP042 (f"{Kind.CREATED}" is its name here; of a StrEnum it is the text anyway)
    CREATED = "com.example.created"


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Blob(bytes):
    pass


def test_a_member_of_a_str_enum_is_its_text_in_both_modes_and_as_a_header() -> None:
    made = event(
        type=Kind.CREATED,
        subject=Kind.CREATED,
        datacontenttype=Text("text/plain"),
        extensions={Text("k"): Kind.CREATED},
    )
    plain = event(
        type="com.example.created",
        subject="com.example.created",
        datacontenttype="text/plain",
        extensions={"k": "com.example.created"},
    )
    assert made == plain
    assert [type(value) for value in made.attributes.values()] == [str] * 7
    assert bytes(to_binary(made).headers) == bytes(to_binary(plain).headers)
    assert to_json(made) == to_json(plain)
    assert canonical_string("k", Kind.CREATED) == "com.example.created"
    assert message_id(made) == message_id(plain)


def test_values_of_subclasses_are_taken_by_value() -> None:
    made = event(
        extensions={"a": Level.HIGH, "b": Number(4), "c": Blob(b"x"), "d": bytearray(b"y"), "e": memoryview(b"z")}
    )
    assert made.extensions == {"a": 3, "b": 4, "c": b"x", "d": b"y", "e": b"z"}
    assert [type(value) for value in made.extensions.values()] == [int, int, bytes, bytes, bytes]


@pytest.mark.parametrize("write", [to_binary, to_structured])
@pytest.mark.parametrize(
    ("data", "content_type", "seen"),
    [
        (Kind.CREATED, "text/plain", "com.example.created"),
        (Kind.CREATED, None, "com.example.created"),
        (Text("hi"), "text/plain", "hi"),
        (Text("hi"), "application/json", "hi"),
        ({Text("k"): [Text("v"), Number(2), Level.HIGH]}, None, {"k": ["v", 2, 3]}),
        (Blob(b"x"), "application/octet-stream", b"x"),
        (bytearray(b"x"), "application/octet-stream", b"x"),
        (memoryview(b"xyz")[1:], "application/octet-stream", b"yz"),
    ],
)
def test_data_of_a_subclass_arrives_by_value_in_both_modes(
    data: Any, content_type: str | None, seen: Any, write: Any
) -> None:
    made = event(data=data, datacontenttype=content_type)
    assert made.data == seen
    come = from_nats(write(made))
    assert (come.data, type(come.data)) == (seen, type(seen))


def test_a_decimal_is_written_as_a_number() -> None:
    made = event(data={"total": Decimal("19.90"), "many": [Decimal("1E+3")]})
    assert made.payload == b'{"total":19.90,"many":[1E+3]}'


@pytest.mark.parametrize("data", [Decimal("NaN"), [Decimal("-Infinity")], {Decimal("1.5"): 1}])
def test_a_decimal_without_a_json_form_is_refused(data: Any) -> None:
    with pytest.raises(CloudEventError) as caught:
        event(data=data)
    assert (caught.value.attribute, caught.value.rule) == ("data", "JSON")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain", b"caf\xc3\xa9"),
        ("text/plain; charset=iso-8859-1", b"caf\xe9"),
        ('Text/Plain;Charset="ISO-8859-1"', b"caf\xe9"),
        ("application/xml", b"caf\xc3\xa9"),
        ("image/svg+xml", b"caf\xc3\xa9"),
        ("application/x-words; charset=utf-8", b"caf\xc3\xa9"),
    ],
)
def test_text_is_text_in_both_modes(content_type: str, body: bytes) -> None:
    made = event(data="café", datacontenttype=content_type)
    message = to_binary(made)
    assert message.data == body
    first = from_nats(message)
    second = from_json(to_json(first))
    third = from_nats(to_binary(second))
    assert [each.data for each in (made, first, second, third)] == ["café"] * 4
    assert made == first == second == third


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain", b"\xff\xfe"),
        ("text/plain; charset=us-ascii", b"\xe9"),
        ("text/plain; charset=nobody-knows", b"x"),
        ("application/octet-stream", b"x"),
        ("image/png", b"x"),
        (None, b"x"),
    ],
)
def test_bytes_that_are_no_text_of_their_type_stay_bytes(content_type: str | None, body: bytes) -> None:
    first = from_nats(to_binary(event(data=body, datacontenttype=content_type)))
    second = from_json(to_json(first))
    assert (first.data, second.data) == (body, body)
    assert first == second


@given(events())
@example(event(data={"a": 1}, datacontenttype=None))
@example(event(data="hi", datacontenttype=None))
def test_equality_survives_every_trip(sent: CloudEvent) -> None:
    trips: list[Callable[[CloudEvent], CloudEvent]] = [
        lambda one: from_nats(to_binary(one)),
        lambda one: from_nats(to_structured(one)),
        lambda one: from_json(to_json(one)),
    ]
    try:
        for first in trips:
            for second in trips:
                assert second(first(sent)) == sent
    except CloudEventError as error:
        assert error.rule in ("charset", "JSON")
