"""What is worth doing to give room back: one thing at a time, the cheapest first, and nothing that would not pay."""

from support.recording_files import RecordingFiles

from headwater.streams.head_page import HEAD_PAGE_SIZE
from headwater.streams.index import SparseIndex
from headwater.streams.offset_set import OffsetSet
from headwater.streams.recovery import SegmentFacts
from headwater.streams.segment import Segment, segment_name
from headwater.streams.upkeep import SMALLEST_ROLL, Upkeep, plan_upkeep

LARGE = 2 * SMALLEST_ROLL


def segment(base: int, end: int, *, dead: int = 0, size: int = LARGE) -> Segment:
    """A segment of records `[base, end)` of which so many are deleted."""
    name = segment_name(base)
    facts = SegmentFacts(name, base, size, SparseIndex(HEAD_PAGE_SIZE), end_offset=end, end_position=size)
    facts.record_count, facts.dead = end - base, dead
    return Segment(RecordingFiles(), f"log/{name}", b"identity", facts)


def absent(*ranges: tuple[int, int]) -> OffsetSet:
    found = OffsetSet()
    for start, end in ranges:
        found.add(start, end)
    return found


def plan(segments: list[Segment], start: int, gone: OffsetSet, erase: int | None = None) -> Upkeep | None:
    return plan_upkeep(segments, start, segments[-1].end_offset, gone, erase, 64 << 20)


def test_a_log_in_which_nothing_was_deleted_is_left_alone() -> None:
    assert plan([segment(0, 100), segment(100, 200)], 0, absent()) is None


def test_whole_segments_below_the_start_are_dropped_first() -> None:
    segments = [segment(0, 100, dead=100), segment(100, 200, dead=100), segment(200, 300, dead=60), segment(300, 400)]
    upkeep = plan(segments, 210, absent((0, 210)))
    assert upkeep is not None
    assert (upkeep.dropped, upkeep.roll, upkeep.compact) == (segments[:2], False, None)
    assert upkeep.start_offset == 210


def test_the_newest_segment_is_rolled_when_all_of_it_is_deleted_and_it_is_large() -> None:
    upkeep = plan([segment(0, 100, dead=100)], 100, absent((0, 100)))
    assert upkeep is not None
    assert upkeep.roll
    assert plan([segment(0, 100, dead=100, size=8192)], 100, absent((0, 100))) is None


def test_the_newest_segment_is_rolled_when_half_of_it_is_deleted_and_it_is_a_quarter_of_what_is_live() -> None:
    gone = absent((10, 65))
    upkeep = plan([segment(0, 100, dead=55)], 0, gone)
    assert upkeep is not None
    assert upkeep.roll
    live = [segment(base, base + 100, size=8 * LARGE) for base in (0, 100)]
    assert plan([*live, segment(200, 300, dead=55)], 0, absent((210, 265))) is None
    size = (4 * LARGE) + HEAD_PAGE_SIZE + (4 * LARGE)
    larger = plan([*live, segment(200, 300, dead=55, size=size)], 0, absent((210, 265)))
    assert larger is not None
    assert larger.roll


def test_one_in_the_middle_is_compacted_when_half_of_it_is_deleted() -> None:
    segments = [segment(0, 100, dead=1), segment(100, 200, dead=60), segment(200, 300)]
    upkeep = plan(segments, 0, absent((5, 6), (110, 170)))
    assert upkeep is not None
    assert upkeep.compact is segments[1]
    assert list(upkeep.gone.ranges(100, 200)) == [(110, 170)]
    assert upkeep.needed == [(0, 100)]  # tombstones for what is before it are kept: something there is deleted


def test_a_few_deletions_do_not_pay_unless_one_is_to_leave_the_disk() -> None:
    segments = [segment(0, 100, dead=1), segment(100, 200)]
    assert plan(segments, 0, absent((5, 6))) is None
    upkeep = plan(segments, 0, absent((5, 6)), erase=5)
    assert upkeep is not None
    assert upkeep.compact is segments[0]
    newest = plan([segment(0, 100, dead=1)], 0, absent((5, 6)), erase=5)
    assert newest is not None
    assert newest.roll


def test_a_segment_with_damaged_bytes_keeps_its_evidence() -> None:
    segments = [segment(0, 100, dead=90), segment(100, 200)]
    segments[0].keeps_evidence = True
    assert plan(segments, 0, absent((5, 95))) is None


def test_a_compaction_that_found_damage_leaves_the_file_and_remembers_why() -> None:
    files = RecordingFiles()
    one = segment(0, 100, dead=90)
    Upkeep(0, compact=one).put_in_place(files)
    assert one.keeps_evidence
    assert not files.calls
