"""Decides what the bytes found on disk mean. Pure: no file is touched here.

Two faults must be distinguished. A *torn tail* is what a crash leaves of a batch that was being written: nothing after
it is intact, and it was never acknowledged unless the marks say so. *Corruption in the middle* is what a failing disk
leaves: intact batches follow. A torn tail may be cut (its bytes are kept aside); corruption is skipped, reported with
its offset range, and left where it is.

`examine` walks one segment (walking.py) and keeps what the log needs to know. `decide` takes all segments and the log's
state, and decides what is lost, what to cut, and the first offset that was certainly never used:

0. Nothing is readable before it is durable (sync policy `always`), so a crash alone takes nothing that was ever read: the
   log ends where its file ends. The rest is about files that something else has damaged, too.
1. A write that reaches beyond the last mark in the segment's head page carries one: offsets below `durable_end` are on
   disk, those below `assigned_end` may be given away by this write and later ones. Both are part of the same fdatasync.
   So, when marks are in order, nothing at or above the newest `assigned_end` was ever visible, wherever the tail of the
   file was cut. After a kill `log.end` knows the end exactly, and after a stop the state does; only where the system was
   started anew since, the offsets up to `assigned_end` are skipped.
2. Where marks cannot be trusted (a damaged head page, a segment that is gone, a sync policy under which a power loss
   takes marks along), the reservation of the log's state decides: it is durable before any offset below it is used.
3. Where the state is gone too, the highest end that any intact byte names.

Skipped offsets are never filled again; readers see a gap.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from headwater.streams.end_file import RecordedEnd
from headwater.streams.head_page import (
    HEAD_PAGE_SIZE,
    MARK_SLOTS,
    SECTOR_SIZE,
    Mark,
    SegmentHead,
    decode_marks,
    decode_segment_head,
    mark_position,
)
from headwater.streams.index import SparseIndex
from headwater.streams.log_format import (
    BATCH_HEADER_SIZE,
    DIALECT_NATS,
    IDENTITY_SIZE,
    MARKER_SIZE,
    MAX_OFFSET,
    BatchHeader,
    decode_batch_header,
)
from headwater.streams.log_state import LogState
from headwater.streams.offset_set import OffsetSet
from headwater.streams.tombstones import Range, decode_tombstones
from headwater.streams.walking import walk
from headwater.streams.window import SCAN_WINDOW, Fetch, FoundBatch, SpoiledBytes

NO_END = RecordedEnd()

DamageKind = Literal["torn", "corrupt", "missing"]


@dataclass(frozen=True, slots=True)
class Damage:
    """Offsets `[start, end)` that cannot be served, or bytes that had to be put aside.

    `torn`: the end of the newest segment was no whole batch; cut, and kept in the file `kept`. `corrupt`: bytes in the
    middle fail their checks; left in place. `missing`: the bytes are not there at all. `certain`: some of the offsets
    had been durable, so acknowledged records are lost. Otherwise the log cannot know: most likely the range is a batch
    that was in flight when the process or the power went, or it is empty.
    """

    kind: DamageKind
    start: int
    end: int
    certain: bool
    file: str
    position: int
    size: int
    kept: str = ""

    def __str__(self) -> str:
        where = f"{self.file} at byte {self.position}" if self.file else "whole segment"
        text = f"{self.kind}: offsets [{self.start}, {self.end}), {self.size} bytes, {where}"
        return f"{text}, kept in {self.kept}" if self.kept else text


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What opening the log found. `notes` are faults that cost no record (a damaged copy, a damaged mark)."""

    damage: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    records: int = 0
    next_offset: int = 0

    @property
    def lost(self) -> tuple[Damage, ...]:
        """The damage that certainly cost acknowledged records."""
        return tuple(item for item in self.damage if item.certain and item.start < item.end)


@dataclass(slots=True)
class SegmentFacts:
    """What one segment file holds. `end_offset` and `end_position` are behind its last intact batch; `tail` counts the
    bytes after that, without zeros at the end (room that was reserved). `head` is None when the head page cannot be read.
    `checked`: the CRC of every batch was computed, not taken from an index. `record_count` records are in the file, `dead`
    of them deleted. `absent` are offsets that no record here has, `deletions` the ranges of its tombstones; both are for
    opening (`absences`) and empty afterwards."""

    name: str
    base_offset: int
    file_size: int
    index: SparseIndex
    head: SegmentHead | None = None
    checked: bool = field(default=True, compare=False)
    mark: Mark | None = None
    mark_turn: int = 0
    page_in_order: bool = False
    end_offset: int = 0
    end_position: int = HEAD_PAGE_SIZE
    record_count: int = 0
    first_timestamp_ns: int | None = None
    last_timestamp_ns: int | None = None
    spoiled: list[SpoiledBytes] = field(default_factory=list)
    dead: int = 0
    absent: list[Range] = field(default_factory=list)
    deletions: list[Range] = field(default_factory=list)

    @property
    def generation(self) -> int:
        """0 for a segment that was made by this process, whose head is not kept here."""
        return self.head.generation if self.head is not None else 0

    @property
    def tail(self) -> int:
        return max(0, self.file_size - self.end_position)

    def add(self, position: int, header: BatchHeader, end_position: int | None = None) -> None:
        """Count an intact batch, or the intact part of one, which ends at `end_position`."""
        self.end_position = position + header.size if end_position is None else end_position
        self.end_offset = header.end_offset
        if not header.holds_records:
            return
        self.index.add(header.base_offset, position, header.first_timestamp_ns, header.last_timestamp_ns)
        self.record_count += header.record_count
        if self.first_timestamp_ns is None:
            self.first_timestamp_ns = header.first_timestamp_ns
        self.last_timestamp_ns = header.last_timestamp_ns


class Decision(NamedTuple):
    """What opening is to do: continue at `next_offset`; cut the tail of the last segment at `cut_at` (None: leave it);
    start a new segment when `roll` (the last one must not be written to, or cannot carry the jump)."""

    next_offset: int
    cut_at: int | None
    roll: bool
    damage: list[Damage]
    notes: list[str]

    @property
    def hole(self) -> int | None:
        """Where records of the last write are missing though later ones of it are there: a power loss tore it in the
        middle. None where nothing is missing, or where it had been durable."""
        torn = (item for item in self.damage if item.kind == "corrupt" and not item.certain)
        return min((item.start for item in torn if item.start < item.end), default=None)

    @property
    def has_gap(self) -> bool:
        """Whether offsets behind the last record may have been given away. A power loss after a stop can take the last marks
        and leave the index: unless the next stop writes marks again, each opening reports the same gap."""
        return any(item.kind == "missing" and not item.certain for item in self.damage)

    def rewound(self, facts: "list[SegmentFacts]") -> "Decision":
        """For the copy of another log: go on behind the last record that is there. What was given out and not stored is
        fetched from the origin again, under the same offsets; only what was durable and is gone is a damage."""
        if not facts or (self.roll and facts[-1].end_offset == facts[-1].base_offset):
            return self  # a new segment must not take the name of the last
        damage = [item for item in self.damage if item.certain or item.kind != "missing"]
        return self._replace(next_offset=facts[-1].end_offset, damage=damage)


def examine(fetch: Fetch, file_size: int, name: str, base_offset: int, identity: bytes, limit: int) -> SegmentFacts:
    """Check every batch of a segment file. `limit` is the end of what it may hold."""
    facts = SegmentFacts(name, base_offset, file_size, SparseIndex(HEAD_PAGE_SIZE), end_offset=base_offset)
    note_head(facts, fetch(HEAD_PAGE_SIZE, 0), identity)
    extend(fetch, facts, identity, limit)
    return facts


def extend(fetch: Fetch, facts: SegmentFacts, identity: bytes, limit: int) -> None:
    """Check the batches behind those that `facts` knows, to the end of the file."""
    for piece in walk(fetch, facts.end_position, facts.file_size, identity, facts.end_offset, limit):
        if isinstance(piece, FoundBatch):
            _note_absent(facts, piece)
            facts.add(piece.position, piece.header, piece.end_position)
        elif piece.end_offset is not None:
            facts.spoiled.append(piece)
        else:
            facts.file_size = end_without_zeros(fetch, piece.position, piece.end_position)


def note_head(facts: SegmentFacts, page: bytes, identity: bytes) -> None:
    """What the head page says, if it is one of this log and this segment."""
    head = decode_segment_head(page)
    if head is None or head.identity != identity or head.base_offset != facts.base_offset:
        return
    facts.head = head
    facts.mark, facts.mark_turn, slots_in_order = decode_marks(page, identity)
    padding = page[mark_position(MARK_SLOTS - 1) + SECTOR_SIZE :]
    facts.page_in_order = slots_in_order and facts.mark is not None and len(page) == HEAD_PAGE_SIZE and not any(padding)


def _note_absent(facts: SegmentFacts, batch: FoundBatch) -> None:
    header = batch.header
    if header.base_offset > facts.end_offset:
        facts.absent.append((facts.end_offset, header.base_offset))
    if not header.holds_records:
        facts.deletions.extend(decode_tombstones(header, batch.body))
    elif header.record_count < header.offset_span and header.dialect == DIALECT_NATS:
        cursor = batch.cursor()
        expected = header.base_offset
        while cursor.advance():
            if cursor.offset > expected:
                facts.absent.append((expected, cursor.offset))
            expected = cursor.offset + 1
        if expected < header.end_offset:
            facts.absent.append((expected, header.end_offset))


def end_without_zeros(fetch: Fetch, start: int, end: int) -> int:
    """Behind the last byte of `[start, end)` that is not zero."""
    while end > start:
        size = min(SCAN_WINDOW, end - start)
        kept = fetch(size, end - size).rstrip(b"\0")
        if kept:
            return end - size + len(kept)
        end -= size
    return start


def absences(segments: list[SegmentFacts], start: int, end: int, known: OffsetSet | None = None) -> OffsetSet:
    """The offsets of `[start, end)` that hold no record: deleted ones, and gaps; `known` ones among them. Counts the dead of
    each segment, what is below `start` among them."""
    absent = OffsetSet() if known is None else known
    reached = min(start, segments[0].base_offset) if segments else start
    for facts in segments:
        absent.add(reached, facts.base_offset)
        for gap_start, gap_end in facts.absent:
            absent.add(gap_start, gap_end)
        reached = facts.end_offset
    absent.add(reached, end)
    bases = [facts.base_offset for facts in segments]
    lowest = bases[0] if bases else start
    for low, high in [(lowest, start), *(gone for facts in segments for gone in facts.deletions)]:
        at = max(0, bisect_right(bases, low) - 1)
        while at < len(segments) and bases[at] < high:
            facts = segments[at]
            clipped = min(high, facts.end_offset)
            if clipped > low:
                absent.add(max(low, facts.base_offset), clipped)
            at += 1
    for facts in segments:
        span = facts.end_offset - facts.base_offset
        facts.dead = facts.record_count - (span - absent.count(facts.base_offset, facts.end_offset))
        facts.absent, facts.deletions = [], []
    return absent


def identity_of(fetch: Fetch) -> bytes | None:
    """The identity that a segment file claims: its head's, or the first batch's, which has a fixed place."""
    page = fetch(HEAD_PAGE_SIZE, 0)
    head = decode_segment_head(page)
    if head is not None:
        return head.identity
    first = fetch(BATCH_HEADER_SIZE, HEAD_PAGE_SIZE)
    claimed = first[MARKER_SIZE - IDENTITY_SIZE : MARKER_SIZE]
    return claimed if decode_batch_header(first, 0, claimed) is not None else None


def decide(segments: list[SegmentFacts], state: LogState | None, recorded: RecordedEnd = NO_END) -> Decision:
    """What to do about what was found. `segments` ascending by base offset; `state` is None when the log's state was
    lost (or there never was a log here)."""
    recorded_end = max(recorded.offset, state.reserved_end) if state is not None and state.closed else recorded.offset
    damage: list[Damage] = []
    notes = [f"{facts.name}: damaged head page" for facts in segments if not facts.page_in_order]
    notes += _older_copies(segments, state, recorded)
    first = state.start_offset if state else 0
    # Segments below `start_offset` were dropped on purpose; it was saved before they were removed.
    if segments and state and segments[0].base_offset > first:
        damage.append(Damage("missing", first, segments[0].base_offset, True, "", 0, 0))
    for facts, following in pairwise(segments):
        damage.extend(_spoiled_middle(facts))
        damage.extend(_sealed_end(facts, following))
    if not segments:
        reserved = max(first, recorded_end, state.reserved_end if state else 0)
        if reserved > first:
            damage.append(Damage("missing", first, reserved, True, "", 0, 0))
        return Decision(reserved, None, True, damage, notes)
    last = segments[-1]
    durable = max(recorded.offset, last.mark.durable_end) if last.mark and last.page_in_order else MAX_OFFSET
    damage.extend(_spoiled_middle(last, durable))
    return _decide_end(last, max(first, last.end_offset), recorded_end, recorded, state, damage, notes)


def _older_copies(segments: list[SegmentFacts], state: LogState | None, recorded: RecordedEnd) -> list[str]:
    """Segments that were replaced by earlier copies of themselves, where that may cost no record but brings deleted ones
    back: one from before it was written anew, and one whose last tombstones are missing."""
    known = dict(state.sealed) if state is not None else {}
    if recorded.size and recorded.base_offset not in known:
        known[recorded.base_offset] = (0, recorded.size)
    notes = []
    for facts in segments:
        generation, size = known.get(facts.base_offset, (0, 0))
        if facts.head is None or facts.generation > generation:
            continue
        if facts.generation < generation:
            notes.append(f"{facts.name} is of an older time, before it was written anew; deleted records may be back")
        elif facts.end_position < size:
            missing = size - facts.end_position
            notes.append(f"{facts.name}: {missing} durable bytes are missing at its end; deleted records may be back")
    return notes


def _decide_end(
    last: SegmentFacts,
    found_end: int,
    recorded_end: int,
    recorded: RecordedEnd,
    state: LogState | None,
    damage: list[Damage],
    notes: list[str],
) -> Decision:
    """The end of the newest segment: cut or not, and the next offset."""
    mark = last.mark or Mark(found_end, found_end)
    proved = max(found_end, mark.assigned_end)
    newest_is_gone = state is not None and last.base_offset < state.active_base
    is_exact = recorded.is_exact or (state is not None and state.closed)
    # The segment was replaced by an older copy of itself. Where the end is not known exactly, its mark may be too old, too.
    older = proved < recorded_end or (not is_exact and found_end < recorded.offset)
    next_offset = max(found_end if is_exact else proved, recorded_end)
    if state is not None and (older or newest_is_gone or not last.page_in_order or not state.marks_are_synced):
        next_offset = max(next_offset, state.reserved_end)
    cut_at = last.end_position if last.tail and last.head is not None else None
    # A segment gets its name after its head page is durable, but for sync policy `never`: no crash leaves a shorter file.
    short = last.file_size < HEAD_PAGE_SIZE and (state is None or state.marks_are_synced)
    # After a stop, and behind what it marked as durable, the offsets up to the end were given up, not lost.
    is_known_gap = state is not None and state.closed and mark == Mark(found_end, next_offset)
    certain = max(mark.durable_end, recorded.offset) > found_end or newest_is_gone or older or short
    if last.tail:
        kind: DamageKind = "corrupt" if cut_at is None else "torn"
        damage.append(Damage(kind, found_end, next_offset, certain, last.name, last.end_position, last.tail))
    elif next_offset > found_end and not is_known_gap:
        damage.append(Damage("missing", found_end, next_offset, certain, last.name, last.file_size, 0))
    elif newest_is_gone and state is not None:
        # No offset is missing, but deletions are noted in the newest segment, too.
        notes.append(f"the newest segment, that of offset {state.active_base}, is gone; deleted records may be back")
    # A jump by reservation is in no mark of this segment: a new segment's name and head carry it from now on.
    # And what is certainly lost is reported once, not by each opening until records follow.
    roll = newest_is_gone or not last.page_in_order or next_offset > proved or found_end < recorded.offset
    if roll and last.tail and next_offset == last.base_offset:
        next_offset += 1  # the new segment must not take the name of a file that still holds something
    return Decision(next_offset, cut_at, roll, damage, notes)


def _spoiled_middle(facts: SegmentFacts, durable_end: int = MAX_OFFSET) -> list[Damage]:
    """One write may carry several batches, and a crash may tear an early one of them and leave a later one whole. The
    whole one is kept (it may have been acknowledged), and the torn one is a certain loss only below `durable_end`."""
    found = []
    for position, end_position, start, end in facts.spoiled:
        if end is not None:
            found.append(
                Damage("corrupt", start, end, start < durable_end, facts.name, position, end_position - position)
            )
    return found


def _sealed_end(facts: SegmentFacts, following: SegmentFacts) -> list[Damage]:
    """A sealed segment must reach to where the next one says it did."""
    end = max(facts.end_offset, following.head.previous_end if following.head else following.base_offset)
    if facts.tail:
        return [Damage("corrupt", facts.end_offset, end, True, facts.name, facts.end_position, facts.tail)]
    if facts.end_offset < end:
        return [Damage("missing", facts.end_offset, end, True, facts.name, facts.end_position, 0)]
    return []


def kept_aside(damage: list[Damage], kept: str) -> list[Damage]:
    """The same damage, with the name of the file that keeps the bytes of the torn tail."""
    return [replace(item, kept=kept) if item.kind == "torn" else item for item in damage]
