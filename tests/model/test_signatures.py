"""Signatures and their base64: right ones, and everything else."""

import base64

from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from headwater.model.signatures import decode_base64, is_signed

KEY = SigningKey(bytes(range(32)))
PUBLIC = bytes(KEY.verify_key)
SIGNATURE = KEY.sign(b"nonce").signature


def test_only_the_signature_itself_is_one() -> None:
    assert is_signed(PUBLIC, b"nonce", SIGNATURE)
    assert not is_signed(PUBLIC, b"nonce ", SIGNATURE)
    assert not is_signed(bytes(SigningKey(bytes(32)).verify_key), b"nonce", SIGNATURE)


@given(st.binary(max_size=100), st.binary(max_size=40))
def test_no_bytes_raise(signature: bytes, key: bytes) -> None:
    assert not is_signed(PUBLIC, b"nonce", signature)
    assert not is_signed(key, b"nonce", SIGNATURE)


@given(st.binary())
def test_base64_is_read_in_either_alphabet_padded_or_not(data: bytes) -> None:
    for text in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        assert decode_base64(text.decode()) == data
        assert decode_base64(text.decode().rstrip("=")) == data


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert decode_base64(text) is None or isinstance(decode_base64(text), bytes)
