"""The blocks of a stream as nats-server 2.10 to 2.15 keeps them in `msgs/<number>.blk`. Pure: bytes in, records out.

    length (4) │ sequence (8) │ time ns (8) │ size of the subject (2) │ subject │ [size of the header block (4)] │
    header block │ payload │ HighwayHash-64 (8)            all numbers little-endian, the length is that of all of it

The top bit of the length says that there is a header block. Of the sequence, the top bit marks a message that was erased in
place, the next one a tombstone: the message with this sequence, in this block or an earlier one, is deleted. A block may be
compressed: "cmp", 1, the size (uvarint), an S2 stream, and 8 bytes that end it. An encrypted one looks like damage;
`meta.key` beside it says so.

A record with a wrong checksum is skipped and the next one read, while nats-server drops the rest of the block; if the
lengths themselves are invalid, the rest is dropped here, too. Both are reported as `Gap`s.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from headwater.archive.highway_hash import begin, digest
from headwater.archive.s2_frames import FrameReader
from headwater.errors import RemoteProtocolError

_HEAD = 22
_SUM = 8
_HEADERS = 1 << 31
_ERASED = 1 << 63
_TOMBSTONE = 1 << 62
_LARGEST = 32 << 20  # bytes of a record; nats-server's limit


class StoredMessage(NamedTuple):
    """A message as a block has it."""

    sequence: int
    time_ns: int
    subject: bytes
    header_block: bytes
    payload: bytes

    @property
    def stored_size(self) -> int:
        """Bytes of its record, which is what `max_bytes` counts."""
        headers = 4 + len(self.header_block) if self.header_block else 0
        return _HEAD + len(self.subject) + headers + len(self.payload) + _SUM


class Deleted(NamedTuple):
    """The message with this sequence is deleted. `erased`: it was erased in place."""

    sequence: int
    erased: bool


class Gap(NamedTuple):
    """Bytes of a block that cannot be read."""

    at: int
    size: int
    reason: str


class BlockReader:
    """Blocks of one stream."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def read(self, number: int, block: bytes, *, check: bool = True) -> Iterator[StoredMessage | Deleted | Gap]:
        """The records of a block, in its order; `check`: compare their checksums."""
        try:
            data = decompressed(block)
        except RemoteProtocolError as error:
            yield Gap(0, len(block), f"the block cannot be decompressed: {error.message}")
            return
        key = begin(hashlib.sha256(f"{self._stream}-{number}".encode()).digest()) if check else []
        at, end = 0, len(data)
        while at < end:
            record = data[at : at + _LARGEST] if end - at > _LARGEST else data[at:]
            size = int.from_bytes(record[:4], "little") & ~_HEADERS
            if size < _HEAD + _SUM or size > len(record):
                yield Gap(at, end - at, "a record has no possible length")
                return
            yield _parse(record[:size], at, key)
            at += size


def decompressed(block: bytes) -> bytes:
    """The records of a block. Raises RemoteProtocolError."""
    if len(block) < 5 or block[:4] != b"cmp\x01":
        return block
    at = 4
    while at < len(block) and block[at] & 0x80:
        at += 1
    reader = FrameReader()
    content = reader.feed(block[at + 1 : -_SUM])
    reader.finish()
    return content + block[-_SUM:]


def _parse(record: bytes, at: int, key: list[int]) -> StoredMessage | Deleted | Gap:
    with_headers = int.from_bytes(record[:4], "little") & _HEADERS
    sequence, time_ns = (int.from_bytes(record[start : start + 8], "little") for start in (4, 12))
    subject_end = _HEAD + int.from_bytes(record[20:22], "little")
    inner = subject_end + (4 if with_headers else 0)
    end = len(record) - _SUM
    if inner > end:
        return Gap(at, len(record), "a record has no possible length of its subject")
    if key:
        found = digest(key, record[4:20] + record[_HEAD:subject_end] + record[inner:end])
        if found != int.from_bytes(record[end:], "little"):
            return Gap(at, len(record), f"the checksum of sequence {sequence & ~(_ERASED | _TOMBSTONE)} is wrong")
    if sequence & _TOMBSTONE:
        return Deleted(sequence & ~_TOMBSTONE, erased=False)
    if sequence & _ERASED or not sequence:
        return Deleted(sequence & ~_ERASED, erased=True)
    header_end = inner + int.from_bytes(record[subject_end:inner], "little")
    if header_end > end:
        return Gap(at, len(record), "a record has no possible length of its header block")
    subject = record[_HEAD:subject_end]
    return StoredMessage(sequence, time_ns, subject, record[inner:header_end], record[header_end:end])
