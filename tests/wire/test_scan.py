"""Blanks, tokens, numbers and publish lines, compared with plain Python."""

import re

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.scan import MAX_DIGITS, PublishLine, parse_size, skip_blanks, token_end


@given(st.binary(max_size=40))
def test_tokens_are_separated_by_blanks(data: bytes) -> None:
    buffer, found, position = bytearray(data), [], 0
    while (position := skip_blanks(buffer, position, len(buffer))) < len(buffer):
        end = token_end(buffer, position, len(buffer))
        found.append(bytes(buffer[position:end]))
        position = end
    assert found == [word for word in data.replace(b"\t", b" ").split(b" ") if word]


@given(st.integers(min_value=0, max_value=10**MAX_DIGITS - 1), st.integers(min_value=0, max_value=3))
def test_ascii_digits_are_a_number(value: int, zeros: int) -> None:
    text = bytearray(b"0" * zeros + b"%d" % value)
    assert parse_size(text, 0, len(text)) == (value if len(text) <= MAX_DIGITS else -1)


@given(st.text(max_size=9).filter(lambda text: not (text.isascii() and text.isdigit())))
def test_whatever_else_int_would_take_is_no_number(text: str) -> None:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    assert parse_size(data, 0, len(data)) == -1


FORM = re.compile(rb"(H?)PUB ([!-\xff]+) (?:([!-\xff]+) )?(?:([0-9]{1,9}) )?([0-9]{1,9})\r\n")
LINES = st.lists(
    st.sampled_from(
        [b"PUB ", b"H", b" ", b"a", b"a.b", b"7", b"123", b"1234567890", b"\r\n", b"\r", b"\t", b"\0", b"\xff"]
    ),
    max_size=9,
).map(b"".join)


@given(st.sampled_from([b"PUB a ", b"HPUB a ", b""]), LINES, st.binary(max_size=3))
def test_a_publish_line_is_read_when_it_has_the_common_form(verb: bytes, line: bytes, before: bytes) -> None:
    data = bytearray(before + verb + line + b"\r\n")
    start, read = len(before), PublishLine()
    text = bytes(data[start : data.find(b"\n", start) + 1])
    words = text[:-2].split(b" ")
    with_headers = text.startswith(b"H")
    sizes = words[-2:] if with_headers else words[-1:]
    middle = len(words) - 2 - len(sizes)
    form = FORM.fullmatch(text)
    common = form is not None and middle in (0, 1) and all(re.fullmatch(rb"[0-9]{1,9}", size) for size in sizes)
    assert read.read(data, start, len(data)) == common
    if common:
        reply = words[2] if middle else b""
        assert data[read.subject : read.subject_end] == words[1]
        assert data[read.subject_end + 1 : read.reply_end] == reply
        assert read.with_headers == with_headers
        assert [read.header_size, read.size] == ([int(size) for size in sizes] if with_headers else [0, int(sizes[0])])
        assert read.body == start + len(text)
        assert not read.read(data, start, read.body - 1), "a line that is not complete is no line"
