# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The first page of a segment: the log it belongs to, where it starts, and the high-water marks.

    head page, 4096 bytes = 8 sectors of 512
      sector 0  segment head, written once      | magic "HWS1" | crc | version u16 | flags u16 | identity 8 bytes
                                                | base offset u64 | previous end u64 | created ns i64
                                                | generation u32 | zeros ...
      sector 1  mark slot 0, the two slots are  | magic "HWM1" | crc | identity 8 bytes | durable end u64
      sector 2  mark slot 1  written in turn    | assigned end u64 | zeros ...
      3..7      zeros

`docs/log-format.md` is the specification. Refuses to guess, as log_format.py does. `mark_sector` runs once per write.
"""

import struct
from typing import NamedTuple

import cython
from google_crc32c import value as crc32c

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.headwater.streams.log_format import _put, _put_number, _slice
else:
    from headwater.streams.log_format import _put, _put_number, _slice

from headwater.errors import CorruptLog
from headwater.streams.log_format import HEADER_CRC, OLDEST_VERSION, VERSION

SEGMENT_MAGIC = b"HWS1"
MARK_MAGIC = b"HWM1"

_COMPRESSED: int = 1  # flag of a segment head
SECTOR_SIZE: int = 512  # the unit that a disk writes whole or not at all
HEAD_PAGE_SIZE: int = 4096
MARK_SLOTS: int = 2

SEGMENT_HEAD = struct.Struct("<4sIHH8sQQqI")
MARK = struct.Struct("<4sI8sQQ")
CHECKED_FROM: int = struct.calcsize("<4sI")  # in a sector the crc covers all that follows it, zeros included
MARK_REST = struct.Struct(f"<8sQQ{SECTOR_SIZE - MARK.size}x")  # what is checked
_CRC_SIZE: cython.Py_ssize_t = HEADER_CRC.size
_ZEROS: bytes = bytes(SECTOR_SIZE)


class SegmentHead(NamedTuple):
    """The log that a segment file belongs to, and where the segment starts; earlier segments hold offsets up to
    `previous_end`, which is below `base_offset` when the offsets between were given up. `generation`: how often it was
    written anew. `compressed`: it was written anew with its batches compressed, where that made them smaller."""

    identity: bytes
    base_offset: int
    previous_end: int
    created_ns: int
    generation: int = 0
    compressed: bool = False


class Mark(NamedTuple):
    """The high-water mark: offsets below `durable_end` were durable before the write that carried this mark; offsets
    below `assigned_end` may have been, after it."""

    durable_end: int
    assigned_end: int


def encode_head_page(head: SegmentHead, mark: Mark) -> bytes:
    """The first page of a new segment, with its first mark in slot 0."""
    return (_sealed_sector(_fields(head)) + encode_mark(mark, head.identity)).ljust(HEAD_PAGE_SIZE, b"\0")


def next_generation(page: bytes, *, compressed: bool = False) -> bytes:
    """The head page of the segment written anew: the same but for its generation and whether it is `compressed`. `page` has
    an intact head."""
    head = decode_segment_head(page)
    if head is None:
        raise ValueError("no intact segment head")
    sector = _sealed_sector(_fields(head._replace(generation=head.generation + 1, compressed=compressed)))
    return sector + page[SECTOR_SIZE:]


def encode_mark(mark: Mark, identity: bytes) -> bytes:
    """One sector; it goes to `mark_position(n)` for the n-th write."""
    return mark_sector(mark.durable_end, mark.assigned_end, identity)


def mark_sector(durable_end: cython.longlong, assigned_end: cython.longlong, identity: bytes) -> bytes:
    """As `encode_mark`; every write needs one."""
    if cython.compiled:
        made: bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(_ZEROS), len(_ZEROS))
        crc_at: cython.Py_ssize_t = _put(made, 0, MARK_MAGIC)
        rest_at: cython.Py_ssize_t = crc_at + _CRC_SIZE
        at: cython.Py_ssize_t = _put(made, rest_at, identity)
        at = _put_number(made, at, 8, durable_end)
        _put_number(made, at, 8, assigned_end)
        _put_number(made, crc_at, _CRC_SIZE, crc32c(_slice(made, rest_at, len(_ZEROS))))
        return made
    checked: bytes = MARK_REST.pack(identity, durable_end, assigned_end)
    return MARK_MAGIC + HEADER_CRC.pack(crc32c(checked)) + checked


def mark_position(turn: int) -> int:
    """Where in the file the mark of this turn goes: the slots alternate, so a torn write leaves the older mark intact."""
    return SECTOR_SIZE * (1 + turn % MARK_SLOTS)


def decode_segment_head(page: bytes) -> SegmentHead | None:
    """The segment head in the first sector; None when damaged. Raises CorruptLog for an unknown version."""
    sector = page[:SECTOR_SIZE]
    if not _sector_is_intact(sector, SEGMENT_MAGIC):
        return None
    _, _, version, flags, identity, base_offset, previous_end, created_ns, generation = SEGMENT_HEAD.unpack_from(sector)
    if not OLDEST_VERSION <= version <= VERSION or flags & ~_COMPRESSED:
        raise CorruptLog(
            f"segment at offset {base_offset} has format version {version}, flags {flags:#x}",
            value=(base_offset, base_offset),
            limit=(VERSION, 0),
            hint="it was written by a newer Headwater; open the log with that, or upgrade",
        )
    return SegmentHead(identity, base_offset, previous_end, created_ns, generation, bool(flags & _COMPRESSED))


def decode_marks(page: bytes, identity: bytes) -> tuple[Mark | None, int, bool]:
    """The newest mark in the page, its turn (0 when there is none), and whether both slots are in order: intact, or
    never written (zeros)."""
    newest: Mark | None = None
    newest_turn = 0
    in_order = True
    for turn in range(MARK_SLOTS):
        sector = page[mark_position(turn) : mark_position(turn) + SECTOR_SIZE]
        if not _sector_is_intact(sector, MARK_MAGIC):
            in_order = in_order and sector == bytes(SECTOR_SIZE)
            continue
        _, _, owner, durable_end, assigned_end = MARK.unpack_from(sector)
        if owner != identity:
            in_order = False
        elif newest is None or (durable_end, assigned_end) > newest:
            newest, newest_turn = Mark(durable_end, assigned_end), turn
    return newest, newest_turn, in_order


def _fields(head: SegmentHead) -> bytes:
    return SEGMENT_HEAD.pack(
        SEGMENT_MAGIC,
        0,
        VERSION,
        _COMPRESSED if head.compressed else 0,
        head.identity,
        head.base_offset,
        head.previous_end,
        head.created_ns,
        head.generation,
    )


def _sealed_sector(fields: bytes) -> bytes:
    sector = fields.ljust(SECTOR_SIZE, b"\0")
    crc = HEADER_CRC.pack(crc32c(sector[CHECKED_FROM:]))
    return sector[: CHECKED_FROM - HEADER_CRC.size] + crc + sector[CHECKED_FROM:]


def _sector_is_intact(sector: bytes, magic: bytes) -> bool:
    if len(sector) != SECTOR_SIZE or not sector.startswith(magic):
        return False
    (crc,) = HEADER_CRC.unpack_from(sector, CHECKED_FROM - HEADER_CRC.size)
    return bool(crc32c(sector[CHECKED_FROM:]) == crc)
