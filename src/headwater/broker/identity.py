"""What a server calls itself: public nkeys, 56 characters whose first letter tells the kind (N server, X curve).

    1 byte kind │ 32 bytes key │ 2 bytes CRC-16/XMODEM, little-endian      base32, without padding

The key is random and has no private half: it only has to be unique, and to look to clients as nats-server's does.
"""

import base64
from binascii import crc_hqx

SERVER = 13 << 3  # N
CURVE = 23 << 3  # X


def public_nkey(kind: int, key: bytes) -> str:
    """The spelling of a 32-byte public key of this kind."""
    body = bytes([kind]) + key
    return base64.b32encode(body + crc_hqx(body, 0).to_bytes(2, "little")).decode("ascii")
