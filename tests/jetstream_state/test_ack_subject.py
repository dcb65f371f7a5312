"""Ack subjects in both forms, as the regular expressions of the protocol would read them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.jetstream_state.ack_subject import AckSubject, deliveries_of

SHORT = re.compile(rb"[^.]*(?:\.[^.]*){4}\.([0-9]{1,19})\.([0-9]{1,19})\.[^.]*\.[^.]*", re.DOTALL)
LONG = re.compile(rb"[^.]*(?:\.[^.]*){6}\.([0-9]{1,19})\.([0-9]{1,19})(?:\.[^.]*){2,}", re.DOTALL)
LARGEST = (1 << 63) - 1


def read(subject: bytes) -> tuple[int, int] | None:
    where = AckSubject()
    return (where.stream_sequence, where.consumer_sequence) if where.read(subject) else None


def expected(subject: bytes) -> tuple[int, int] | None:
    found = SHORT.fullmatch(subject) or LONG.fullmatch(subject)
    if found is None or max(int(found[1]), int(found[2])) > LARGEST:
        return None
    return int(found[1]), int(found[2])


@given(st.integers(0, LARGEST), st.integers(0, LARGEST), st.sampled_from([b"S.C", b"_.hash.S.C", b"hub.hash.S.C"]))
def test_both_forms_name_the_delivery(stream: int, count: int, middle: bytes) -> None:
    assert read(b"$JS.ACK.%b.1.%d.%d.123.0" % (middle, stream, count)) == (stream, count)


@given(st.lists(st.sampled_from([b"", b"1", b"22", b"x", b"9" * 19, b"9" * 20, b"\xb2", b"-1"]), max_size=14))
def test_it_is_an_ack_subject_where_the_protocol_has_it_so(tokens: list[bytes]) -> None:
    subject = b".".join(tokens)
    assert read(subject) == expected(subject)


@given(st.lists(st.sampled_from([b"", b"1", b"22", b"x", b"9" * 19, b"9" * 20, b"\xb2", b"-1"]), max_size=9))
def test_behind_a_known_head_it_is_the_same(tokens: list[bytes]) -> None:
    head, where = b"$JS.ACK.S.C.", AckSubject()
    subject = head + b".".join(tokens)
    found = (where.stream_sequence, where.consumer_sequence) if where.read_behind(subject, len(head)) else None
    assert found == (expected(subject) if SHORT.fullmatch(subject) else None)


@given(st.binary(max_size=60), st.integers(0, 70))
def test_behind_any_head_any_bytes_are_read_or_refused(subject: bytes, start: int) -> None:
    assert AckSubject().read_behind(subject, start) in (True, False)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(subject: bytes) -> None:
    assert read(subject) == expected(subject)


@pytest.mark.parametrize("number", [LARGEST + 1, 10**19 - 1])
def test_a_number_above_63_bits_is_none(number: int) -> None:
    assert read(b"$JS.ACK.S.C.1.%d.1.123.0" % number) is None


def test_both_forms_say_how_often_it_was_delivered() -> None:
    assert deliveries_of(b"$JS.ACK.S.C.3.1.2.123.0") == 3
    assert deliveries_of(b"$JS.ACK._.hash.S.C.4.1.2.123.0") == 4
    assert deliveries_of(b"$JS.ACK.S.C.x.1.2.123.0") == -1
