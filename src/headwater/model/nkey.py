"""Public nkeys: NATS's text form of an Ed25519 (or X25519) public key, 56 characters whose first letter is the kind.

1 byte kind │ 32 bytes key │ 2 bytes CRC-16/XMODEM of both, little-endian      base32, without padding
"""

import base64
from binascii import Error, crc_hqx
from enum import IntEnum

_KEY_BYTES = 32
_TEXT_LENGTH = 56


class NkeyKind(IntEnum):
    """The first byte; the comment is the first letter."""

    ACCOUNT = 0  # A
    CLUSTER = 2 << 3  # C
    SERVER = 13 << 3  # N
    OPERATOR = 14 << 3  # O
    USER = 20 << 3  # U
    CURVE = 23 << 3  # X


def encode_nkey(kind: NkeyKind, key: bytes) -> str:
    """The spelling of a 32-byte public key of this kind."""
    body = bytes([kind]) + key
    return base64.b32encode(body + crc_hqx(body, 0).to_bytes(2, "little")).decode("ascii")


def decode_nkey(text: str, kind: NkeyKind) -> bytes | None:
    """The 32 bytes of a public key of this kind; None for anything else."""
    if len(text) != _TEXT_LENGTH or not text.isascii():
        return None
    try:
        raw = base64.b32decode(text)
    except Error:
        return None
    body = raw[: 1 + _KEY_BYTES]
    if body[0] != kind or crc_hqx(body, 0) != int.from_bytes(raw[1 + _KEY_BYTES :], "little"):
        return None
    return body[1:]
