"""nats-server's short names."""

import string

from hypothesis import given
from hypothesis import strategies as st

from headwater.model.short_hash import short_hash, short_name


def test_a_name_is_the_one_that_nats_server_gives() -> None:
    assert short_hash("2026-11-22T03:53:29.878290765Z") == "CWxsGP6q"


@given(st.binary(max_size=40))
def test_a_name_has_a_letter_or_a_digit_for_each_byte(numbers: bytes) -> None:
    name = short_name(numbers)
    assert len(name) == len(numbers)
    assert set(name) <= set(string.ascii_letters + string.digits)
