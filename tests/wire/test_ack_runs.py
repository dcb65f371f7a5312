"""Which publishes one acknowledgement may be for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.ack_runs import is_next


@given(st.binary(max_size=8).filter(lambda prefix: not prefix[-1:].isdigit()), st.integers(0, 10**12))
def test_the_next_number_behind_the_same_words_goes_on(prefix: bytes, number: int) -> None:
    as_long = len(str(number)) == len(str(number + 1))
    assert is_next(b"%b%d" % (prefix, number), b"%b%d" % (prefix, number + 1)) == as_long
    assert not is_next(b"%b%d" % (prefix, number), b"%b%d" % (prefix, number + 2))
    assert not is_next(b"%b%d" % (prefix, number + 1), b"%b%d" % (prefix, number))


@pytest.mark.parametrize(
    ("before", "reply"), [(b"", b""), (b"a.1", b"b.2"), (b"a.9", b"a.:"), (b"a", b"b"), (b"9", b"0")]
)
def test_anything_else_does_not(before: bytes, reply: bytes) -> None:
    assert not is_next(before, reply)
