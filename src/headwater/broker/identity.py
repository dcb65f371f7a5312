"""Server ids: public nkeys of the kind "server", 56 characters that begin with N.

    1 byte 0x68 (prefix N) │ 32 bytes key │ 2 bytes CRC-16/XMODEM, little-endian      base32, without padding

The key is random and has no private half: the id only has to be unique, and to look to clients as nats-server's does.
"""

import base64
from binascii import crc_hqx

_PREFIX_SERVER = 13 << 3


def server_id(random_bytes: bytes) -> str:
    """The id made of 32 random bytes."""
    body = bytes([_PREFIX_SERVER]) + random_bytes
    return base64.b32encode(body + crc_hqx(body, 0).to_bytes(2, "little")).decode("ascii")
