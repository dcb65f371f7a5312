"""Blanks, tokens and numbers, held against Python's own."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.scan import MAX_DIGITS, parse_size, skip_blanks, token_end


@given(st.binary(max_size=40))
def test_tokens_are_what_lies_between_blanks(data: bytes) -> None:
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
