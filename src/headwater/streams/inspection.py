"""Looking at a log that nobody has open, and mending it: what `headwater log` does.

`survey` reads everything, trusts no index, changes nothing, and says what an opening would decide. `repair` does what an
opening does (a torn tail is cut and kept aside) and one thing more: a segment with damaged bytes in the middle is written
anew without them, its old self kept beside it as `<segment>.damaged`. The records around the damage are as readable before
as after; what changes is that every later opening finds a whole log and reports no old loss.
"""

from itertools import zip_longest
from typing import NamedTuple

from headwater.errors import CorruptLog, StorageError
from headwater.streams import meta
from headwater.streams.compaction import rewrite
from headwater.streams.files import Files, storage_error
from headwater.streams.log import Log, LogOptions
from headwater.streams.log_format import IDENTITY_SIZE
from headwater.streams.log_state import LogState
from headwater.streams.offset_set import OffsetSet
from headwater.streams.opening import claimed_identity, examine_all, segment_bases
from headwater.streams.recovery import Decision, SegmentFacts, absences, decide
from headwater.streams.segment import NEW_SUFFIX, SUFFIX
from headwater.streams.writer import STATE_DOCUMENT

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
    """Read the log in `directory`. One that is being written shows a tail in motion. Raises StorageError."""
    notes: list[str] = []
    try:
        document = meta.load(files, f"{directory}/{STATE_DOCUMENT}", notes)
        state = LogState.decode(document) if document is not None else None
        if document is not None and state is None:
            raise CorruptLog(f"{directory}/{STATE_DOCUMENT} is of a version this program does not know")
        bases = segment_bases(files, directory)
        if state is not None:
            while len(bases) > 1 and bases[1] <= state.start_offset:
                del bases[0]
        identity = state.identity if state is not None else claimed_identity(files, directory, bases)
        limit = state.reserved_end if state is not None else None
        facts = examine_all(files, directory, bases, identity or bytes(IDENTITY_SIZE), limit)
    except OSError as error:
        raise storage_error(f"read the log {directory}", error) from error
    decision = decide(facts, state)
    absences(facts, state.start_offset if state is not None else 0, decision.next_offset)
    records = sum(segment.record_count - segment.dead for segment in facts)
    return Survey(state, facts, decision, records, [*notes, *decision.notes])


def repair(files: Files, directory: str, now_ns: int) -> list[str]:
    """Make the log whole; one sentence for each thing that was done. Raises StorageError, also when it is open."""
    log = Log.open(files, directory, LogOptions(), now_ns)
    done = [f"{note}: mended" for note in log.recovery.notes]
    done += [f"{item}: cut" for item in log.recovery.damage if item.kept]
    log.close()
    found = survey(files, directory)
    if found.state is None:
        raise StorageError(f"the log {directory} has no state after an opening", value=directory)
    for facts, following in zip_longest(found.facts, found.facts[1:]):
        end = facts.end_offset
        if following is not None:
            end = max(end, following.head.previous_end if following.head is not None else following.base_offset)
        if facts.spoiled or (following is not None and (facts.tail or facts.end_offset < end)):
            _rewrite_whole(files, directory, facts, found.state.identity, end)
            kept = facts.name + DAMAGED_SUFFIX
            done.append(f"{facts.name}: written anew without its damaged bytes; the old one is {kept}")
    Log.open(files, directory, LogOptions(), now_ns).close()  # for an index of what is there now
    return done


def _rewrite_whole(files: Files, directory: str, facts: SegmentFacts, identity: bytes, end_offset: int) -> None:
    path = f"{directory}/{facts.name}"
    fresh = path.removesuffix(SUFFIX) + NEW_SUFFIX
    everything = [(0, facts.end_offset)]
    try:
        rewritten = rewrite(
            files, path, facts, identity, OffsetSet(), everything, keep_evidence=False, end_offset=end_offset
        )
        if rewritten is None:
            raise CorruptLog(f"{path} has a damaged head page: its batches stay readable where they are", value=path)
        files.rename(path, path + DAMAGED_SUFFIX)
        files.rename(fresh, path)
        files.sync_directory(directory)
    except OSError as error:
        raise storage_error(f"repair {path}", error) from error
