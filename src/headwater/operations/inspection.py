"""Inspecting a log that no process has open, and repairing it: what `headwater log` does.

`survey` reads everything, trusts no index, changes nothing, and returns what an opening would decide. `repair` does
what an opening does (a torn tail is cut and kept aside) and two things more: a damaged head page is written again from
what the segment holds, and a segment with damaged bytes in the middle is rewritten without them, its original kept
beside it as `<segment>.damaged`. The records around the damage were readable before and still are; what changes is that
later openings find an intact log and do not report the old loss again.
"""

from itertools import zip_longest
from typing import NamedTuple

from headwater.compression.snappy import compressor
from headwater.durable_files.documents import NO_IDENTITY
from headwater.durable_files.files import Files, storage_error
from headwater.errors import CorruptLog, StorageError
from headwater.streams.compaction import rewrite
from headwater.streams.head_page import Mark, SegmentHead, encode_head_page
from headwater.streams.log import Log, LogOptions
from headwater.streams.log_format import IDENTITY_SIZE
from headwater.streams.log_state import LogState
from headwater.streams.offset_set import OffsetSet
from headwater.streams.opening import CopyKind, examine_all, segment_bases
from headwater.streams.ownership import STATE_DOCUMENT, judge_owner, judge_segments, not_older_than
from headwater.streams.recorded_end import read_recorded_end
from headwater.streams.recovery import Decision, SegmentFacts, absences, decide
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, segment_name

DAMAGED_SUFFIX = ".damaged"


class Survey(NamedTuple):
    """What is on disk. `records` can be read; `decision` is what an opening would make of it."""

    state: LogState | None
    facts: list[SegmentFacts]
    decision: Decision
    records: int
    notes: list[str]

    @property
    def start_offset(self) -> int:
        return self.state.start_offset if self.state is not None else 0


def survey(files: Files, directory: str) -> Survey:
    """Read the log in `directory`. The tail of one that is being written changes meanwhile. Raises StorageError."""
    notes: list[str] = []
    try:
        bases = segment_bases(files, directory)
        owner = judge_owner(files, directory, bases, NO_IDENTITY, notes)
        identity, state = owner.identity, owner.state
        strangers = judge_segments(files, directory, bases, identity or NO_IDENTITY)
        notes += [f"{path} is not of this log: it {reason}" for path, reason in [*owner.strangers, *strangers]]
        outside = {path for path, _ in strangers}
        bases = [base for base in bases if f"{directory}/{segment_name(base)}" not in outside]
        if state is None:
            notes.append(f"{directory}/{STATE_DOCUMENT} is lost; both copies are missing or damaged")
        else:
            while len(bases) > 1 and bases[1] <= state.start_offset:
                del bases[0]
            state = not_older_than(files, directory, bases, state, notes)
        limit = state.reserved_end if state is not None else None
        facts = examine_all(files, directory, bases, identity or bytes(IDENTITY_SIZE), limit)
        testimony = read_recorded_end(files, directory, identity or NO_IDENTITY)
        notes += testimony.notes + [f"{path} is not of this log: it {reason}" for path, reason in testimony.strangers]
    except OSError as error:
        raise storage_error(f"read the log {directory}", error) from error
    decision = decide(facts, state, testimony.end)
    absences(facts, state.start_offset if state is not None else 0, decision.next_offset)
    records = sum(segment.record_count - segment.dead for segment in facts)
    return Survey(state, facts, decision, records, [*notes, *decision.notes])


def repair(files: Files, directory: str, now_ns: int, copy: CopyKind = "none") -> list[str]:
    """Repair the log; returns one sentence for each change. `copy`: as its owner opens it, because after this a torn write
    looks like a whole one. Raises StorageError, also when the log is open."""
    log = Log.open(files, directory, LogOptions(), now_ns, copy=copy)
    done = [f"{note}: mended" for note in log.recovery.notes]
    done += [f"{item}: cut" for item in log.recovery.damage if item.kept]
    log.close()
    found = survey(files, directory)
    if found.state is None:
        raise StorageError(f"the log {directory} has no state after an opening", value=directory)
    reached = found.facts[0].base_offset if found.facts else 0
    for facts, following in zip_longest(found.facts, found.facts[1:]):
        end = facts.end_offset
        if following is not None:
            end = max(end, following.head.previous_end if following.head is not None else following.base_offset)
        if not facts.page_in_order:
            _write_head(files, directory, facts, found.state.identity, reached, end, now_ns)
            done.append(f"{facts.name}: head page written again")
        reached = end
        if facts.spoiled or (following is not None and (facts.tail or facts.end_offset < end)):
            _rewrite_whole(files, directory, facts, found.state.identity, end)
            kept = facts.name + DAMAGED_SUFFIX
            done.append(f"{facts.name}: written anew without its damaged bytes; the old one is {kept}")
    Log.open(files, directory, LogOptions(), now_ns).close()  # for an index of what is there now
    return done


def _write_head(
    files: Files, directory: str, facts: SegmentFacts, identity: bytes, previous_end: int, end: int, now_ns: int
) -> None:
    """A head page for a sealed segment whose own is damaged: all of it follows from the segments, except the time of
    creation."""
    head = facts.head or SegmentHead(identity, facts.base_offset, previous_end, now_ns)
    path = f"{directory}/{facts.name}"
    try:
        file = files.open(path)
        try:
            file.pwrite([encode_head_page(head, Mark(end, end))], 0)
            file.fdatasync()
        finally:
            file.close()
    except OSError as error:
        raise storage_error(f"repair {path}", error) from error


def _rewrite_whole(files: Files, directory: str, facts: SegmentFacts, identity: bytes, end_offset: int) -> None:
    path = f"{directory}/{facts.name}"
    fresh = path.removesuffix(SUFFIX) + NEW_SUFFIX
    everything = [(0, facts.end_offset)]
    compress = compressor() if facts.head is not None and facts.head.compressed else None
    try:
        rewritten = rewrite(
            files,
            path,
            facts,
            identity,
            OffsetSet(),
            everything,
            keep_evidence=False,
            end_offset=end_offset,
            compress=compress,
        )
        if rewritten is None:
            raise CorruptLog(f"{path} has a damaged head page: its batches stay readable where they are", value=path)
        files.rename(path, path + DAMAGED_SUFFIX)
        files.rename(fresh, path)
        files.sync_directory(directory)
    except OSError as error:
        raise storage_error(f"repair {path}", error) from error
