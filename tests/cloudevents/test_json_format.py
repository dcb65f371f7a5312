"""The JSON event format, beyond the vectors: round trips, and any bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events, json_values, strings

from headwater.cloudevents import CloudEvent, CloudEventError, DataKind, NATSMessage, from_json, from_nats, to_json

CORE = '"specversion":"1.0","id":"1","source":"/s","type":"t"'


def rule_of(text: str | bytes) -> tuple[str | None, str]:
    with pytest.raises(CloudEventError) as caught:
        from_json(text.encode() if isinstance(text, str) else text)
    return caught.value.attribute, caught.value.rule


@given(events(extension_values=strings | st.integers(-(2**31), 2**31 - 1) | st.booleans()))
def test_event_comes_back_from_json(event: CloudEvent) -> None:
    text = to_json(event)
    assert from_json(text) == event
    assert from_json(json.dumps(json.loads(text), indent=1).encode()) == event


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_become_an_event_or_our_error(text: bytes, strict: bool) -> None:
    with pytest.raises(CloudEventError):
        from_json(text, strict)


members = st.dictionaries(
    st.sampled_from(
        ["specversion", "id", "source", "type", "time", "data", "data_base64", "datacontenttype", "x", "X"]
    ),
    st.sampled_from(["1.0", "", "/s", "2020-01-01T00:00:00Z", "AA==", "application/json", "a\x07"]) | json_values,
)


@given(members, st.booleans())
def test_any_json_object_becomes_an_event_or_our_error(value: dict[str, Any], strict: bool) -> None:
    value = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"} | value
    outcomes: list[Any] = []
    for separators in ((",", ":"), (", ", ": ")):
        try:
            event = from_json(json.dumps(value, separators=separators).encode(), strict)
        except CloudEventError as error:
            outcomes.append((error.attribute, error.rule))
        else:
            assert from_json(to_json(event), strict) == event
            outcomes.append((dict(event.attributes), event.data))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("blank", ["", " "])
def test_attribute_there_twice_is_refused_however_it_is_written(blank: str) -> None:
    assert rule_of(f'{{{blank}{CORE},"id":"2"}}') == ("id", "duplicate")
    assert rule_of(f'{{{CORE},{blank}"i\\u0064":"1"}}') == ("id", "duplicate")
    assert rule_of(f'{{{CORE},{blank}"data":1,"data":1}}') == ("data", "duplicate")
    assert rule_of(f'{{{CORE},{blank}"data":1,"data_base64":"AA=="}}') == ("data_base64", "duplicate")
    assert rule_of(f'{{{CORE},"x":null,{blank}"x":null}}') == ("x", "duplicate")


def test_members_repeated_inside_data_are_the_business_of_data() -> None:
    event = from_json(f'{{{CORE}, "data": {{"a": 1, "a": 2}}}}'.encode())
    assert event.payload == b'{"a": 1, "a": 2}'


@pytest.mark.parametrize("number", ["1.0", "1e0", "1e400", "9" * 5000])
def test_number_with_fraction_or_exponent_or_too_many_digits_is_no_attribute(number: str) -> None:
    assert rule_of(f'{{{CORE},"n":{number}}}')[0] == "n"


def test_text_that_is_no_json_is_refused_as_such() -> None:
    for text in (
        "",
        "{",
        f"{{{CORE},}}",
        f"{{{CORE}}}x",
        f'{{{CORE},"data":Infinity}}',
        f'{{{CORE},"data":{"[" * 100_000}',
    ):
        assert rule_of(text) == (None, "JSON")
    assert rule_of("null") == rule_of('"x"') == (None, "not an object")
    assert rule_of(f'{{{CORE},"data":"'.encode() + b'\xff"}') == (None, "invalid UTF-8")


def test_content_type_decides_what_the_data_is() -> None:
    def read(rest: str) -> tuple[DataKind, Any]:
        event = from_json(f"{{{CORE}{rest}}}".encode())
        return event.kind, event.data

    assert read("") == (DataKind.ABSENT, None)
    assert read(',"data":null,"data_base64":null') == (DataKind.JSON, None)
    assert read(',"data_base64":null') == (DataKind.ABSENT, None)
    assert read(',"data":"a\\u00e9","datacontenttype":"text/plain"') == (DataKind.TEXT, "aé")
    assert read(',"data":"a\\u00e9","datacontenttype":"TEXT/X+JSON;a=b"') == (DataKind.JSON, "aé")
    assert read(',"data_base64":"AQI=","datacontenttype":"application/json"') == (DataKind.BINARY, b"\x01\x02")


def test_json_data_of_a_binary_message_is_checked_before_it_is_put_into_json() -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}
    event = from_nats(NATSMessage(headers | {"ce-datacontenttype": "application/json"}, b'1,"id":"2"'))
    assert (event.kind, event.is_verified) == (DataKind.JSON, False)
    with pytest.raises(CloudEventError, match="no JSON"):
        to_json(event)
