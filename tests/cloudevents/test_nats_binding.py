"""Events as NATS messages: both modes through real header blocks, and any message at all."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events, json_data, strings

from headwater.cloudevents import (
    CloudEvent,
    CloudEventError,
    DataKind,
    NATSMessage,
    content_mode,
    from_json,
    from_nats,
    message_id,
    to_binary,
    to_structured,
)
from headwater.cloudevents.batch import from_batch
from headwater.model.header_block import decode_header_block, encode_header_block, lookup
from headwater.model.headers import Headers
from headwater.model.message import Message

CORE = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", "t")]


def over_the_wire(message: NATSMessage) -> NATSMessage:
    assert isinstance(message.headers, Headers)
    return NATSMessage(decode_header_block(encode_header_block(message.headers), strict=True)[1], message.data)


def refusal(headers: Any, data: bytes = b"", strict: bool = False) -> CloudEventError:
    with pytest.raises(CloudEventError) as caught:
        from_nats(NATSMessage(headers, data), strict)
    return caught.value


@given(events())
def test_event_comes_back_from_a_structured_message(event: CloudEvent) -> None:
    message = over_the_wire(to_structured(event))
    assert content_mode(message) == content_mode(message, strict=True) == "structured"
    assert from_nats(message) == event


@given(events(st.tuples(st.sampled_from([None, "text/plain"]), st.none() | st.binary(min_size=1)) | json_data))
def test_event_comes_back_from_a_binary_message(event: CloudEvent) -> None:
    message = over_the_wire(to_binary(event))
    assert content_mode(message) == content_mode(message, strict=True) == "binary"
    assert from_nats(message) == event


header_names = st.sampled_from(
    ["ce-id", "CE-ID", "ce-x", "ce-", "ce-data", "Content-Type", "content-type", "Nats-Msg-Id", "é"]
)
header_values = (
    st.sampled_from(["1", "", '"', "%ff", "application/cloudevents+json", "application/json", "a\n"]) | strings
)


@given(
    st.lists(st.tuples(header_names, header_values), max_size=5), st.binary(max_size=8), st.booleans(), st.booleans()
)
def test_any_message_becomes_an_event_or_our_error(
    pairs: list[tuple[str, str]], data: bytes, strict: bool, with_core: bool
) -> None:
    try:
        event = from_nats(NATSMessage(CORE * with_core + pairs, data), strict)
    except CloudEventError as error:
        assert error.rule
    else:
        assert from_nats(to_binary(event)) == event


def test_headers_may_be_a_mapping_pairs_a_headers_or_none() -> None:
    events_read = [from_nats(NATSMessage(given, b"")) for given in (CORE, dict(CORE), Headers(CORE))]
    assert events_read[0] == events_read[1] == events_read[2]
    assert from_nats(NATSMessage(None, b' {"specversion":"1.0","id":"1","source":"/s","type":"t"}')) == events_read[0]


def test_malformed_headers_of_a_message_are_a_cloud_event_error() -> None:
    class Received:
        data = b""

        @property
        def headers(self) -> Headers:
            return decode_header_block(b"NATS/1.0\r\nce id: 1\r\n\r\n")[1]

    with pytest.raises(CloudEventError, match="malformed") as caught:
        from_nats(Received())
    assert (caught.value.header, caught.value.rule) == ("ce id", "bad header name")


def test_other_headers_stay_with_the_message() -> None:
    event = from_nats(NATSMessage([*CORE, ("traceparent", "00-1-2-01"), ("Nats-Msg-Id", "1"), ("X", "y")], b""))
    assert event.extensions == {}


def test_errors_of_a_binary_message_name_the_header() -> None:
    error = refusal([*CORE, ("ce-subject", "%C0%A0")])
    assert (error.attribute, error.header, error.value, error.rule) == (
        "subject",
        "ce-subject",
        "%C0%A0",
        "invalid UTF-8",
    )
    error = refusal([*CORE, ("CE-ID", "2")])
    assert (error.attribute, error.header, error.rule) == ("id", "CE-ID", "duplicate")
    error = refusal(CORE[1:])
    assert (error.attribute, error.header, error.rule) == ("specversion", "ce-specversion", "missing")


def test_batch_and_other_formats_are_refused_and_not_misread() -> None:
    for content_type, rule in (
        ("application/cloudevents-batch+json", "batch not supported by NATS binding"),
        ("APPLICATION/CLOUDEVENTS-BATCH", "batch not supported by NATS binding"),
        ("application/cloudevents+xml;a=b", "unsupported event format"),
    ):
        for strict in (False, True):
            assert refusal([("Content-Type", content_type), *CORE], b"[]", strict).rule == rule


def test_structured_message_ignores_headers_that_would_be_attributes() -> None:
    event = CloudEvent(id="1", source="/s", type="t")
    headers, data = to_structured(event)
    assert isinstance(headers, Headers)
    for odd in (("ce-id", "other"), ("ce-bad_name", "x"), ("CE-ID", "y")):
        assert from_nats(NATSMessage([odd, *headers.multi_items()], data)) == event


def test_json_payload_is_decoded_only_when_somebody_looks() -> None:
    event = from_nats(NATSMessage([*CORE, ("ce-datacontenttype", "application/json")], b"{broken"))
    assert (event.id, event.kind, event.payload) == ("1", DataKind.JSON, b"{broken")
    with pytest.raises(CloudEventError, match="no JSON") as caught:
        _ = event.data
    assert caught.value.attribute == "data"
    assert event != from_nats(NATSMessage([*CORE, ("ce-datacontenttype", "application/json")], b"{}"))


def test_payload_is_not_copied() -> None:
    payload = b"x" * 1000
    assert from_nats(NATSMessage(CORE, payload)).payload is payload


def test_text_is_sent_in_the_charset_that_its_type_names() -> None:
    def payload(content_type: str) -> bytes:
        return to_binary(CloudEvent(id="1", source="/s", type="t", datacontenttype=content_type, data="é")).data

    assert payload("text/plain") == payload('text/plain; Charset="UTF-8"') == "é".encode()
    assert payload("text/plain; a=b; charset=iso-8859-1") == b"\xe9"
    for content_type in ("text/plain;charset=us-ascii", "text/plain;charset=nonsense", "text/plain;charset=hex"):
        with pytest.raises(CloudEventError, match="charset"):
            payload(content_type)


def test_message_id_is_found_by_the_server_and_differs_for_different_events() -> None:
    event = CloudEvent(id="a b", source="/s", type="t", strict=False)
    headers = to_binary(event, msg_id=True).headers
    assert isinstance(headers, Headers)
    assert lookup(bytes(headers), b"Nats-Msg-Id") == b"/s a%20b"
    assert from_nats(to_structured(event, msg_id=True)) == from_nats(to_binary(event, msg_id=True)) == event
    assert message_id(event) != message_id(CloudEvent(id="b", source="/s a", type="t", strict=False))


def test_package_imports_neither_asyncio_nor_arrow() -> None:
    code = (
        "import sys, headwater.cloudevents; "
        "bad = {'asyncio', 'socket', 'ssl', 'threading', 'pyarrow', 'dataclasses'} & set(sys.modules); "
        "assert not bad - {'threading'}, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_headers_that_were_changed_are_read_as_they_are_now() -> None:
    block = bytes(to_binary(CloudEvent(id="1", source="/s", type="t")).headers)
    message = Message("orders", b"", "", block)
    assert from_nats(message).id == "1"
    message.headers["ce-id"] = "2"
    assert from_nats(message).id == "2"
    del message.headers["ce-type"]
    assert refusal(message.headers).rule == "missing"
    with pytest.raises(CloudEventError, match="type"):
        from_nats(message)


def test_headers_put_on_a_message_that_came_without_are_read() -> None:
    message = Message("orders", b"")
    for name, value in to_binary(CloudEvent(id="1", source="/s", type="t")).headers.items():
        message.headers[name] = value
    assert from_nats(message).id == "1"


@pytest.mark.parametrize("value", ["caf\u00e9", "x\u00a0y", "x\ty"])
def test_strict_reading_refuses_a_value_outside_printable_ascii(value: str) -> None:
    lines = [*CORE, ("ce-note", value)]
    assert refusal(lines, strict=True).attribute == "note"


def test_a_dataschema_without_a_scheme_is_refused_when_reading_strictly_and_when_writing() -> None:
    for schema in ("/relative", "example.com/schema", "//host/schema", "schema"):
        assert from_nats(NATSMessage([*CORE, ("ce-dataschema", schema)], b"")).dataschema == schema
        assert refusal([*CORE, ("ce-dataschema", schema)], strict=True).rule == "not a URI"
        with pytest.raises(CloudEventError, match="not a URI"):
            CloudEvent(id="1", source="/s", type="t", dataschema=schema)


@pytest.mark.parametrize("text", ['{"id":"1"}', None, 5, ["x"]])
def test_a_json_text_that_is_no_bytes_is_refused_by_name(text: Any) -> None:
    for read in (from_json, from_batch):
        with pytest.raises(CloudEventError, match=type(text).__name__):
            read(text)
