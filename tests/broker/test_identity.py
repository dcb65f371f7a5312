"""A server's names for itself are public nkeys."""

import base64
from binascii import crc_hqx

from hypothesis import given
from hypothesis import strategies as st

from headwater.broker.identity import CURVE, SERVER, public_nkey


@given(st.sampled_from([(SERVER, "N"), (CURVE, "X")]), st.binary(min_size=32, max_size=32))
def test_an_nkey_is_56_characters_that_begin_with_its_kind_and_check(kind: tuple[int, str], key: bytes) -> None:
    made = public_nkey(kind[0], key)
    assert len(made) == 56
    assert made[0] == kind[1]
    raw = base64.b32decode(made)
    assert raw[1:33] == key
    assert crc_hqx(raw[:33], 0) == int.from_bytes(raw[33:], "little")
