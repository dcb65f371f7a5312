"""The words of the ack protocol."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.broker.jetstream.acks import Ack, AckSubject, parse_ack, parse_ack_subject


@pytest.mark.parametrize(
    ("payload", "ack"),
    [
        (b"", Ack("ack")),
        (b"+ACK", Ack("ack")),
        (b"-NAK", Ack("nak")),
        (b'-NAK {"delay": 1500}', Ack("nak", delay=1500)),
        (b"-NAK 1.5s", Ack("nak", delay=1_500_000_000)),
        (b"-NAK 1m2ms", Ack("nak", delay=60_002_000_000)),
        (b"-NAK soon", Ack("nak")),
        (b"+WPI", Ack("progress")),
        (b"+TERM because", Ack("term")),
        (b'+NXT {"batch":2}', Ack("next", request=b'{"batch":2}')),
        (b"what", Ack("unknown")),
    ],
)
def test_a_client_is_understood(payload: bytes, ack: Ack) -> None:
    assert parse_ack(payload) == ack


@given(st.integers(1, 10**18), st.integers(1, 10**18))
def test_the_ack_subject_says_which_delivery_is_meant(stream: int, count: int) -> None:
    assert parse_ack_subject(b"$JS.ACK.S.C.1.%d.%d.123.0" % (stream, count)) == AckSubject(stream, count)


@given(st.binary(max_size=60))
def test_other_subjects_mean_none(subject: bytes) -> None:
    found = parse_ack_subject(subject)
    assert found is None or subject.count(b".") == 8
