"""The index written by a clean stop, so that the next start reads it instead of the data.

`log.index` has the facts that `examine` would get by reading every segment, the offsets without a record, and a
document of the layer above (JetStream: its table of subjects). It is trusted only when the log's state names its
CRC32C, which a close writes last and the first write after it removes (so after a crash the index is ignored), and when
every segment has the size and the newest one the head page that the index records. Otherwise the segments are read.

`log.checkpoint` holds the same as of some moment while the log was open, behind a CRC32C, the log's identity and the
offsets `[start, end)` of that moment. After a crash, what it says of a segment holds as long as the segment is there, in
the same generation and at least as long, and its mark reaches as far; what was written since is read, and so is a
segment that was written anew. It covers only what
was durable. Neither file is ever needed: whatever does not match is read from the segments. A bit that flipped in a batch
at rest does not show in them; it is found and reported when the batch is read.

MessagePack; every list of numbers is the bytes of its array, little-endian.
"""

import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
from google_crc32c import value as crc32c

from headwater.durable_files.documents import NO_IDENTITY
from headwater.durable_files.files import Files
from headwater.streams.head_page import HEAD_PAGE_SIZE, Mark
from headwater.streams.index import SparseIndex
from headwater.streams.offset_set import OffsetSet
from headwater.streams.recovery import SegmentFacts, end_without_zeros, examine, note_head
from headwater.streams.segment import segment_name
from headwater.streams.window import SpoiledBytes
from headwater.streams.writer import CHECKPOINT_FILE

INDEX_FILE = "log.index"
VERSION = 1
CHECKPOINT_MAGIC = b"HWC1"
CHECKPOINT_HEAD = struct.Struct("<4sI")
CHECKPOINT_REST = struct.Struct("<8sQQ")


class IndexedSegment(msgspec.Struct, array_like=True):
    """The facts about one segment; the fields are those of SegmentFacts."""

    base_offset: int
    end_offset: int
    end_position: int
    record_count: int
    dead: int
    first_timestamp_ns: int | None
    last_timestamp_ns: int | None
    spoiled: list[tuple[int, int, int, int | None]]
    offsets: bytes
    positions: bytes
    times: bytes
    latest: int
    generation: int = 0


class CleanIndex(msgspec.Struct, array_like=True):
    """The whole file. `absent`: pairs of start and end. `document`: of the layer above, b"" for none."""

    version: int
    segments: list[IndexedSegment]
    absent: bytes
    document: bytes


def encode_index(segments: Sequence[SegmentFacts], absent: OffsetSet, start: int, end: int, document: bytes) -> bytes:
    """The file's contents."""
    flat = array("Q", [edge for pair in absent.ranges(start, end) for edge in pair])
    return msgspec.msgpack.encode(
        CleanIndex(VERSION, [_indexed(facts) for facts in segments], _little_endian(flat).tobytes(), document)
    )


def load_index(files: Files, directory: str, crc: int, bases: Sequence[int]) -> CleanIndex | None:
    """The index, if the state names it and the segments match it; else None. Raises OSError."""
    try:
        file = files.open(f"{directory}/{INDEX_FILE}")
    except FileNotFoundError:
        return None
    try:
        content = file.pread(file.size(), 0)
    finally:
        file.close()
    if (crc32c(content) or 1) != crc:
        return None
    index = msgspec.msgpack.decode(content, type=CleanIndex)
    if index.version != VERSION or [segment.base_offset for segment in index.segments] != list(bases):
        return None
    return index


class Checkpoint(NamedTuple):
    """A checkpoint whose CRC matched."""

    contents: CleanIndex
    start: int
    end: int


def encode_checkpoint(content: bytes, identity: bytes, start: int, end: int) -> bytes:
    """The file's contents; `content` is that of an index, of a log `[start, end)`."""
    rest = CHECKPOINT_REST.pack(identity, start, end) + content
    return CHECKPOINT_HEAD.pack(CHECKPOINT_MAGIC, crc32c(rest)) + rest


def load_checkpoint(files: Files, directory: str, identity: bytes, bases: Sequence[int]) -> Checkpoint | None:
    """The last checkpoint, without the segments that were dropped since; None when there is none, when it is damaged or of
    another log, and when a segment is gone that should be there. Raises OSError."""
    read = read_checkpoint(files, directory)
    if read is None or read.owner != identity or not bases:
        return None
    _, start, end, content = read
    index = msgspec.msgpack.decode(content, type=CleanIndex)
    index.segments = [segment for segment in index.segments if segment.base_offset >= bases[0]]
    known = [segment.base_offset for segment in index.segments]
    if index.version != VERSION or not known or known != list(bases[: len(known)]):
        return None
    return Checkpoint(index, start, end)


class StoredCheckpoint(NamedTuple):
    """The file, its contents not yet decoded. `owner`: the log's identity; `NO_IDENTITY` when it is damaged."""

    owner: bytes
    start: int
    end: int
    content: bytes


DAMAGED = StoredCheckpoint(NO_IDENTITY, 0, 0, b"")


def read_checkpoint(files: Files, directory: str) -> StoredCheckpoint | None:
    """The checkpoint's file; None when there is none. Raises OSError."""
    try:
        file = files.open(f"{directory}/{CHECKPOINT_FILE}")
    except FileNotFoundError:
        return None
    try:
        data = file.pread(file.size(), 0)
    finally:
        file.close()
    at = CHECKPOINT_HEAD.size + CHECKPOINT_REST.size
    if len(data) < at:
        return DAMAGED
    magic, crc = CHECKPOINT_HEAD.unpack_from(data)
    owner, start, end = CHECKPOINT_REST.unpack_from(data, CHECKPOINT_HEAD.size)
    if magic != CHECKPOINT_MAGIC or crc32c(data[CHECKPOINT_HEAD.size :]) != crc:
        return DAMAGED
    return StoredCheckpoint(owner, start, end, data[at:])


def facts_of(
    files: Files, directory: str, index: CleanIndex, identity: bytes, grown_to: int | None = None
) -> list[SegmentFacts] | None:
    """The facts that `examine` would find; None when a segment has changed. `grown_to`: for a checkpoint, after which
    segments may have been rewritten and the last one extended, up to this offset; its `file_size` is the present one.
    Raises OSError."""
    found = []
    may_have_grown = grown_to is not None
    ends = [segment.base_offset for segment in index.segments[1:]]
    for segment, end in zip(index.segments, [*ends, grown_to or 0], strict=True):
        name = segment_name(segment.base_offset)
        facts = SegmentFacts(
            name,
            segment.base_offset,
            segment.end_position,
            SparseIndex.restored(
                HEAD_PAGE_SIZE,
                _numbers("Q", segment.offsets),
                _numbers("Q", segment.positions),
                _numbers("q", segment.times),
                segment.latest,
            ),
            end_offset=segment.end_offset,
            end_position=segment.end_position,
            record_count=segment.record_count,
            first_timestamp_ns=segment.first_timestamp_ns,
            last_timestamp_ns=segment.last_timestamp_ns,
            spoiled=[SpoiledBytes(*piece) for piece in segment.spoiled],
            dead=segment.dead,
            checked=False,
        )
        file = files.open(f"{directory}/{name}")
        try:
            size = file.size()
            is_last = segment is index.segments[-1]
            if size < HEAD_PAGE_SIZE:
                return None
            known = segment.end_position
            if is_last and not may_have_grown and end_without_zeros(file.pread, known, size) > known:
                return None
            # A segment may end in zeros again: the cut that removed them was not synced when the power failed.
            facts.file_size = size if is_last and may_have_grown else segment.end_position
            note_head(facts, file.pread(HEAD_PAGE_SIZE, 0), identity)
            if may_have_grown and facts.page_in_order and facts.generation > segment.generation:
                facts = examine(file.pread, file.size(), name, segment.base_offset, identity, end)
                segment.generation = facts.generation
        finally:
            file.close()
        if not facts.page_in_order or facts.head is None or facts.head.generation != segment.generation:
            return None
        if size < facts.end_position:
            return None
        if may_have_grown and (facts.mark is None or _reach(facts.mark, is_last) < segment.end_offset):
            return None  # an older copy of the file with the same length, because room was reserved ahead in it
        found.append(facts)
    return found


def _reach(mark: Mark, is_last: bool) -> int:
    """How far a segment must have reached for this to be its mark. A checkpoint has what it knows of the newest segment
    marked as durable; in other segments a mark covers later offsets, too."""
    return mark.durable_end if is_last else mark.assigned_end


def absences_of(index: CleanIndex) -> OffsetSet:
    """The offsets that hold no record."""
    edges = _numbers("Q", index.absent)
    absent = OffsetSet()
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        absent.add(start, end)
    return absent


def _indexed(facts: SegmentFacts) -> IndexedSegment:
    return IndexedSegment(
        facts.base_offset,
        facts.end_offset,
        facts.end_position,
        facts.record_count,
        facts.dead,
        facts.first_timestamp_ns,
        facts.last_timestamp_ns,
        [(p.position, p.end_position, p.start_offset, p.end_offset) for p in facts.spoiled],
        _little_endian(facts.index.offsets).tobytes(),
        _little_endian(facts.index.positions).tobytes(),
        _little_endian(facts.index.times).tobytes(),
        facts.index.latest,
        facts.generation,
    )


def _numbers(kind: Literal["Q", "q"], packed: bytes) -> "array[int]":
    numbers: array[int] = array(kind)
    numbers.frombytes(packed)
    return _little_endian(numbers)


def _little_endian(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
