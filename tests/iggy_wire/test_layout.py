"""Fields in bytes: there and back, and every way in which bytes can be too few, too many or wrong."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import IggyError
from headwater.iggy_wire.layout import (
    BOOL,
    BYTES32,
    NAME8,
    REST,
    TEXT32,
    U8,
    U16,
    U32,
    U64,
    Inside,
    Many,
    Optional,
    Padding,
    Reader,
    Record,
)


@dataclass(frozen=True)
class Sample:
    number: int
    name: str
    maybe: int | None
    many: list[int]
    rest: bytes


SAMPLE = Record(Sample, number=U64, name=NAME8, maybe=Optional(U32), _gap=Padding(b"\0\0"), many=Many(U16), rest=REST)
SAMPLES = st.builds(
    Sample,
    st.integers(0, (1 << 64) - 1),
    st.text(min_size=1, max_size=60).filter(lambda text: len(text.encode()) < 256),
    st.none() | st.integers(0, (1 << 32) - 1),
    st.lists(st.integers(0, 65535), max_size=5),
    st.binary(max_size=20),
)


@given(SAMPLES)
def test_a_record_is_read_as_it_was_written(sample: Sample) -> None:
    assert SAMPLE.decode(SAMPLE.write(sample)) == sample


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(raw: bytes) -> None:
    try:
        found = SAMPLE.decode(raw)
    except IggyError:
        return
    assert SAMPLE.decode(SAMPLE.write(found)) == found


@pytest.mark.parametrize(
    ("field", "value", "raw"),
    [
        (U8, 5, b"\5"),
        (BOOL, True, b"\1"),
        (TEXT32, "é", b"\2\0\0\0\xc3\xa9"),
        (BYTES32, b"\xff", b"\1\0\0\0\xff"),
        (Optional(U8), None, b"\0"),
        (Optional(U8, padded=True), None, b"\0\0"),
        (Optional(U8, padded=True), 7, b"\1\7"),
        (Inside(U8), 7, b"\1\0\0\0\7"),
        (Many(U8, count=None), [1, 2], b"\1\2"),
    ],
)
def test_each_field_has_its_bytes(field: Any, value: Any, raw: bytes) -> None:
    assert field.write(value) == raw
    reader = Reader(raw)
    assert field.read(reader) == value
    reader.finish()


@pytest.mark.parametrize(
    ("field", "raw", "name"),
    [
        (U32, b"\1\2", "invalid_command"),
        (NAME8, b"\0", "invalid_command"),
        (NAME8, b"\5ab", "invalid_command"),
        (NAME8, b"\1\xff", "invalid_utf8"),
        (Inside(U8), b"\2\0\0\0\7\7", "invalid_command"),
        (Many(U8), b"\xff\xff\xff\xff", "invalid_command"),
    ],
)
def test_what_is_none_is_refused(field: Any, raw: bytes, name: str) -> None:
    with pytest.raises(IggyError) as caught:
        field.read(Reader(raw))
    assert caught.value.name == name


def test_a_number_that_does_not_fit_and_a_tail_are_refused() -> None:
    with pytest.raises(IggyError) as caught:
        U8.write(256)
    assert caught.value.name == "invalid_number_encoding"
    with pytest.raises(IggyError):
        Record(dict, number=U8).decode(b"\1\2")
