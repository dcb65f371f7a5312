"""The words of the ack protocol."""

import pytest

from headwater.jetstream_documents.acks import Ack, parse_ack


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
