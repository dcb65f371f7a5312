"""The shown subject of a JetStream delivery, after its reply on a route."""

import pytest

from headwater.exchange.shown_subject import find_shown, is_ack_subject

ACK = b"$JS.ACK.s.c.1.2.3.4.5"


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (ACK + b"@orders.eu", b"orders.eu"),
        (b"$JS.ACK.s@s.c@c.1.2.3.4.5@orders@eu.x", b"orders@eu.x"),  # names and subjects may contain `@` too
        (b"$JS.ACK.domain.hash.s.c.1.2.3.4.5.random@orders.eu", b"orders.eu"),
        (ACK, None),
        (ACK + b"@", None),
        (b"$JS.ACK.s.c.1.2.3.4@orders.eu", None),  # one dot too few for an ack subject
        (b"_INBOX.1.2.3.4.5.6.7.8.9@orders.eu", None),
        (b"$JS.ACK", None),
        (b"", None),
    ],
)
def test_the_subject_begins_behind_the_first_at_sign_after_eight_dots(reply: bytes, shown: bytes | None) -> None:
    buffer = bytearray(b"before " + reply + b" after@it")
    at = find_shown(buffer, 7, 7 + len(reply))
    assert (buffer[at + 1 : 7 + len(reply)] if at >= 0 else None) == shown


def test_only_subjects_with_the_prefix_are_ack_subjects() -> None:
    assert is_ack_subject(bytearray(ACK), 0, len(ACK))
    assert not is_ack_subject(bytearray(b"$JS.ACK."), 0, 8)
    assert not is_ack_subject(bytearray(b"$JS.API.STREAM.INFO"), 0, 19)
