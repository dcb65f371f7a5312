"""The short way through a header block gives what the long way gives, or nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_strategies import events, strings

from headwater.cloudevents import CloudEvent, CloudEventError, DataKind, encode_header_value
from headwater.cloudevents.nats_binding import read_any
from headwater.cloudevents.plain_headers import read_plain, write_plain
from headwater.errors import HeaderError
from headwater.model.headers import Headers

LINES = [b"ce-specversion: 1.0", b"ce-id: 1", b"ce-source: /s", b"ce-type: t"]


def block_of(*lines: bytes) -> bytes:
    return b"".join([line + b"\r\n" for line in (b"NATS/1.0", *LINES, *lines)]) + b"\r\n"


def long_way(block: bytes, data: bytes) -> CloudEvent | None:
    try:
        return read_any(Headers.parse(block).multi_items(), data, False)
    except (CloudEventError, HeaderError):
        return None


@pytest.mark.parametrize(
    "line",
    [
        b"ce-time: 2026-11-21T08:15:30.5Z",
        b"ce-subject: two words",
        b"ce-subject:x",
        b"ce-partitionkey: k-1",
        b"ce-typ: near the name of another",
        b"Nats-Msg-Id: 1",
        b"correlation-id:  \xff any bytes\t",
        b"cex: no attribute",
        b"X:",
    ],
)
@pytest.mark.parametrize("data", [b"", b"{}"])
def test_plain_block_is_read_as_the_long_way_reads_it(line: bytes, data: bytes) -> None:
    block = block_of(line, b"ce-datacontenttype: application/json")
    event = read_plain(block, data)
    assert event is not None
    assert event == long_way(block, data)
    assert event.kind is (DataKind.JSON if data else DataKind.ABSENT)


@pytest.mark.parametrize(
    "line",
    [
        b"ce-subject: a%20b",
        b'ce-subject: "a"',
        b"ce-subject: \xc3\xa9",
        b"ce-subject: x ",
        b"ce-subject:  x",
        b"ce-subject: a\tb",
        b"ce-subject:",
        b"ce-id: 2",
        b"ce-data: 1",
        b"ce-: 1",
        b"ce-Bad: 1",
        b"Ce-id: 2",
        b"ce-time: noon",
        b"ce-time: 2026-11-29T08:15:30Z",
        b"ce-subject: a\rb",
        b"ce-subject: a\nb",
        b"content-Type: text/plain",
        b" folded",
        b": no name",
        b"no colon",
        b"ce-x",
        b"b\xc3\xa9: 1",
        b"\r\nce-x: 1",
    ],
)
def test_block_with_an_oddity_is_left_to_the_long_way(line: bytes) -> None:
    assert read_plain(block_of(line), b"") is None


def test_block_that_is_cut_anywhere_is_left_to_the_long_way() -> None:
    block = block_of(b"Nats-Msg-Id: 1", b"ce-subject: x")
    assert read_plain(block, b"") is not None
    assert all(read_plain(block[:end], b"") is None for end in range(len(block)))
    assert read_plain(block + b"x", b"") is None
    assert read_plain(block.replace(b"NATS/1.0", b"NATS/1.0 100"), b"") is None


@pytest.mark.parametrize("missing", range(4))
def test_event_without_a_required_attribute_is_left_to_the_long_way(missing: int) -> None:
    lines = [line for index, line in enumerate(LINES) if index != missing]
    assert read_plain(b"NATS/1.0\r\n" + b"\r\n".join(lines) + b"\r\n\r\n", b"") is None


pieces = st.sampled_from([*LINES, b"ce-time: 2026-11-21T08:15:30Z", b"ce-x: 1", b"ce-", b"ce-data", b": ", b":"]) | (
    st.sampled_from(
        [b" ", b"%20", b'"', b"\r\n", b"\r", b"\n", b"Content-Type: x", b"N: v", b"\xff", b"CE-ID: 1", b"\t"]
    )
    | st.sampled_from([b"ce-specversion: 1.1", b"ce-subject: s"])
)


@given(st.lists(pieces, max_size=6), st.permutations(LINES))
def test_any_block_is_read_as_the_long_way_reads_it_or_not_at_all(odd: list[bytes], lines: list[bytes]) -> None:
    block = b"NATS/1.0\r\n" + b"\r\n".join(lines) + b"\r\n" + b"".join(odd) + b"\r\n\r\n"
    event = read_plain(block, b"x")
    if event is not None:
        assert event == long_way(block, b"x")
        assert list(event.attributes.items()) == list(long_way(block, b"x").attributes.items())  # type: ignore[union-attr]


@given(st.binary(max_size=80))
def test_any_bytes_are_read_as_the_long_way_reads_them_or_not_at_all(text: bytes) -> None:
    assert read_plain(b"NATS/1.0\r\n" + text, b"") is None
    assert read_plain(text, b"") is None


@given(events(extension_values=strings | st.integers(-5, 5) | st.booleans()))
def test_block_is_written_when_every_value_stands_for_itself(event: CloudEvent) -> None:
    block = write_plain(event, b"N: 1\r\n")
    values: list[Any] = list(event.attributes.values())
    plain = all(isinstance(value, str) and encode_header_value(value) == value for value in values)
    if plain and event.kind is not DataKind.TEXT:
        lines = [f"ce-{name}: {value!s}\r\n" for name, value in event.attributes.items()]
        if event.kind is DataKind.JSON and event.datacontenttype is None:
            lines.append("ce-datacontenttype: application/json\r\n")
        assert block == ("NATS/1.0\r\n" + "".join(lines) + "N: 1\r\n\r\n").encode()
    else:
        assert block is None


def test_text_of_a_subclass_of_str_is_written_by_its_value() -> None:
    class Text(str):
        __slots__ = ()

    event = CloudEvent.from_attributes({"specversion": "1.0", "id": "1", "source": "/s", "type": "t", Text("x"): "1"})
    assert write_plain(event, b"") is not None
    assert write_plain(CloudEvent(id="1", source="/s", type="t", subject=Text("x")), b"") is not None
