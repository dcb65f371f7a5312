"""Public nkeys: their spelling, and that nothing else passes for one."""

import base64
from binascii import crc_hqx

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.nkey import NkeyKind, decode_nkey, encode_nkey

LETTERS = {
    NkeyKind.ACCOUNT: "A",
    NkeyKind.CLUSTER: "C",
    NkeyKind.SERVER: "N",
    NkeyKind.OPERATOR: "O",
    NkeyKind.USER: "U",
    NkeyKind.CURVE: "X",
}
kinds = st.sampled_from(list(NkeyKind))
keys = st.binary(min_size=32, max_size=32)


@given(kinds, keys)
def test_an_nkey_is_56_characters_that_begin_with_its_kind_and_check(kind: NkeyKind, key: bytes) -> None:
    made = encode_nkey(kind, key)
    assert len(made) == 56
    assert made[0] == LETTERS[kind]
    raw = base64.b32decode(made)
    assert raw[1:33] == key
    assert crc_hqx(raw[:33], 0) == int.from_bytes(raw[33:], "little")


@given(kinds, kinds, keys)
def test_a_key_is_read_back_as_its_own_kind_only(kind: NkeyKind, other: NkeyKind, key: bytes) -> None:
    assert decode_nkey(encode_nkey(kind, key), other) == (key if kind is other else None)


@given(keys, st.integers(0, 55), st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))
def test_a_changed_letter_is_noticed(key: bytes, position: int, letter: str) -> None:
    made = encode_nkey(NkeyKind.USER, key)
    changed = made[:position] + letter + made[position + 1 :]
    assert decode_nkey(changed, NkeyKind.USER) == (key if changed == made else None)


@pytest.mark.parametrize(
    "text", ["", "U", "U" * 56, "u" * 56, "U" * 55, "U" * 57, "\u0660" * 56, "=" * 56, "U" * 10_000]
)
def test_anything_else_is_no_key(text: str) -> None:
    assert decode_nkey(text, NkeyKind.USER) is None
