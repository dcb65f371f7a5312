"""The `cloudevents` SDK: its events and ours, our JSON format in its bindings, NATS as one of them."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from cloudevents.core.bindings import http, kafka
from cloudevents.core.formats.json import JSONFormat as SdkFormat
from cloudevents.core.v03.event import CloudEvent as OldSdkEvent
from cloudevents.core.v1.event import CloudEvent as SdkEvent
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events

from headwater.cloudevents import CloudEvent, CloudEventError, DataKind, NATSMessage
from headwater.cloudevents import sdk_python as sdk
from headwater.cloudevents.sdk_python import JSONFormat, from_sdk, to_sdk
from headwater.model.headers import Headers

MOMENT = datetime(2026, 11, 21, 8, 15, 30, tzinfo=UTC)
CORE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def event(**changes: Any) -> CloudEvent:
    return CloudEvent(**({"id": "1", "source": "/s", "type": "t"} | changes))


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (None, None),
        (b"\x00\xff", None),
        (b"{}", "application/json"),
        ({"a": [1, None]}, "application/json"),
        ({"a": 1}, None),
        ([1, 2], "text/json"),
        ("text", "text/plain"),
        ("text", "application/json"),
        (5, "application/json"),
    ],
)
def test_event_goes_over_to_the_sdk_and_comes_back(data: Any, content_type: str | None) -> None:
    ours = event(data=data, datacontenttype=content_type, time=MOMENT, extensions={"n": 5, "yes": True, "b": b"\x01"})
    theirs = to_sdk(ours)
    assert isinstance(theirs, SdkEvent)
    assert (theirs.get_data(), theirs.get_time(), theirs.get_extension("n")) == (data, MOMENT, 5)
    assert from_sdk(theirs) == ours


def test_nothing_is_invented_and_nothing_is_shared() -> None:
    ours = event()
    theirs = to_sdk(ours)
    assert theirs.get_attributes() == CORE
    theirs.get_attributes()["subject"] = "x"
    assert ours.subject is None


def test_null_is_lost_on_the_sdk_and_named_in_its_documentation() -> None:
    ours = event(data=msgspec.Raw(b"null"))
    assert from_sdk(to_sdk(ours)).kind is DataKind.ABSENT
    assert sdk.__doc__ is not None
    assert "null" in sdk.__doc__


@pytest.mark.parametrize(
    ("attributes", "attribute", "rule"),
    [
        ({"x": 1.5}, "x", "not an attribute type"),
        ({"x": 2**31}, "x", "out of range"),
        ({"x\n": "1"}, "x\n", "bad name"),
        ({"subject": "a\x07"}, "subject", "control character"),
    ],
)
def test_event_that_only_the_sdk_accepts_is_refused_by_rule(attributes: Any, attribute: str, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        from_sdk(SdkEvent(CORE | attributes))
    assert (caught.value.attribute, caught.value.rule) == (attribute, rule)


def test_version_0_3_is_refused() -> None:
    old = OldSdkEvent(CORE | {"specversion": "0.3"})
    with pytest.raises(CloudEventError, match="unsupported"):
        from_sdk(old)


@given(events())
def test_any_event_survives_the_sdk_but_for_the_text_of_its_time(ours: CloudEvent) -> None:
    come = from_sdk(to_sdk(ours))
    assert {**come.attributes, "time": None} == {**ours.attributes, "time": None}
    assert come.time == ours.time
    if ours.data is not None:
        assert come.data == ours.data


# the JSON format in their bindings


def their_event(data: Any, **attributes: Any) -> SdkEvent:
    return SdkEvent(CORE | {"time": MOMENT} | attributes, data)


@pytest.mark.parametrize("binding", [http, kafka])
@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        ({"a": 1}, {"datacontenttype": "application/json"}),
        ("quoted", {"datacontenttype": "application/json"}),
        ("plain", {"datacontenttype": "text/plain"}),
        (b"\x00\xff", {"datacontenttype": "application/octet-stream"}),
        ({"a": 1}, {"datacontenttype": "Application/Vnd.X+JSON", "partitionkey": "k"}),
        (None, {}),
    ],
)
def test_our_format_serves_their_bindings_in_both_modes(binding: Any, data: Any, attributes: dict[str, Any]) -> None:
    form = JSONFormat()
    sent = their_event(data, **attributes)
    for write, read in (
        (binding.to_structured, binding.from_structured),
        (binding.to_binary, binding.from_binary),
    ):
        come = read(write(sent, form), form)
        assert (come.get_data(), come.get_attributes()) == (data, sent.get_attributes())


def test_both_formats_write_the_same_event() -> None:
    sent = their_event({"a": "é"}, datacontenttype="application/json", subject="s")
    assert json.loads(JSONFormat().write(sent)) == json.loads(SdkFormat().write(sent))
    assert JSONFormat().get_content_type() == SdkFormat().get_content_type()
    assert JSONFormat().write(event(data=5)) == JSONFormat().write(to_sdk(event(data=5)))


def test_read_makes_the_event_with_the_factory_it_is_given() -> None:
    text = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":[1]}'
    assert JSONFormat().read(CloudEvent.from_attributes, text) == event(data=[1])
    assert JSONFormat().read(None, text.decode()).get_attributes() == CORE


@pytest.mark.parametrize("text", [b"{}", b'{"specversion":"1.0","source":"/s","type":"t"}', "\ud800", b"[]"])
def test_text_that_is_no_event_never_reaches_the_factory(text: str | bytes) -> None:
    def factory(attributes: dict[str, Any], data: Any) -> Any:
        raise AssertionError("reached")

    with pytest.raises(CloudEventError):
        JSONFormat().read(factory, text)


def test_data_is_written_and_read_by_its_type() -> None:
    form = JSONFormat()
    assert form.write_data("a", "application/json") == b'"a"'
    assert form.write_data("a", "text/plain") == b"a"
    assert form.write_data(None, None) == b""
    assert form.write_data(bytearray(b"x"), None) == b"x"
    assert form.read_data(b"", "application/json") is None
    assert form.read_data(b"[1]", None) == [1]
    assert form.read_data(b"x", None) == "x"
    assert form.read_data(b"\xff", "text/plain") == b"\xff"
    assert form.read_data(b"{}", "application/xml") == b"{}"
    with pytest.raises(CloudEventError, match="no JSON"):
        form.read_data(b"{", "application/json")
    with pytest.raises(CloudEventError, match="bytes or str"):
        form.write_data({"a": 1}, "text/plain")


# the binding


@pytest.mark.parametrize("form", [JSONFormat(), SdkFormat()])
@pytest.mark.parametrize("data", [{"a": 1}, "text", b"\x00", None])
def test_sdk_event_comes_back_over_nats_in_both_modes(form: Any, data: Any) -> None:
    kinds: dict[type, str] = {dict: "application/json", str: "text/plain", bytes: "application/octet-stream"}
    content_type = {"datacontenttype": kinds[type(data)]} if data is not None else {}
    sent = their_event(data, subject="two words", **content_type)
    for write in (sdk.to_binary, sdk.to_structured):
        come = sdk.from_nats(write(sent, form), JSONFormat())
        assert (come.get_data(), come.get_attributes()) == (data, sent.get_attributes())


def test_wrappers_need_no_format() -> None:
    sent = their_event({"a": 1}, datacontenttype="application/json")
    assert sdk.from_binary_event(sdk.to_binary_event(sent)).get_data() == {"a": 1}
    assert sdk.from_structured_event(sdk.to_structured_event(sent)).get_data() == {"a": 1}
    assert sdk.from_nats_event(sdk.to_binary_event(sent)).get_attributes() == sent.get_attributes()


def test_content_type_that_a_dict_implies_is_made_explicit() -> None:
    headers, payload = sdk.to_binary_event(SdkEvent(dict(CORE), {"a": 1}))
    assert isinstance(headers, Headers)
    assert headers["ce-datacontenttype"] == "application/json"
    assert payload == b'{"a":1}'


def test_message_without_an_id_is_refused_not_given_one() -> None:
    with pytest.raises(CloudEventError) as caught:
        sdk.from_nats_event(NATSMessage({"ce-specversion": "1.0", "ce-source": "/s", "ce-type": "t"}, b""))
    assert (caught.value.attribute, caught.value.rule) == ("id", "missing")


def test_format_or_mode_that_the_binding_does_not_know_is_refused() -> None:
    class Avro(JSONFormat):
        def get_content_type(self) -> str:
            return "application/cloudevents+avro"

    with pytest.raises(CloudEventError, match="event format is JSON"):
        sdk.to_structured(their_event(None), Avro())
    with pytest.raises(CloudEventError, match="structured mode"):
        sdk.from_binary_event(sdk.to_structured_event(their_event(None)))


@given(st.dictionaries(st.sampled_from(["ce-specversion", "ce-id", "ce-time", "ce-source", "ce-type"]), st.text("1.0")))
def test_any_message_becomes_an_event_or_our_error(headers: dict[str, str]) -> None:
    try:
        sdk.from_nats_event(NATSMessage(headers, b"{}"))
    except CloudEventError as error:
        assert error.rule


def test_sdk_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, headwater.cloudevents.sdk_python; assert 'cloudevents' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={"PYTHONPATH": ":".join(sys.path)})
