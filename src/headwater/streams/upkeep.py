"""Giving room back: which segments may go or shrink, decided here without touching a file.

    the oldest segments, with nothing readable left in them    dropped: their files are removed
    the newest one, when all that it holds is deleted           rolled: the next plan can drop it
    one in the middle, when half of its records are deleted     compacted (compaction.py)

One plan does one of these to one log, so that publishers wait for no more than a segment's worth of work; the caller
plans again until there is nothing to do. Dropping needs no tombstones afterwards: the log's state says where it begins,
durably, before the first file goes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headwater.streams.compaction import worth_compacting
from headwater.streams.files import Files
from headwater.streams.offset_set import OffsetSet
from headwater.streams.recovery import SegmentFacts
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment
from headwater.streams.tombstones import Range

SMALLEST_ROLL = 1 << 20  # bytes; below this an all-deleted newest segment is left as it is
SMALLEST_COMPACTION = 64 << 10


@dataclass(slots=True, eq=False)
class Upkeep:
    """One piece of work. `dropped`, `roll`, `compact` say what to do; `opened` and `rewritten` what came of it."""

    start_offset: int
    dropped: list[Segment] = field(default_factory=list)
    roll: bool = False
    compact: Segment | None = None
    gone: OffsetSet = field(default_factory=OffsetSet)
    needed: list[Range] = field(default_factory=list)
    opened: Segment | None = None
    rewritten: SegmentFacts | None = None

    def put_in_place(self, files: Files) -> None:
        """Let the compacted file take its name and its place. Raises OSError."""
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
    segments: Sequence[Segment], start: int, end: int, absent: OffsetSet, erase: int | None
) -> Upkeep | None:
    """The most useful piece of work on a log `[start, end)`, or None. `erase`: see `Log.plan_upkeep`."""
    upkeep = Upkeep(start)
    for segment, _ in pairwise(segments):
        if segment.end_offset > start:
            break
        upkeep.dropped.append(segment)
    if upkeep.dropped:
        return upkeep
    active = segments[-1]
    all_dead = 0 < active.record_count <= active.dead and active.end_position >= SMALLEST_ROLL
    if all_dead or (erase is not None and active.base_offset <= erase < end and active.dead):
        upkeep.roll = True
        return upkeep
    for at, segment in enumerate(segments[:-1]):
        wanted = erase is not None and segment.base_offset <= erase < segment.end_offset and segment.dead > 0
        worth = segment.end_position >= SMALLEST_COMPACTION and worth_compacting(segment.record_count, segment.dead)
        if (wanted or worth) and not segment.keeps_evidence:
            upkeep.compact = segment
            upkeep.gone = absent.part(segment.base_offset, segment.end_offset)
            if start > segment.base_offset:  # what is below the start is in the set by whole blocks only
                upkeep.gone.add(segment.base_offset, min(start, segment.end_offset))
            upkeep.needed = [(earlier.base_offset, earlier.end_offset) for earlier in segments[:at] if earlier.dead]
            return upkeep
    return None
