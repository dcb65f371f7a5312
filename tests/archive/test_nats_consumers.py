"""States of consumers as nats-server keeps them: both versions, and bytes that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.archive.nats_consumers import ConsumerState, decode_state
from headwater.errors import RemoteProtocolError

SECOND = 1_000_000_000


def test_what_waits_counts_from_the_floor() -> None:
    second = bytes([22, 2, 3, 10, 6, 15, 1, 200, 1, 2, 1, 4, 1, 2, 5])
    assert decode_state(second) == ConsumerState((3, 10), (6, 15), {12: (4, 98 * SECOND)}, {12: 5})
    first = bytes([22, 1, 3, 10, 6, 15, 1, 200, 1, 2, 4, 0])
    assert decode_state(first) == ConsumerState((3, 10), (8, 24), {12: (0, 102 * SECOND)}, {})


@pytest.mark.parametrize("data", [b"", b"\x16", b"\x16\x03\0\0\0\0\0\0", b"\x15\x02\0\0\0\0\0\0", b"\x16\x02\0\0"])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_state(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_state_or_an_error(junk: bytes) -> None:
    try:
        decode_state(b"\x16\x02" + junk)
    except RemoteProtocolError:
        return
