"""HighwayHash, 64 bits: the checksum of every record in nats-server's blocks (Alakuijala, Cox and Wassenberg, 2016).

State: four lanes of 64 bits in each of v0, v1, mul0 and mul1, here 16 numbers in a row. A packet of 32 bytes is added to
the lanes, which multiply and shuffle each other; a rest of less than 32 bytes is padded in a way that depends on its size.
All sums are modulo 2^64: the masks are for Python's numbers, C has them for nothing.
"""

from collections.abc import Sequence

import cython

MASK = 0xFFFFFFFFFFFFFFFF
LOW = 0xFFFFFFFF
_PACKET = 32
_STARTS = (
    0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3,
    0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377,
)  # fmt: skip
_ROUNDS = 4  # at the end


def begin(key: bytes) -> list[int]:
    """The state before any data; `key`: 32 bytes. Raises ValueError for another length."""
    if len(key) != _PACKET:
        raise ValueError("a key of HighwayHash has 32 bytes")
    lanes = [int.from_bytes(key[at : at + 8], "little") for at in range(0, _PACKET, 8)]
    swapped = [_swapped(lane) for lane in lanes]
    return [start ^ lane for start, lane in zip(_STARTS, [*lanes, *swapped], strict=True)] + list(_STARTS)


def digest(begun: Sequence[int], data: bytes) -> int:
    """The hash of `data`, a number of 64 bits."""
    whole = len(data) // _PACKET
    state = absorb(begun, data, whole)
    left = data[whole * _PACKET :]
    if left:
        state = absorb(_with_size(state, len(left)), _padded(left), 1)
    for _ in range(_ROUNDS):
        turned = [_swapped(state[at]).to_bytes(8, "little") for at in (2, 3, 0, 1)]
        state = absorb(state, b"".join(turned), 1)
    return (state[0] + state[4] + state[8] + state[12]) & 0xFFFFFFFFFFFFFFFF


def absorb(state: Sequence[int], data: bytes, packets: cython.Py_ssize_t) -> Sequence[int]:
    """The state after so many packets of 32 bytes."""
    a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3 = state
    for at in range(0, packets * 32, 32):
        w0, w1, w2, w3 = _word(data, at), _word(data, at + 8), _word(data, at + 16), _word(data, at + 24)
        b0 = (b0 + c0 + w0) & MASK
        c0 ^= ((b0 & LOW) * (a0 >> 32)) & MASK
        a0 = (a0 + d0) & MASK
        d0 ^= ((a0 & LOW) * (b0 >> 32)) & MASK
        b1 = (b1 + c1 + w1) & MASK
        c1 ^= ((b1 & LOW) * (a1 >> 32)) & MASK
        a1 = (a1 + d1) & MASK
        d1 ^= ((a1 & LOW) * (b1 >> 32)) & MASK
        b2 = (b2 + c2 + w2) & MASK
        c2 ^= ((b2 & LOW) * (a2 >> 32)) & MASK
        a2 = (a2 + d2) & MASK
        d2 ^= ((a2 & LOW) * (b2 >> 32)) & MASK
        b3 = (b3 + c3 + w3) & MASK
        c3 ^= ((b3 & LOW) * (a3 >> 32)) & MASK
        a3 = (a3 + d3) & MASK
        d3 ^= ((a3 & LOW) * (b3 >> 32)) & MASK
        a0 = (a0 + _low_merge(b1, b0)) & MASK
        a1 = (a1 + _high_merge(b1, b0)) & MASK
        a2 = (a2 + _low_merge(b3, b2)) & MASK
        a3 = (a3 + _high_merge(b3, b2)) & MASK
        b0 = (b0 + _low_merge(a1, a0)) & MASK
        b1 = (b1 + _high_merge(a1, a0)) & MASK
        b2 = (b2 + _low_merge(a3, a2)) & MASK
        b3 = (b3 + _high_merge(a3, a2)) & MASK
    return [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3]


def _word(data: cython.p_uchar, at: cython.Py_ssize_t) -> cython.ulonglong:
    """8 bytes, the low one first. In C `data` is the bytes themselves: no Python number is made for each."""
    if not cython.compiled:
        return int.from_bytes(data[at : at + 8], "little")
    word: cython.ulonglong = 0
    place: cython.Py_ssize_t
    for place in range(8):
        word |= cython.cast(cython.ulonglong, data[at + place]) << (8 * place)
    return word


def _low_merge(v1: cython.ulonglong, v0: cython.ulonglong) -> cython.ulonglong:
    """Bytes of both in another order; by shifts, because a mask of more than 31 bits would be one of Python's numbers."""
    return (
        ((v0 >> 24) & 0xFF)
        | (((v1 >> 32) & 0xFF) << 8)
        | (v0 & 0xFF0000)
        | (((v0 >> 40) & 0xFF) << 24)
        | (((v1 >> 48) & 0xFF) << 32)
        | (((v0 >> 8) & 0xFF) << 40)
        | ((v1 >> 56) << 48)
        | ((v0 & 0xFF) << 56)
    )


def _high_merge(v1: cython.ulonglong, v0: cython.ulonglong) -> cython.ulonglong:
    return (
        ((v1 >> 24) & 0xFF)
        | (((v0 >> 32) & 0xFF) << 8)
        | (v1 & 0xFF0000)
        | (((v1 >> 40) & 0xFF) << 24)
        | (((v1 >> 8) & 0xFF) << 32)
        | (((v0 >> 48) & 0xFF) << 40)
        | ((v1 & 0xFF) << 48)
        | ((v0 >> 56) << 56)
    )


def _swapped(lane: int) -> int:
    return (lane >> 32 | lane << 32) & 0xFFFFFFFFFFFFFFFF


def _with_size(state: Sequence[int], size: int) -> Sequence[int]:
    """The state with the size of the rest mixed in."""
    added = [(lane + (size << 32) + size) & 0xFFFFFFFFFFFFFFFF for lane in state[:4]]
    return [*added, *(_turned(lane, size) for lane in state[4:8]), *state[8:]]


def _turned(lane: int, size: int) -> int:
    """Both halves rotated to the left by `size` bits."""
    low, high = ((half << size | half >> (32 - size)) & 0xFFFFFFFF for half in (lane & 0xFFFFFFFF, lane >> 32))
    return high << 32 | low


def _padded(left: bytes) -> bytes:
    """The last packet: whole words of 4 bytes first, then 1 to 3 bytes in places of their own."""
    size, odd = len(left), len(left) & 3
    words = left[: size - odd]
    packet = bytearray(_PACKET)
    packet[: len(words)] = words
    if size & 16:
        packet[28:] = left[size - 4 :]
    elif odd:
        rest = left[len(words) :]
        packet[16], packet[17], packet[18] = rest[0], rest[odd >> 1], rest[odd - 1]
    return bytes(packet)
