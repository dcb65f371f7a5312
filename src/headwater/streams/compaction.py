"""Compaction: rewrites a segment without its deleted records, or with its batches compressed, or both.

The new file stands beside the old one, complete and durable, before the log's loop thread renames it over the old one;
readers keep the old handle until then. A crash at any moment leaves one of the two complete files, and either is correct:
the records that only the old one holds are still marked as deleted by tombstones elsewhere.

The new file keeps live records with their offsets and time stamps, in batches with their original offset span; and of
the segment's tombstones the ranges still needed: those about earlier segments whose files still contain some of the
records. A last tombstone, possibly empty, records where the segment ended, so that records removed at its end are not
reported as lost. A segment is never removed from the middle of a log for the same reason; as the oldest, it is dropped
as a whole (log.py).

Pure but for the files it is given; runs in the worker thread.
"""

from collections.abc import Sequence
from itertools import chain

from headwater.compression.snappy import Compress
from headwater.durable_files.files import File, Files
from headwater.streams.head_page import HEAD_PAGE_SIZE, decode_segment_head, next_generation
from headwater.streams.index import SparseIndex
from headwater.streams.log_format import DIALECT_IGGY, BatchHeader, encode_batch_header, header_of
from headwater.streams.offset_set import OffsetSet
from headwater.streams.packing import Packer
from headwater.streams.recovery import SegmentFacts
from headwater.streams.segment import NEW_SUFFIX, SUFFIX
from headwater.streams.tombstones import Range, decode_tombstones, encode_tombstones
from headwater.streams.walking import walk
from headwater.streams.window import FoundBatch

READ_BYTES = 1 << 20
WRITE_BYTES = 1 << 20


def worth_compacting(records: int, dead: int) -> bool:
    """Whether half of the `records` in a sealed segment are `dead`, so that compaction gives enough room back."""
    return dead > 0 and dead * 2 >= records


class _Writer:
    """Writes batches to the new file and keeps the facts about it. `compress`: see `rewrite`."""

    def __init__(self, file: File, facts: SegmentFacts, identity: bytes, compress: Compress | None) -> None:
        self.facts = facts
        self._identity = identity
        self._packer = Packer(self.add, compress, identity) if compress is not None else None
        self._file = file
        self._pieces: list[bytes] = []
        self._size = 0
        self._position = HEAD_PAGE_SIZE

    def store(self, header: BatchHeader, body: bytes) -> None:
        """Add a batch of records as readers see it."""
        if self._packer is not None:
            self._packer.add(header, body)
        else:
            self.add(header, encode_batch_header(header, self._identity), body)

    def finish(self) -> None:
        """Write what is pending; no more records follow."""
        if self._packer is not None:
            self._packer.finish()

    def add(self, header: BatchHeader, head: bytes, body: bytes) -> None:
        """Write a finished batch."""
        self.facts.add(self._position + self._size, header)
        self._pieces += (head, body)
        self._size += header.size
        if self._size >= WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._pieces:
            self._file.pwrite(self._pieces, self._position)
            self._position += self._size
            self._pieces, self._size = [], 0


def rewrite(
    files: Files,
    path: str,
    old: SegmentFacts,
    identity: bytes,
    gone: OffsetSet,
    needed: Sequence[Range],
    *,
    keep_evidence: bool = True,
    end_offset: int | None = None,
    compress: Compress | None = None,
) -> SegmentFacts | None:
    """Durably write the remaining records of the sealed segment at `path` to its `.log.new`; returns the facts about
    that file.

    `gone`: the offsets of this segment that are deleted. `needed`: ranges of earlier offsets about which tombstones
    must stay. `end_offset`: the end of the segment, if not the one found in it. `compress`: store the batches
    compressed. None when the segment has damaged bytes, which are left in place as evidence unless the caller wants
    them dropped. Raises OSError.
    """
    end_offset = old.end_offset if end_offset is None else end_offset
    source = files.open(path)
    try:
        page = source.pread(HEAD_PAGE_SIZE, 0)
        if (old.spoiled and keep_evidence) or decode_segment_head(page) is None:
            return None
        target = files.create(path.removesuffix(SUFFIX) + NEW_SUFFIX)
        try:
            new_page = next_generation(page, compressed=compress is not None)
            target.pwrite([new_page], 0)
            facts = SegmentFacts(old.name, old.base_offset, 0, SparseIndex(HEAD_PAGE_SIZE), end_offset=old.base_offset)
            writer = _Writer(target, facts, identity, compress)
            tombstones: list[Range] = []
            for piece in walk(
                source.pread, HEAD_PAGE_SIZE, old.end_position, identity, old.base_offset, old.end_offset, READ_BYTES
            ):
                if not isinstance(piece, FoundBatch):
                    if keep_evidence:
                        return None
                    continue
                if piece.header.holds_records:
                    _copy_live(writer, piece, gone)
                else:
                    tombstones += _still_needed(decode_tombstones(piece.header, piece.body), needed)
            now = old.last_timestamp_ns or 0
            writer.finish()
            for batch in encode_tombstones([*chain.from_iterable(tombstones)], end_offset, now, identity):
                writer.add(*batch)
            writer.flush()
            target.fdatasync()
        finally:
            target.close()
    finally:
        source.close()
    facts.mark, facts.mark_turn, facts.page_in_order = old.mark, old.mark_turn, old.page_in_order
    facts.head = decode_segment_head(new_page)
    facts.file_size = facts.end_position
    return facts


def _copy_live(writer: _Writer, batch: FoundBatch, gone: OffsetSet) -> None:
    header = batch.header
    if not gone.touches(header.base_offset, header.end_offset):
        writer.store(header, batch.body)
        return
    if header.dialect == DIALECT_IGGY:  # an Iggy batch is removed as a whole, once all its messages are deleted
        if gone.count(header.base_offset, header.end_offset) < header.offset_span:
            writer.store(header, batch.body)
        return
    pieces: list[bytes] = []
    times: list[int] = []
    cursor = batch.cursor()
    while cursor.advance():
        if cursor.offset not in gone:
            pieces.append(batch.body[cursor.start : cursor.end])
            times.append(cursor.timestamp_ns)
    if not pieces:
        return
    body = b"".join(pieces)
    span = header.base_offset, header.end_offset
    writer.store(header_of(body, header.dialect, len(pieces), *span, (times[0], times[-1]), header.version), body)


def _still_needed(ranges: Sequence[Range], needed: Sequence[Range]) -> list[Range]:
    """The parts of `ranges` that lie in one of `needed`."""
    return [
        (max(start, low), min(end, high))
        for start, end in ranges
        for low, high in needed
        if max(start, low) < min(end, high)
    ]
