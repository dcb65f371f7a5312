"""Texts of errors, with names quoted as Go quotes them."""

import pytest

from headwater.wire.error_texts import encode_error, quote


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("a.b", '"a.b"'),
        ("\u00e9", '"\u00e9"'),
        ('"\\\n', '"\\"\\\\\\n"'),
        ("\x01", '"\\x01"'),
        ("\udc80\udcff", '"\\x80\\xff"'),
        ("\u200b", '"\\u200b"'),
        ("\uffff", '"\\uffff"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_unprintable_characters_are_escaped_by_their_size(name: str, quoted: str) -> None:
    assert quote(name) == quoted


def test_bytes_that_are_no_utf8_travel_as_they_came() -> None:
    assert encode_error("x\udcff") == b"-ERR 'x\xff'\r\n"
