"""The short way through a JSON event gives what the long way gives, or nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events, json_values, strings

from headwater.cloudevents import CloudEvent, CloudEventError, to_json
from headwater.cloudevents.json_format import read_any
from headwater.cloudevents.plain_json import read_plain

CORE = '"specversion":"1.0","id":"1","source":"/s","type":"t"'


def long_way(text: bytes) -> CloudEvent | None:
    try:
        return read_any(text, False)
    except CloudEventError:
        return None


def same(one: CloudEvent, other: CloudEvent | None) -> bool:
    return other is not None and (list(one.attributes.items()), one.kind, one.payload) == (
        list(other.attributes.items()),
        other.kind,
        other.payload,
    )


@pytest.mark.parametrize(
    "member",
    [
        '"data":{"a":[1,{"b":"}]\\"\\\\"}]}',
        '"data":"a\\"b"',
        '"data":12.5e3',
        '"data":null',
        '"data":"é"',
        '"data":{},"datacontenttype":"application/vnd.x+json"',
        '"time":"2026-11-21T08:15:30Z"',
        '"partitionkey":"k 1"',
        '"n":-123456789,"z":0,"yes":true,"no":false',
    ],
)
@pytest.mark.parametrize("form", ["{%s,%s}", " {\n%s\t,\r %s } ", "{%s , %s}"])
def test_plain_text_is_read_as_the_long_way_reads_it(member: str, form: str) -> None:
    text = (form % (CORE, member)).encode()
    event = read_plain(text)
    assert event is not None
    assert same(event, long_way(text))
    swapped = (form % (member, CORE)).encode()
    assert read_plain(swapped) == event


@pytest.mark.parametrize(
    "member",
    [
        '"id":"2"',
        '"data":1,"data":2',
        '"data":',
        '"data":}',
        '"data":tru',
        '"data":[1}',
        '"data":"\x01"',
        '"data":"x","datacontenttype":"text/plain"',
        '"data_base64":"AA=="',
        '"subject":"a\\u0062"',
        '"subject":"é"',
        '"subject":""',
        '"subject":"a',
        '"subject":5',
        '"subject":null',
        '"time":"2026-11-29T08:15:30Z"',
        '"Bad":"x"',
        '"":"x"',
        '"n":01',
        '"n":-0',
        '"n":1.0',
        '"n":1234567890',
        '"n":-',
        '"n":null',
        '"n":truefalse',
        '"n"',
        '"n":',
        "",
        "n:1",
    ],
)
def test_text_with_an_oddity_is_left_to_the_long_way(member: str) -> None:
    assert read_plain(f"{{{CORE},{member}}}".encode()) is None


def test_text_that_is_cut_anywhere_is_left_to_the_long_way() -> None:
    text = f'{{{CORE},"n":5,"data":{{"a":"b"}}}}'.encode()
    assert read_plain(text) is not None
    assert all(read_plain(text[:end]) is None for end in range(len(text)))
    assert read_plain(text + b"}") is None
    assert read_plain(b"\xef\xbb\xbf" + text) is None


def test_data_that_is_no_utf8_is_left_to_the_long_way() -> None:
    assert read_plain(b"{" + CORE.encode() + b',"data":"\xff"}') is None


@pytest.mark.parametrize("missing", range(4))
def test_event_without_a_required_attribute_is_left_to_the_long_way(missing: int) -> None:
    members = [member for index, member in enumerate(CORE.split(",")) if index != missing]
    assert read_plain(("{" + ",".join(members) + "}").encode()) is None


pieces = st.sampled_from(["{", "}", "[", "]", ",", ":", '"', "\\", " ", "1", "0", "-", "true", "null", "x", "é"]) | (
    st.sampled_from(['"data"', '"data":{"a":1}', '"x":', '"x":"y"', '"id":"2"', '"subject":"s"', '"data":[', ',"n":7'])
    | st.just('"time":"2026-11-21T08:15:30Z"')
)


@given(st.lists(pieces, max_size=7))
def test_any_text_is_read_as_the_long_way_reads_it_or_not_at_all(odd: list[str]) -> None:
    text = f"{{{CORE},{''.join(odd)}}}".encode()
    event = read_plain(text)
    if event is not None:
        assert same(event, long_way(text))


@given(events(extension_values=strings | st.integers(-5, 5) | st.booleans()), st.sampled_from([None, 1]))
def test_any_event_is_read_as_the_long_way_reads_it_or_not_at_all(event: CloudEvent, indent: int | None) -> None:
    text = to_json(event) if indent is None else json.dumps(json.loads(to_json(event)), indent=indent).encode()
    read = read_plain(text)
    if read is not None:
        assert same(read, long_way(text))


@given(json_values)
def test_any_data_in_a_plain_event_is_read_at_once(data: Any) -> None:
    text = f'{{{CORE},"data":{json.dumps(data)}}}'.encode()
    event = read_plain(text)
    assert event is not None
    assert event.data == data
    assert same(event, long_way(text))
