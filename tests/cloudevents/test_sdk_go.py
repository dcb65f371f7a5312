"""The dialect of sdk-go, byte for byte, after what its sources do (its issue 1334 lists the differences)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events

from headwater.cloudevents import CloudEvent, CloudEventError, NATSMessage, from_nats, to_binary, to_structured
from headwater.errors import ConfigError
from headwater.model.headers import Headers
from headwater.model.message import Message

CORE = "ce-id: 1\r\nce-source: /s\r\nce-type: t\r\nce-specversion: 1.0\r\n"


def event(**changes: Any) -> CloudEvent:
    return CloudEvent(**({"id": "1", "source": "/s", "type": "t"} | changes))


def message(lines: str, data: bytes = b"") -> Message:
    return Message("events", data, "", f"NATS/1.0\r\n{lines}\r\n".encode())


def read(lines: str, data: bytes = b"") -> CloudEvent:
    return from_nats(message(lines, data), compat="sdk-go")


@pytest.mark.parametrize(
    ("lines", "attribute", "value"),
    [
        ("ce-subject: 100%25 of it\r\n", "subject", "100%25 of it"),
        ('ce-subject: say "hi"\r\n', "subject", 'say "hi"'),
        ("ce-subject: é€\r\n", "subject", "é€"),
        ("ce-time: 2026-11-21T08:15:30.5Z\r\n", "time", "2026-11-21T08:15:30.5Z"),
        ("ce-blob: [1 2 255]\r\n", "blob", "[1 2 255]"),
        ("ce-link: {{https   ex.com /a b  false false  }}\r\n", "link", "{{https   ex.com /a b  false false  }}"),
        ("ce-n: 5\r\nce-n: 6\r\n", "n", "5"),
        ("ce-datacontenttype: text/plain; charset=utf-8\r\n", "datacontenttype", "text/plain; charset=utf-8"),
        ("content-type: application/json\r\n", "datacontenttype", "application/json"),
        ("Ce-Id: 2\r\n", "id", "1"),
    ],
)
def test_headers_of_sdk_go_are_read_as_they_print(lines: str, attribute: str, value: str) -> None:
    assert read(CORE + lines, b"{}").attributes[attribute] == value


@pytest.mark.parametrize("lines", ["", "Ce-Specversion: 1.0\r\nce-id: 9\r\n", "Content-Type: text/plain\r\n"])
def test_message_without_the_exact_header_is_structured(lines: str) -> None:
    text = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":5}'
    assert read(lines, text) == event(data=5)
    assert from_nats(NATSMessage(None, text), compat="sdk-go") == event(data=5)


@pytest.mark.parametrize(
    ("lines", "attribute", "rule"),
    [
        ("ce-specversion: 1.0\r\n", "id", "missing"),
        (CORE + "ce-time: noon\r\n", "time", "not RFC3339"),
        (CORE + "ce-bad_name: 1\r\n", "bad_name", "bad name"),
        (CORE + "ce-subject: a\x07\r\n", "subject", "control character"),
        (CORE.replace("ce-id: 1", "ce-id: \u00a0"), "id", "empty"),
        (CORE + "ce-time: 2026-11-21t08:15:30Z\r\n", "time", "not a time for Go"),
        (CORE + "ce-time: 2026-11-21T08:15:30z\r\n", "time", "not a time for Go"),
        (CORE + "ce-time: 2026-06-30T23:59:60Z\r\n", "time", "not a time for Go"),
        (CORE.replace("1.0", "0.3"), "specversion", "unsupported"),
    ],
)
def test_message_that_is_no_event_is_refused_by_rule(lines: str, attribute: str, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        read(lines)
    assert (caught.value.attribute, caught.value.rule) == (attribute, rule)
    assert caught.value.header is None or caught.value.header.startswith("ce-")


def test_binary_mode_is_written_as_sdk_go_writes_it() -> None:
    sent = event(
        subject='100% of "it" é',
        time="2026-11-21t08:15:30.120000000+01:00",
        extensions={"n": 5, "yes": True, "blob": b"\x01\xff"},
        data={"a": 1},
    )
    headers, payload = to_binary(sent, compat="sdk-go")
    lines = (
        "ce-specversion: 1.0\r\nce-id: 1\r\nce-source: /s\r\nce-type: t\r\n"
        'ce-subject: 100% of "it" é\r\nce-time: 2026-11-21T07:15:30.12Z\r\n'
        "ce-n: 5\r\nce-yes: true\r\nce-blob: Af8=\r\nce-datacontenttype: application/json\r\n"
    )
    assert bytes(headers) == f"NATS/1.0\r\n{lines}\r\n".encode()  # type: ignore[arg-type]
    assert payload == b'{"a":1}'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-11-21T08:15:30Z", "2026-11-21T08:15:30Z"),
        ("2026-11-21T08:15:30.000Z", "2026-11-21T08:15:30Z"),
        ("2026-11-21T08:15:30.1234567891Z", "2026-11-21T08:15:30.123456789Z"),
        ("2026-11-21t00:15:30.10+01:00", "2026-11-20T23:15:30.1Z"),
        ("2026-11-21T23:59:59-00:00", "2026-11-21T23:59:59Z"),
        ("2026-12-31T23:59:59.9-00:01", "2027-01-01T00:00:59.9Z"),
    ],
)
def test_time_is_written_as_go_prints_it(text: str, written: str) -> None:
    headers = to_binary(event(time=text), compat="sdk-go").headers
    assert isinstance(headers, Headers)
    assert headers["ce-time"] == written


@pytest.mark.parametrize(
    ("changes", "attribute", "rule"),
    [
        ({"subject": " x"}, "subject", "blank at the end of a value"),
        ({"subject": "x "}, "subject", "blank at the end of a value"),
        ({"id": "x\u00a0"}, "id", "blank at the end of a value"),
        ({"type": "\u3000x"}, "type", "blank at the end of a value"),
        ({"time": "2016-12-31T23:59:60Z"}, "time", "not a time for Go"),
        ({"time": "0000-01-01T00:00:00Z"}, "time", "not a time for Go"),
        ({"time": "9999-12-31T23:59:59-00:01"}, "time", "not a time for Go"),
        ({"time": "0001-01-01T00:00:00+00:01"}, "time", "not a time for Go"),
    ],
)
def test_value_that_would_not_arrive_is_refused(changes: dict[str, Any], attribute: str, rule: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        to_binary(event(**changes), compat="sdk-go")
    assert (caught.value.attribute, caught.value.header, caught.value.rule) == (attribute, f"ce-{attribute}", rule)


def test_structured_mode_is_written_without_a_content_type() -> None:
    headers, payload = to_structured(event(data=5), compat="sdk-go")
    assert not headers
    assert json.loads(payload)["data"] == 5
    with_id = to_structured(event(data=5), compat="sdk-go", msg_id=True).headers
    assert list(with_id or ()) == ["Nats-Msg-Id"]


def test_dialect_that_nobody_knows_is_refused() -> None:
    for attempt in (to_binary, to_structured):
        with pytest.raises(ConfigError, match="sdk-go"):
            attempt(event(), compat="sdk-js")  # type: ignore[arg-type]


@given(events())
def test_what_is_written_is_read_again(sent: CloudEvent) -> None:
    try:
        headers, payload = to_binary(sent, compat="sdk-go")
    except CloudEventError as error:
        assert error.rule in ("blank at the end of a value", "not a time for Go")
        return
    come = from_nats(NATSMessage(headers, payload), compat="sdk-go")
    implied = {"datacontenttype": come.datacontenttype} if come.datacontenttype else {}
    assert {**come.attributes, "time": None} == {**implied, **sent.attributes, "time": None}
    assert come.payload == sent.payload


lines = st.lists(st.tuples(st.sampled_from(["ce-specversion", "ce-id", "Ce-Id", "ce-x", "content-type"]), st.text()))


@given(lines, st.binary(max_size=20), st.booleans())
def test_any_message_becomes_an_event_or_our_error(pairs: list[tuple[str, str]], data: bytes, strict: bool) -> None:
    try:
        from_nats(NATSMessage(Headers.of_checked(pairs), data), strict, compat="sdk-go")
    except CloudEventError as error:
        assert error.rule


def test_blanks_at_the_ends_go_where_sdk_go_trims_and_stay_where_it_does_not() -> None:
    lines = CORE.replace("ce-id: 1", "ce-id: \u00a01\u3000") + "ce-subject: \u00a0\r\nce-note: x\u00a0\r\n"
    attributes = read(lines).attributes
    assert (attributes["id"], attributes.get("subject"), attributes["note"]) == ("1", None, "x\u00a0")
    sent = event(extensions={"note": "x\u00a0"})
    assert from_nats(to_binary(sent, compat="sdk-go"), compat="sdk-go") == sent


def test_structured_mode_has_a_time_that_go_reads_and_no_other() -> None:
    message = to_structured(event(time="2026-11-21t08:15:30.50z", data=5), compat="sdk-go")
    assert json.loads(message.data)["time"] == "2026-11-21T08:15:30.5Z"
    assert from_nats(message, compat="sdk-go").data == 5
    for text in ("2026-11-21t08:15:30Z", "2016-12-31T23:59:60Z"):
        with pytest.raises(CloudEventError, match="not a time for Go"):
            from_nats(to_structured(event(time=text)), compat="sdk-go")
    with pytest.raises(CloudEventError, match="not a time for Go"):
        to_structured(event(time="2016-12-31T23:59:60Z"), compat="sdk-go")
