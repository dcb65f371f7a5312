"""What `json_span` passes as JSON is JSON: it is called through `read_plain`, because its functions are C when compiled."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import json_values

from headwater.cloudevents import CloudEvent, CloudEventError, from_json
from headwater.cloudevents.json_format import read_any
from headwater.cloudevents.plain_json import read_plain

BEFORE = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":'
# 61 levels are judged in the pass, the 62nd is left to msgspec.
DEEP = [b"[" * depth + b"]" * depth for depth in (60, 61, 62, 63, 64, 65, 200)]


def around(value: bytes) -> bytes:
    return BEFORE + value + b"}"


def outcome(read_event: CloudEvent | CloudEventError) -> object:
    if isinstance(read_event, CloudEventError):
        return read_event.rule, read_event.attribute
    return list(read_event.attributes.items()), read_event.kind, read_event.payload, read_event.is_verified


def read(text: bytes, *, generally: bool) -> object:
    try:
        return outcome(read_any(text, False) if generally else from_json(text))
    except CloudEventError as error:
        return outcome(error)


@pytest.mark.parametrize(
    "value",
    [
        *(b"0 -0 10 -1 1.5 0.25 1e5 1E+5 12.5e-30 -0.0e0 1e999 true false null".split()),
        b'""',
        b'"a b"',
        b'"\\"\\\\\\/\\b\\f\\n\\r\\t"',
        b"[]",
        b"{}",
        b'[ ]',
        b'{ }',
        b'[1 , 2,\n3 ]',
        b'{"a" : 1 , "a":{"":[{},[]]}}',
        b'[[[[]]],{"x":{"y":{}}}]',
        b'"\\u00e9"',
        b'{"\\u0041":"\\ud83d\\ude00"}',
        '{"é":"日本"}'.encode(),
        *DEEP,
    ],
)  # fmt: skip
def test_json_is_passed(value: bytes) -> None:
    event = read_plain(around(value))
    assert event is not None
    assert event.payload == value
    assert read(around(value), generally=False) == read(around(value), generally=True)


@pytest.mark.parametrize(
    "value",
    [
        *(
            b"00 01 -01 - -x +1 .5 1. 1.e5 1e 1e+ 1e- 0x1 tru truf fals falsy nul nulL True NaN Infinity -Infinity".split()
        ),
        *(b'" "\\" "\\x" "\\u12" "\\u12g4" \'a\''.split()),
        b'"\x00"',
        b'"\x1f"',
        b'"\xff"',
        b'"\xc3"',
        b'"\xed\xa0\x80"',
        *(
            b'[ ] [1 [1} {1} {a:1} {"a"} {"a":} {"a":1 {"a":1] {"a":1,} [1,] [,1] [,] {,} [1,,2] [1:2] {"a":1:2}'.split()
        ),
        *(b'{"a":1,"b"} {"a" 1} {1:1} [tru] [01] [1.] ["a\\q"] {"a":nul} [[] [[1]'.split()),
        b"1 2",
        b"[1 2]",
        b"[1]]",
        b"{}{}",
        b"",
        b" ",
        b"[" * 61 + b"]" * 60,
        b"[" * 70 + b"]" * 69,
        b"[" * 61 + b"]" * 60 + b"}",
    ],
)
def test_what_is_no_json_is_refused(value: bytes) -> None:
    assert read_plain(around(value)) is None
    with pytest.raises(CloudEventError):
        from_json(around(value))


pieces = st.sampled_from(
    [*b'{}[],:"\\ 0129.-+eEtrufalsn\n\t\x00\x1f\x7f\xc3\xa9\xff', *(ord(character) for character in "abxyz/")]
).map(lambda byte: bytes([byte])) | st.sampled_from(
    [b'"a":', b"true", b"null", b"\\u00e9", b"\\ud800", b"[[", b"]]", b"1e5"]
)


@given(st.lists(pieces, max_size=12).map(b"".join))
def test_any_value_is_judged_as_the_general_way_judges_it(value: bytes) -> None:
    assert read(around(value), generally=False) == read(around(value), generally=True)
    if (event := read_plain(around(value))) is not None:
        msgspec.json.decode(event.payload)


@given(json_values, st.booleans(), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), pieces), max_size=3))
def test_any_changed_event_is_read_as_the_general_way_reads_it(
    data: object, spaced: bool, changes: list[tuple[int, int, bytes]]
) -> None:
    members = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "time": "2026-11-21T08:15:30Z"}
    members |= {"datacontenttype": "application/json", "traceparent": "00-4bf9", "n": 7, "data": data}  # type: ignore[dict-item]
    text = json.dumps(members, ensure_ascii=False, indent=1 if spaced else None).encode("utf-8", "surrogatepass")
    for position, dropped, added in changes:
        at = position % (len(text) + 1)
        text = text[:at] + added + text[at + dropped :]
    assert read(text, generally=False) == read(text, generally=True)
