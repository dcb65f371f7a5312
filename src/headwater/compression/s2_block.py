# cython: boundscheck=True, wraparound=False, initializedcheck=False, nonecheck=False
"""Decode one compressed block of S2, which is Snappy plus one op: "the last offset again", with lengths of its own.

    uvarint size of the content, then ops; the two low bits of the first byte give the kind:

    00  literal    length - 1 in six bits; 60 to 63: it follows in one to four bytes
    01  copy       length - 4 in three bits, offset in eleven; offset 0: the last offset, 5 to 7: a longer length follows
    10  copy       length - 1 in six bits, offset in two bytes
    11  copy       length - 1 in six bits, offset in four bytes

No library on the package index decodes that op, so this decoder is our own; compression uses a library (snappy.py). This
module is hot and compiled: restoring a gigabyte runs through it. It refuses a block whose stated size exceeds `largest`
before allocating memory.
"""

import cython

from headwater.errors import RemoteProtocolError

CORRUPT = "s2: corrupt input"  # nats-server's text


def decode_block(block: bytes, largest: cython.Py_ssize_t, whole: cython.bint = True) -> bytes:
    """The content, at most `largest` bytes. Raises RemoteProtocolError for a damaged block, unless `whole` is False:
    then the content before the first invalid op is returned. Damage that leaves all ops valid changes bytes unnoticed;
    the caller has to detect that.
    """
    end = len(block)
    size, at = _size(block, largest)
    out = bytearray()
    offset = 0
    filled = 0
    while at < end:
        tag = block[at]
        kind = tag & 3
        length = tag >> 2
        at += 1
        if kind == 0:
            if length >= 60:
                more = length - 59
                if at + more > end:
                    return _stopped(out, whole)
                length = int.from_bytes(block[at : at + more], "little")
                at += more
            length += 1
            if length > end - at or length > size - filled:
                return _stopped(out, whole)
            out += block[at : at + length]
            at += length
            filled += length
            continue
        more = 1 if kind == 1 else 2 * kind - 2  # size of the offset in bytes
        if at + more > end:
            return _stopped(out, whole)
        if kind == 1:
            distance = (tag >> 5) << 8 | block[at]
            length = length & 7
            at += 1
            if distance != 0:
                offset = distance
            elif length >= 5:
                more = length - 4
                if at + more > end:
                    return _stopped(out, whole)
                length = int.from_bytes(block[at : at + more], "little")
                length += 4 if more == 1 else (256 if more == 2 else 65536)
                at += more
            length += 4
        else:
            offset = int.from_bytes(block[at : at + more], "little")
            at += more
            length += 1
        if offset <= 0 or offset > filled or length > size - filled:
            return _stopped(out, whole)
        start = filled - offset
        pattern = bytes(out[start : start + min(offset, length)])
        out += pattern if length <= offset else (pattern * (length // offset + 1))[:length]
        filled += length
    return bytes(out) if filled == size else _stopped(out, whole)


def _stopped(out: bytearray, whole: bool) -> bytes:
    """Raise, or return what was decoded before the fault."""
    if whole:
        raise RemoteProtocolError(CORRUPT)
    return bytes(out)


def _size(block: bytes, largest: int) -> tuple[int, int]:
    """The stated size of the content, and the position of the first op. Raises RemoteProtocolError."""
    size = shift = 0
    for at, byte in enumerate(block[:5], 1):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if size > largest:
                break
            return size, at
    raise RemoteProtocolError(CORRUPT, value=size, limit=largest)
