"""Percent-encoding and unescaping of header values, beyond the vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cloudevents import CloudEventError, decode_header_value, encode_header_value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_from_printable_ascii_without_blanks(text: str) -> None:
    wire = encode_header_value(text)
    assert wire.isascii()
    assert all("!" <= c <= "~" and c != '"' for c in wire)
    assert decode_header_value(wire) == decode_header_value(wire, strict=True) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_form_of_older_senders_reads_as_the_same_text(text: str) -> None:
    quoted = '"' + encode_header_value(text).replace("%20", " ").replace("\\", "\\\\").replace("%22", '\\"') + '"'
    assert decode_header_value(quoted, strict=True) == text


@given(st.text('"\\%aé e20C3\udcc3\udca9\ud800'), st.booleans())
def test_any_header_value_decodes_or_raises_our_error(value: str, strict: bool) -> None:
    try:
        decoded = decode_header_value(value, strict)
    except CloudEventError as error:
        assert error.rule in ("invalid UTF-8", "quoted-string", "malformed percent")
    else:
        decoded.encode()


def test_error_names_attribute_header_and_value() -> None:
    with pytest.raises(CloudEventError) as caught:
        decode_header_value("%C0%A0", attribute="subject", header="ce-subject")
    error = caught.value
    assert (error.attribute, error.header, error.value, error.rule) == (
        "subject",
        "ce-subject",
        "%C0%A0",
        "invalid UTF-8",
    )
