"""Server ids are public nkeys of the kind "server"."""

import base64
from binascii import crc_hqx

from hypothesis import given
from hypothesis import strategies as st

from headwater.broker.identity import server_id


@given(st.binary(min_size=32, max_size=32))
def test_an_id_is_56_characters_that_begin_with_n_and_check(key: bytes) -> None:
    made = server_id(key)
    assert len(made) == 56
    assert made[0] == "N"
    raw = base64.b32decode(made)
    assert raw[1:33] == key
    assert crc_hqx(raw[:33], 0) == int.from_bytes(raw[33:], "little")
