# cython: boundscheck=True, wraparound=True
"""One segment as readers see it: a file, the part of it that is published, and the way to a batch in it.

Belongs to the loop thread. The file handle is the reader's own (the writer has another), opened when first needed, and
given back by `release`. Batches are checked as they are read. `range_at` returns a large one unread, if this process
wrote it or found it intact before: damage that happens after that goes unnoticed here. Bytes that are written but not
published are out of reach: `end_position` is the limit of every read.
"""

import errno
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.headwater.durable_files.files import OsFile
    from cython.cimports.headwater.streams.log_format import BatchHeader, StoredRecord
    from cython.cimports.headwater.streams.record_search import can_search, find_record, find_records, likely_place
    from cython.cimports.headwater.streams.stepping import step_over
else:
    from headwater.durable_files.files import OsFile
    from headwater.streams.log_format import BatchHeader, StoredRecord
    from headwater.streams.record_search import can_search, find_record, find_records, likely_place
    from headwater.streams.stepping import step_over

from headwater.durable_files.files import File, FileRange, Files
from headwater.streams.head_page import HEAD_PAGE_SIZE
from headwater.streams.index import SPACING, SparseIndex
from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    RECORD_HEAD_SIZE,
    body_is_intact,
    decode_batch_header,
    read_records,
)
from headwater.streams.recovery import SegmentFacts
from headwater.streams.walking import walk
from headwater.streams.window import FoundBatch, SpoiledBytes, Window

SUFFIX = ".log"
NEW_SUFFIX = ".log.new"  # a segment whose head page may not be durable yet; swept away by recovery
OFFSET_DIGITS = 20
SMALLEST_READ = 64 << 10  # bytes; a pread of 64 KiB from the page cache costs about what one of 4 KiB does
LARGEST_READ = 1 << 20
SEARCHED_BATCH = 1 << 13  # bytes; of a larger one a single record is looked for
# Places for headers of such batches of one open segment, some 200 bytes each. Each entry of the index has one of them: of
# 1,100 batches that are read at random, 950 have their own.
MOST_KNOWN = 1024
_LAST_PLACE: cython.Py_ssize_t = MOST_KNOWN - 1
FEW = 4  # times as large as what is read of it is a batch that is not read as a whole, once it is known
LARGE_BATCH = 1 << 15  # bytes; larger batches are sent from the file, and it is remembered that they are intact


class RangedBatch(NamedTuple):
    """A batch whose body was not read."""

    header: BatchHeader
    body: FileRange


def segment_name(base_offset: int) -> str:
    """File name of the segment that starts at this offset; sorts like the number."""
    return f"{base_offset:0{OFFSET_DIGITS}d}{SUFFIX}"


def base_offset_of(name: str) -> int | None:
    """The inverse; None for a file that is no segment."""
    digits = name.removesuffix(SUFFIX)
    if digits == name or len(digits) != OFFSET_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits)


class Segment:
    """A readable segment. Offsets `[base_offset, end_offset)`; some may be absent."""

    def __init__(self, files: Files, path: str, identity: bytes, facts: SegmentFacts) -> None:
        self.path = path
        self._files = files
        self.identity = identity
        self._facts = facts
        self._index = facts.index
        self.base_offset = facts.base_offset
        self._file: File | None = None
        self._checked_from = HEAD_PAGE_SIZE if facts.checked else facts.end_position
        self._intact: set[int] = set()  # positions of large batches below `_checked_from` that readers found intact
        # By the last bits of the entry of the index: the large batch behind it. Empty until one is met.
        self._known: list[tuple[int, BatchHeader] | None] = []
        self._met: list[SpoiledBytes] = []  # damage that readers found
        self.keeps_evidence = False  # it holds damaged bytes: never compacted
        self.kept = False  # its reader counts it among those whose files may be open

    @classmethod
    def empty(cls, files: Files, directory: str, identity: bytes, base_offset: int) -> "Segment":
        """A segment that was just created."""
        name = segment_name(base_offset)
        facts = SegmentFacts(name, base_offset, HEAD_PAGE_SIZE, SparseIndex(HEAD_PAGE_SIZE), end_offset=base_offset)
        return cls(files, f"{directory}/{name}", identity, facts)

    @property
    def name(self) -> str:
        return self._facts.name

    @property
    def end_offset(self) -> int:
        return self._facts.end_offset

    @property
    def end_position(self) -> int:
        """Published bytes, head page included; where the next batch goes."""
        return self._facts.end_position

    @property
    def record_count(self) -> int:
        return self._facts.record_count

    @property
    def first_timestamp_ns(self) -> int | None:
        return self._facts.first_timestamp_ns

    @property
    def last_timestamp_ns(self) -> int | None:
        return self._facts.last_timestamp_ns

    @property
    def facts(self) -> SegmentFacts:
        """What is known of the file."""
        return self._facts

    @property
    def dead(self) -> int:
        """Records in the file that were deleted."""
        return self._facts.dead

    @dead.setter
    def dead(self, count: int) -> None:
        self._facts.dead = count

    def replace(self, facts: SegmentFacts) -> None:
        """The file was compacted into another of the same name."""
        self.release()
        self._facts = facts
        self._index = facts.index
        self._checked_from = HEAD_PAGE_SIZE
        self._intact.clear()
        self._met.clear()

    def publish(self, position: int, header: BatchHeader) -> None:
        """Make the batch written at `position` readable."""
        self._facts.add(position, header)

    def batches(self, offset: int, expected_bytes: int) -> Iterator[FoundBatch | SpoiledBytes]:
        """Batches that end above `offset`, from the file, checked; and spoiled stretches from there on. The reads are
        sized for `expected_bytes`. Raises OSError when the file cannot be read."""
        read = partial(self._pread_of, self._facts)
        position, expected = self._facts.index.locate(offset)
        window = min(max(expected_bytes, SMALLEST_READ), LARGEST_READ)
        end, limit = self.end_position, self.end_offset
        for piece in walk(read, position, end, self.identity, expected, limit, window):
            if isinstance(piece, SpoiledBytes) or (piece.header.end_offset > offset and piece.header.holds_records):
                if isinstance(piece, SpoiledBytes):
                    self._note_spoiled(piece)
                else:
                    self._note_met(piece)
                yield piece

    def record_at(self, offset: cython.longlong) -> StoredRecord | None:
        """The record with this offset, checked, without a look at the batches before its own and at most of a large one.
        None where it is not found in this way, and `batches` has to tell what is there. Raises OSError."""
        window: Window | None = None
        place = self._known_place(offset)
        if place is None:
            window = Window(self._look, self.end_position, SPACING)
            place = self._walk_to(offset, window)
        if place is None or not can_search(place[1]):
            return None
        position: cython.longlong = place[0]
        header: BatchHeader = place[1]
        if window is None or header.body_size >= SEARCHED_BATCH:
            return find_record(self._opened(), position, header, self.identity, offset)
        body = window.slice(position + BATCH_HEADER_SIZE, position + header.size)
        records: list[StoredRecord] = []
        if body_is_intact(header, body):
            read_records(body, header.base_offset, offset, 1, 1, records, None, header.version)
        return records[0] if records and records[0].offset == offset else None

    def address(self, offset: cython.longlong, size: cython.p_Py_ssize_t) -> cython.ulonglong:
        """As `LogReader.address`, of a record that is most likely here."""
        if cython.compiled and isinstance(self._file, OsFile):
            place = self._known_place(offset)
            if place is not None:
                header: BatchHeader = place[1]
                file: OsFile = self._file
                size[0] = header.body_size // header.offset_span + RECORD_HEAD_SIZE
                return file.address(size[0], likely_place(place[0] + BATCH_HEADER_SIZE, header, offset))
        return 0

    def records_from(
        self,
        offset: cython.longlong,
        max_records: cython.Py_ssize_t,
        max_bytes: cython.Py_ssize_t,
        at_least_one: cython.bint,
    ) -> list[StoredRecord]:
        """A few records from this offset on, checked, deleted ones too, if they are in a large batch that was met before; []
        where `batches` has to tell. `at_least_one`: the first whatever its size. Raises OSError."""
        place = self._known_place(offset)
        if place is None or not can_search(place[1]):
            return []
        header: BatchHeader = place[1]
        if FEW * max_records > header.offset_span and FEW * max_bytes > header.body_size:
            return []
        file = self._opened()
        return find_records(file, place[0], header, self.identity, offset, max_records, max_bytes, at_least_one)

    def knows(self, offset: cython.longlong) -> cython.bint:
        """Whether this offset is in a large batch that was met before."""
        return self._known_place(offset) is not None

    def batch_of(self, offset: cython.longlong) -> tuple[int, BatchHeader] | None:
        """Where the batch with this offset begins, and its header; None where `batches` has to tell. Raises OSError."""
        return self._known_place(offset) or self._walk_to(offset, Window(self.pread, self.end_position, SPACING))

    def _known_place(self, offset: cython.longlong) -> tuple[int, BatchHeader] | None:
        if not self._known:
            return None
        place: tuple[int, BatchHeader] | None = self._known[self._index.entry(offset) & _LAST_PLACE]
        if place is None:
            return None
        header: BatchHeader = place[1]
        return place if header.base_offset <= offset < header.base_offset + header.offset_span else None

    def _walk_to(self, offset: cython.longlong, window: Window) -> tuple[int, BatchHeader] | None:
        entry = self._index.entry(offset)
        position = self._index.locate(offset)[0]
        while position < self.end_position:
            data, index = window.at(position, BATCH_HEADER_SIZE)
            passed: cython.Py_ssize_t = step_over(data, index, self.identity, offset)
            if passed > 0:
                position += passed
                continue
            header = decode_batch_header(data, index, self.identity)
            if header is None or header.base_offset > offset:
                break
            if offset < header.end_offset and header.holds_records:
                if header.body_size >= SEARCHED_BATCH:
                    self._note_known(entry, position, header)
                return position, header
            position += header.size
        return None

    def _note_known(self, entry: int, position: int, header: BatchHeader) -> None:
        if not self._known:
            self._known = [None] * MOST_KNOWN
        self._known[entry & _LAST_PLACE] = position, header

    def _pread_of(self, facts: SegmentFacts, size: int, position: int) -> bytes:
        """As `pread`, of the file that these facts are about: a reader that has paused may find another."""
        if self._facts is not facts:
            raise OSError(errno.ESTALE, "the segment was rewritten while it was read", self.path)
        return self._opened().pread(size, position)

    def pread(self, size: int, position: int) -> bytes:
        """As `File.pread`. Raises OSError."""
        return self._opened().pread(size, position)

    def _look(self, size: int, position: int) -> bytes:
        """As `pread`, for a small read that is one of many all over the file."""
        file = self._opened()
        return file.look(size, position) if isinstance(file, OsFile) else file.pread(size, position)

    def _note_met(self, batch: FoundBatch) -> None:
        """Note a batch that was read and found intact, if it is large."""
        header = batch.header
        if header.body_size >= SEARCHED_BATCH and batch.is_whole:
            if header.size == batch.end_position - batch.position:  # it is not compressed
                self._note_known(self._index.entry(header.base_offset), batch.position, header)
            if header.body_size >= LARGE_BATCH and batch.position < self._checked_from:
                self._intact.add(batch.position)

    def _note_spoiled(self, piece: SpoiledBytes) -> None:
        """Met while reading; a batch with these bytes in it is not handed out unread any more."""
        if piece not in self._met:
            self._met.append(piece)

    def range_at(self, offset: int) -> RangedBatch | None:
        """The large batch that begins with this offset, its body unread. None when there is none, when it is compressed or
        was not checked since the log was opened, and where files have no ranges. Raises OSError."""
        position, base_offset = self._facts.index.locate(offset)
        if base_offset != offset or (position < self._checked_from and position not in self._intact):
            return None
        file = self._opened()
        header = decode_batch_header(file.pread(BATCH_HEADER_SIZE, position), 0, self.identity)
        if header is None or header.flags or header.base_offset != offset or header.body_size < LARGE_BATCH:
            return None
        end = position + header.size
        if not header.holds_records or end > self.end_position:
            return None
        if any(piece.position < end and position < piece.end_position for piece in (*self._facts.spoiled, *self._met)):
            return None
        body = file.range(position + BATCH_HEADER_SIZE, header.body_size)
        return RangedBatch(header, body) if body is not None else None

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path)
        return self._file

    @property
    def is_open(self) -> bool:
        """Whether a file handle is held."""
        return self._file is not None

    def release(self) -> None:
        """Close the file handle; the next read opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._known.clear()
