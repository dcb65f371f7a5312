"""Decides which segments can be dropped or compacted to free disk space, without touching a file.

    the oldest segments, with nothing readable left in them    dropped: their files are removed
    the newest one, when half of its records are deleted and    rolled: a later plan can drop or compact it
    it has a quarter of what is live in the log
    one in the middle, when half of its records are deleted     compacted (compaction.py)
    one in the middle, where the log is to be compressed        written anew, compressed (packing.py)

One plan does one of these to one log, so that publishers wait for no more than a segment's worth of work; the caller
plans again until there is nothing to do. Dropping needs no tombstones afterwards: the log's state says where it begins,
durably, before the first file goes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headwater.compression.snappy import Compress
from headwater.durable_files.files import Files
from headwater.streams.compaction import worth_compacting
from headwater.streams.head_page import HEAD_PAGE_SIZE
from headwater.streams.live_offsets import LiveOffsets
from headwater.streams.offset_set import OffsetSet
from headwater.streams.recovery import SegmentFacts
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment
from headwater.streams.tombstones import Range

SMALLEST_ROLL = 1 << 20  # bytes; below this a newest segment is left as it is, however much of it is deleted
LIVE_SEGMENTS = 4
SMALLEST_COMPACTION = 64 << 10


def live_bytes(segment: Segment) -> int:
    """About how much of a segment's file is not deleted: records count alike, whatever their sizes."""
    records = segment.record_count
    return (segment.end_position - HEAD_PAGE_SIZE) * (records - segment.dead) // records if records else 0


@dataclass(slots=True, eq=False)
class Upkeep:
    """One piece of work. `dropped`, `roll`, `compact` (with `compress`: compressed) and `checkpoint` (which makes its
    contents) say what to do; `sealed` the generation and size of every sealed segment before it; `opened`, `rewritten` and
    `checkpoint_size` what came of it. `first` makes durable what is known from the records that are about to leave the
    disk; it runs in the worker and raises OSError."""

    start_offset: int
    dropped: list[Segment] = field(default_factory=list)
    roll: bool = False
    compact: Segment | None = None
    gone: OffsetSet = field(default_factory=OffsetSet)
    needed: list[Range] = field(default_factory=list)
    sealed: dict[int, tuple[int, int]] = field(default_factory=dict)
    checkpoint: Callable[[], bytes] | None = None
    checkpoint_size: int = 0
    first: Callable[[], None] | None = None
    compress: Compress | None = None
    opened: Segment | None = None
    rewritten: SegmentFacts | None = None

    def put_in_place(self, files: Files) -> None:
        """Rename the compacted file over the segment, and use it from now on. Raises OSError."""
        segment, facts = self.compact, self.rewritten
        if segment is None:
            return
        if facts is None:
            segment.keeps_evidence = True
            return
        files.rename(segment.path.removesuffix(SUFFIX) + NEW_SUFFIX, segment.path)
        facts.dead = segment.dead - (segment.record_count - facts.record_count)
        segment.replace(facts)


def plan_upkeep(
    segments: Sequence[Segment], start: int, end: int, absent: OffsetSet, erase: int | None, segment_bytes: int
) -> Upkeep | None:
    """The most useful piece of work on a log `[start, end)`, or None. `erase`: see `Log.plan_upkeep`. `segment_bytes`: the
    size at which the newest one is rolled anyway."""
    upkeep = Upkeep(start)
    for segment, _ in pairwise(segments):
        if segment.end_offset > start:
            break
        upkeep.dropped.append(segment)
    if upkeep.dropped:
        return upkeep
    active = segments[-1]
    enough = min(segment_bytes, max(SMALLEST_ROLL, sum(map(live_bytes, segments)) // LIVE_SEGMENTS))
    half_dead = worth_compacting(active.record_count, active.dead) and active.end_position >= enough
    if half_dead or (erase is not None and active.base_offset <= erase < end and active.dead):
        upkeep.roll = True
        return upkeep
    for at, segment in enumerate(segments[:-1]):
        wanted = erase is not None and segment.base_offset <= erase < segment.end_offset and segment.dead > 0
        worth = segment.end_position >= SMALLEST_COMPACTION and worth_compacting(segment.record_count, segment.dead)
        if (wanted or worth) and not segment.keeps_evidence:
            return rewriting(segments, at, start, absent)
    return None


def rewriting(segments: Sequence[Segment], at: int, start: int, absent: OffsetSet) -> Upkeep:
    """The sealed segment at this place is to be written anew, without what is deleted."""
    segment = segments[at]
    gone = absent.part(segment.base_offset, segment.end_offset)
    if start > segment.base_offset:  # what is below the start is in the set by whole blocks only
        gone.add(segment.base_offset, min(start, segment.end_offset))
    sealed = {each.base_offset: (each.facts.generation, each.end_position) for each in segments[:-1]}
    needed = [(earlier.base_offset, earlier.end_offset) for earlier in segments[:at] if earlier.dead]
    return Upkeep(start, compact=segment, gone=gone, needed=needed, sealed=sealed)


class Compression:
    """Which of the `segments` of a log are still to be compressed, and by what: `compress`; None: they stay as they are.
    `live`: which offsets hold a record."""

    def __init__(self, segments: Sequence[Segment], live: LiveOffsets) -> None:
        self.compress: Compress | None = None
        self._segments = segments
        self._live = live
        self._done = 0  # segments below this offset are compressed, or cannot be

    def use(self, compress: Compress | None) -> None:
        """From now on, the segments that are there included."""
        self.compress, self._done = compress, 0

    def plan(self) -> Upkeep | None:
        """The next sealed segment that is to be compressed and is not; None when there is none. One that could not be
        written anew has its next turn when the log is opened again. Goes through `maintain` and `settle` as all upkeep."""
        segments = self._segments
        if self.compress is None or len(segments) < 2 or segments[-2].base_offset < self._done:
            return None
        for at, segment in enumerate(segments[:-1]):
            if segment.base_offset < self._done:
                continue
            self._done = segment.base_offset + 1
            head = segment.facts.head
            if not segment.keeps_evidence and (head is None or not head.compressed):
                upkeep = rewriting(segments, at, self._live.start, self._live.absent)
                upkeep.compress = self.compress
                return upkeep
        return None
