"""The framing of an S2 stream: chunks with a checksum each, read and written as the bytes come.

    kind (1)   length (3, little-endian)   of the chunk's body
    ff         the stream begins: "S2sTwO", or Snappy's "sNaPpY"
    00         masked CRC-32C of the content (4), an S2 block (compression/s2_block.py)
    01         masked CRC-32C of the content (4), the content as it is
    80 to fe   to be passed over (padding, an index); every other kind is an error

Chunks of at most 64 KiB are written, as Snappy blocks if cramjam is installed and they are smaller, otherwise plain:
nats-server reads both.
"""

from google_crc32c import value as crc32c

from headwater.compression.s2_block import CORRUPT, decode_block
from headwater.compression.snappy import Compress
from headwater.errors import RemoteProtocolError

BEGINNINGS = (b"S2sTwO", b"sNaPpY")
LARGEST = 4 << 20  # bytes of content in one chunk, S2's own limit
WRITTEN = 1 << 16  # bytes of content in a chunk that we write; Snappy's limit
WRONG_SUM = f"{CORRUPT}, crc mismatch"


def masked_sum(content: bytes) -> bytes:
    """The checksum of a chunk as it stands in the stream."""
    crc: int = crc32c(content)
    return ((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


class FrameWriter:
    """Content in, framed bytes out. `compress`: makes a Snappy block of content; None: nothing is compressed. `snappy`:
    readers of Snappy alone can read it, too."""

    def __init__(self, compress: Compress | None, *, snappy: bool = False) -> None:
        self._compress = compress
        self._beginning = BEGINNINGS[snappy]
        self._begun = False
        self._held = bytearray()

    def feed(self, content: bytes) -> bytes:
        """The chunks that are full."""
        self._held += content
        out = bytearray()
        whole = len(self._held) - len(self._held) % WRITTEN
        for at in range(0, whole, WRITTEN):
            out += self._chunk(bytes(self._held[at : at + WRITTEN]))
        del self._held[:whole]
        return bytes(out)

    def finish(self) -> bytes:
        """The last chunk, with what is left."""
        content = bytes(self._held)
        self._held.clear()
        return self._chunk(content) if content else b""

    def _chunk(self, content: bytes) -> bytes:
        begin = b"" if self._begun else b"\xff\x06\x00\x00" + self._beginning
        self._begun = True
        body, kind = content, b"\x01"
        if self._compress is not None:
            block = self._compress(content)
            if len(block) < len(content):
                body, kind = block, b"\x00"
        return begin + kind + (len(body) + 4).to_bytes(3, "little") + masked_sum(content) + body


class FrameReader:
    """Framed bytes in, content out. Raises RemoteProtocolError for bytes that are no such stream."""

    def __init__(self) -> None:
        self._begun = False
        self._held = bytearray()

    def feed(self, data: bytes) -> bytes:
        """The content of the complete chunks."""
        held = self._held
        held += data
        out = bytearray()
        at = 0
        while len(held) - at >= 4:
            kind, size = held[at], int.from_bytes(held[at + 1 : at + 4], "little")
            if not self._begun and kind != 0xFF:
                raise RemoteProtocolError(CORRUPT)
            if kind in (0, 1) and size > LARGEST + (LARGEST >> 3):
                raise RemoteProtocolError(CORRUPT, value=size, limit=LARGEST)
            if len(held) - at - 4 < size:
                break
            out += self._content(kind, bytes(held[at + 4 : at + 4 + size]))
            at += 4 + size
        del held[:at]
        return bytes(out)

    def finish(self) -> None:
        """The stream has ended. Raises RemoteProtocolError in the middle of a chunk."""
        if self._held:
            raise RemoteProtocolError(CORRUPT)

    def _content(self, kind: int, body: bytes) -> bytes:
        if kind == 0xFF:
            if body not in BEGINNINGS:
                raise RemoteProtocolError(CORRUPT)
            self._begun = True
            return b""
        if kind >= 0x80:
            return b""
        if kind > 1 or len(body) < 4:
            raise RemoteProtocolError(CORRUPT)
        content = decode_block(body[4:], LARGEST) if kind == 0 else body[4:]
        if masked_sum(content) != body[:4]:
            raise RemoteProtocolError(WRONG_SUM)
        return content
