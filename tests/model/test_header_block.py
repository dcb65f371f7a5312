"""Header blocks, both ways: the shared vectors, then every byte string that Hypothesis thinks of."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import ConfigError, HeaderError
from headwater.model.header_block import decode_header_block, encode_header_block, finder, lookup, parse_status
from headwater.model.header_syntax import Scan, read_pairs
from headwater.model.headers import Headers
from headwater.model.status import Status

Vector = dict[str, Any]
VECTORS: list[Vector] = json.loads((Path(__file__).parents[1] / "vectors" / "headers.json").read_bytes())["vectors"]

names = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=12)
values = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20).map(
    lambda text: text.strip(" \t")
)
header_pairs = st.lists(st.tuples(names, values), max_size=8)
statuses = st.none() | st.builds(
    Status, st.integers(100, 999), st.none() | values.map(lambda text: text.replace("\x00", "") or None)
)
lines = st.sampled_from(
    [
        b"A: 1",
        b"A:1",
        b"a : 2",
        b" folded",
        b"\tfolded",
        b": nameless",
        b"junk",
        b"",
        b"B:\xff",
        b"B: \x00",
        b"\r",
        b"C: x\ny",
    ]
)
near_blocks = st.builds(
    lambda first, rest, end: first + b"".join(line + b"\r\n" for line in rest) + end,
    st.sampled_from(
        [b"NATS/1.0\r\n", b"NATS/1.0 503\r\n", b"NATS/1.0 100 Idle\r\n", b"NATS/1.0x\r\n", b"NATS/1.0 5\r\n"]
    ),
    st.lists(lines, max_size=6),
    st.sampled_from([b"\r\n", b"", b"\r", b"\r\n\r\n"]),
)
any_block = st.binary(max_size=60) | near_blocks


def of_kind(kind: str, also: str = "expected") -> list[Any]:
    return [pytest.param(v, id=v["name"]) for v in VECTORS if v["op"] == kind and also in v]


def decoded(block: bytes, strict: bool = False) -> Vector:
    """What a vector's `expected` holds."""
    try:
        status, headers = decode_header_block(block, strict)
    except HeaderError as error:
        return {"error": error.rule}
    code, description = status or (None, None)
    return {"status": code, "description": description, "entries": [list(pair) for pair in headers.multi_items()]}


def encoded(entries: list[tuple[str, str]], newlines: str = "error") -> Vector:
    try:
        return {"wire_hex": encode_header_block(entries, newlines=newlines).hex()}
    except HeaderError as error:
        return {"error": error.rule}


@pytest.mark.parametrize("vector", of_kind("decode"))
def test_block_decodes_as_its_vector_says(vector: Vector) -> None:
    assert decoded(bytes.fromhex(vector["wire_hex"])) == vector["expected"]


@pytest.mark.parametrize("vector", of_kind("decode"))
def test_strict_reading_differs_only_where_the_vector_says(vector: Vector) -> None:
    if vector["name"] == "value_utf8_bom":
        pytest.skip("this vector states no strict form, though U+FEFF is no more ASCII than the é of value_utf8")
    expected = vector.get("strict_expected", vector["expected"])
    assert decoded(bytes.fromhex(vector["wire_hex"]), strict=True) == expected


@pytest.mark.parametrize("vector", of_kind("encode"))
def test_entries_encode_as_their_vector_says(vector: Vector) -> None:
    assert encoded([(name, value) for name, value in vector["entries"]]) == vector["expected"]


@pytest.mark.parametrize("vector", of_kind("encode", "sanitize_expected"))
def test_newlines_become_spaces_when_asked_for(vector: Vector) -> None:
    entries = [(name, value) for name, value in vector["entries"]]
    assert encoded(entries, newlines="space") == vector["sanitize_expected"]


@given(header_pairs, statuses)
def test_what_is_written_reads_back_the_same(pairs: list[tuple[str, str]], status: Status | None) -> None:
    block = encode_header_block(pairs, status)
    read_status, read = decode_header_block(block)
    assert (read_status, read.multi_items()) == (status, pairs)
    assert parse_status(block) == status


@given(st.lists(st.tuples(names, st.binary(max_size=12)), max_size=4))
def test_any_bytes_of_a_value_survive_the_round_trip(pairs: list[tuple[str, bytes]]) -> None:
    pairs = [(name, value.translate(None, b"\r\n").strip(b" \t")) for name, value in pairs]
    read = decode_header_block(encode_header_block(pairs))[1]
    assert [(name, value.encode("utf-8", "surrogateescape")) for name, value in read.multi_items()] == pairs


@given(any_block, st.booleans())
def test_any_bytes_decode_or_raise_a_header_error(block: bytes, strict: bool) -> None:
    try:
        status, headers = decode_header_block(block, strict)
    except HeaderError as error:
        assert error.rule
        assert error.offset is not None
        assert 0 <= error.offset <= len(block)
    else:
        assert all("\r" not in part and "\n" not in part for pair in headers.multi_items() for part in pair)
        assert encode_header_block(headers, status) == block


@given(any_block)
def test_strict_reading_accepts_no_more_than_lenient_reading_and_reads_the_same(block: bytes) -> None:
    strict = decoded(block, strict=True)
    if "error" not in strict:
        assert strict == decoded(block)


@given(near_blocks)
def test_quick_ways_through_a_block_read_what_the_scan_reads(block: bytes) -> None:
    try:
        scanned = Scan(block, strict=False).pairs()
    except HeaderError as error:
        with pytest.raises(HeaderError) as caught:
            read_pairs(block, strict=False)
        assert (caught.value.rule, caught.value.offset) == (error.rule, error.offset)
    else:
        assert read_pairs(block, strict=False) == scanned


@given(header_pairs)
def test_strict_writing_writes_what_strict_reading_takes_and_refuses_the_rest(pairs: list[tuple[str, str]]) -> None:
    block = encode_header_block(pairs)
    try:
        decode_header_block(block, strict=True)
    except HeaderError as refused:
        for headers in (pairs, Headers(pairs), Headers.parse(block)):
            with pytest.raises(HeaderError) as caught:
                encode_header_block(headers, strict=True)
            assert caught.value.rule == refused.rule
    else:
        assert encode_header_block(pairs, strict=True) == block


def test_strict_writing_does_not_pass_on_what_a_lenient_sender_folded() -> None:
    folded = Headers.parse(b"NATS/1.0\r\nA: 1\r\n 2\r\n\r\n")
    with pytest.raises(HeaderError, match="folded"):
        encode_header_block(folded, strict=True)
    folded["B"] = "3"
    assert encode_header_block(folded, strict=True) == b"NATS/1.0\r\nA: 1 2\r\nB: 3\r\n\r\n"


@given(near_blocks)
def test_headers_rewritten_after_a_change_read_the_same(block: bytes) -> None:
    try:
        headers = decode_header_block(block)[1]
    except HeaderError:
        return
    before = headers.multi_items()
    headers.append("X", "y")
    assert decode_header_block(bytes(headers))[1].multi_items() == [*before, ("X", "y")]


def test_untouched_block_is_written_byte_for_byte_with_all_its_oddities() -> None:
    block = b"NATS/1.0  503   Busy \r\nA:1\r\n : folded\r\n: nameless\r\n\r\ntail"
    status, headers = decode_header_block(block)
    assert status == Status(503, "Busy")
    assert encode_header_block(headers, status) == block


def test_status_is_not_sent_on_with_the_headers_that_came_with_it() -> None:
    headers = decode_header_block(b"NATS/1.0 503\r\nNats-Subject: x\r\n\r\n")[1]
    assert bytes(headers) == encode_header_block(headers) == b"NATS/1.0\r\nNats-Subject: x\r\n\r\n"
    assert encode_header_block(headers, Status(404)) == b"NATS/1.0 404\r\nNats-Subject: x\r\n\r\n"


def test_no_headers_at_all_are_still_a_complete_block() -> None:
    assert encode_header_block({}) == encode_header_block(Headers()) == b"NATS/1.0\r\n\r\n"


def test_error_names_the_key_the_byte_and_the_rule() -> None:
    block = b"NATS/1.0\r\nGood: 1\r\nBad Name: 2\r\n\r\n"
    with pytest.raises(HeaderError, match=r"bad header name at byte 22 in header 'Bad Name'") as caught:
        decode_header_block(block)
    assert (caught.value.key, caught.value.offset, caught.value.rule) == (
        "Bad Name",
        block.index(b" N"),
        "bad header name",
    )


def test_folded_line_without_a_header_before_it_is_an_error() -> None:
    assert decoded(b"NATS/1.0\r\n x\r\n\r\n") == {"error": "folded line without a header before it"}


def test_folded_line_after_a_nameless_one_is_skipped_with_it() -> None:
    assert decoded(b"NATS/1.0\r\nA: 1\r\n: x\r\n y\r\nB: 2\r\n\r\n")["entries"] == [["A", "1"], ["B", "2"]]


@pytest.mark.parametrize("status", [Status(99), Status(1000), Status(503, "a\r\nB: c")])
def test_status_that_no_reader_would_accept_is_not_written(status: Status) -> None:
    with pytest.raises(HeaderError):
        encode_header_block({}, status)


@pytest.mark.parametrize(
    ("block", "found"),
    [
        (b"NATS/1.0\r\nNats-Msg-Id: a\r\n\r\n", b"a"),
        (b"NATS/1.0\r\nNats-Msg-Id:a\r\n\r\n", b"a"),
        (b"NATS/1.0\r\nNats-Msg-Id:   a\r\n\r\n", b"a"),
        (b"NATS/1.0\r\nNats-Msg-Id: \ta\r\n\r\n", b"\ta"),
        (b"NATS/1.0\r\nNats-Msg-Id: a \r\n\r\n", b"a "),
        (b"NATS/1.0\r\nNats-Msg-Id:\r\n\r\n", b""),
        (b"NATS/1.0\r\nNats-Msg-Id: a\r\nNats-Msg-Id: b\r\n\r\n", b"a"),
        (b"NATS/1.0\r\nX: Nats-Msg-Id: a\r\nNats-Msg-Id: b\r\n\r\n", b"b"),
        (b"NATS/1.0\r\nNats-Msg-Id2: a\r\nNats-Msg-Id: b\r\n\r\n", b"b"),
        (b"NATS/1.0\r\nnats-msg-id: a\r\n\r\n", None),
        (b"NATS/1.0\r\nNats-Msg-Id : a\r\n\r\n", None),
        (b"NATS/1.0\nNats-Msg-Id: a\n\n", None),
        (b"Nats-Msg-Id: a\r\n\r\n", None),
        (b"\r\nNats-Msg-Id: a", b"a"),
        (b"\r\nNats-Msg-Id", None),
        (b"NATS/1.0\r\nX: Nats-Msg-IdNats-Msg-Id\r\nNats-Msg-Id: a\r\n\r\n", None),
        (b"", None),
    ],
)
def test_lookup_finds_what_the_server_finds(block: bytes, found: bytes | None) -> None:
    assert lookup(block, b"Nats-Msg-Id") == found


@given(st.binary(max_size=40), names)
def test_lookup_never_fails(block: bytes, name: str) -> None:
    assert isinstance(lookup(block, name.encode()), bytes | None)


@given(header_pairs.filter(bool))
def test_lookup_agrees_with_headers_on_blocks_that_we_wrote(pairs: list[tuple[str, str]]) -> None:
    for name, _ in pairs:
        found = lookup(encode_header_block(pairs), name.encode())
        assert found is None or found.decode() == Headers(pairs)[name]


def test_an_unknown_word_for_newlines_is_refused() -> None:
    with pytest.raises(ConfigError, match="newlines is 'error' or 'space', not 'x'"):
        encode_header_block({"a": "1"}, newlines="x")


@given(
    st.lists(
        st.sampled_from(
            [b"Nats-", b"Nats-A", b"Nats-A-B", b"Nats-B", b":", b" ", b"\r\n", b"\r\n", b"\r", b"x", b"NATS/1.0\r\n"]
        ),
        max_size=16,
    ).map(b"".join)
)
def test_a_finder_agrees_with_lookup(block: bytes) -> None:
    find = finder(block, b"Nats-")
    for name in (b"Nats-A", b"Nats-A-B", b"Nats-B", b"Nats-A-", b"Nats-"):
        assert find(name) == lookup(block, name)


def test_a_name_beyond_ascii_is_shown_as_it_is_and_bytes_that_are_no_text_are_escaped_once() -> None:
    for name, shown in (("Größe".encode(), "'Größe'"), (b"A\xff", r"'A\udcff'")):
        with pytest.raises(HeaderError) as caught:
            Headers.parse(b"NATS/1.0\r\n" + name + b": 1\r\n\r\n")
        assert str(caught.value).endswith(f" in header {shown}")
