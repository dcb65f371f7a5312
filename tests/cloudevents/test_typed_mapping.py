import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events, json_data, strings

from headwater import HeaderKind, HeaderValue, TypedHeaders
from headwater.cloudevents import CloudEvent, CloudEventError
from headwater.cloudevents.typed_mapping import event_from_typed, event_to_typed
from headwater.model.header_mapping import Loss

binaries = st.binary(min_size=1, max_size=12).filter(lambda value: value != b"\0")
typed_values = strings | st.booleans() | st.integers(-(2**31), 2**31 - 1) | binaries


@given(events(data=json_data, extension_values=typed_values))
def test_an_event_comes_back_with_the_types_of_its_attributes(event: CloudEvent) -> None:
    typed, payload, losses = event_to_typed(event)
    assert losses == []
    assert event_from_typed(TypedHeaders.decode(typed.encode()), payload) == event


def test_the_types_of_cloudevents_have_their_kinds() -> None:
    event = CloudEvent(
        id="é 1", source="/s", type="t", time="2026-11-21T00:00:00Z", extensions={"yes": True, "n": -5, "blob": b"\0\1"}
    )
    typed, _, _ = event_to_typed(event)
    assert typed["ce-id"] == HeaderValue.from_str("%C3%A9%201")
    assert typed["ce-time"].kind is HeaderKind.STRING
    assert typed["ce-yes"] == HeaderValue.from_bool(True)
    assert typed["ce-n"] == HeaderValue.from_int32(-5)
    assert typed["ce-blob"] == HeaderValue.from_raw(b"\0\1")


def test_kinds_that_cloudevents_lacks_become_the_next_best() -> None:
    headers = TypedHeaders({"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"})
    headers["ce-big"] = HeaderValue.from_uint64(2**40)
    headers["ce-small"] = HeaderValue.from_uint8(7)
    headers["ce-ratio"] = 0.5
    headers["other"] = 1
    event = event_from_typed(headers, b"")
    assert (event.attributes["big"], event.attributes["small"], event.attributes["ratio"]) == (str(2**40), 7, "0.5")
    assert "other" not in event.attributes


def test_an_attribute_that_is_too_long_is_reported() -> None:
    event = CloudEvent(id="1", source="/s", type="t", dataschema="x:" + "x" * 298, extensions={"blob": b"\1" * 255})
    typed, _, losses = event_to_typed(event)
    assert losses == [Loss("ce-dataschema", "the value has 300 bytes, Iggy takes 255")]
    assert typed["ce-blob"].as_raw() == b"\1" * 255


def test_the_one_binary_that_iggy_reads_as_empty_text_loses_its_type_and_is_reported() -> None:
    event = CloudEvent(id="1", source="/s", type="t", extensions={"blob": b"\0"})
    typed, payload, losses = event_to_typed(event)
    assert [loss.name for loss in losses] == ["ce-blob"]
    assert event_from_typed(typed, payload).attributes["blob"] == "AA=="


def test_what_is_no_event_is_refused_by_the_rules_of_the_binding() -> None:
    with pytest.raises(CloudEventError):
        event_from_typed(TypedHeaders({"ce-id": "1"}), b"")
