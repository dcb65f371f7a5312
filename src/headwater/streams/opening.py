"""Opening a log directory: examine everything, let `recovery` decide, then carry the decision out.

The order makes a crash during opening harmless: examining changes nothing; cut bytes are durable in their own file before
the segment is cut; a new segment is durable before anything relies on it. Opening again finds the same log.

A directory without segments and state is a new log. What is there and is neither a segment, nor the state, nor the lock
is left alone.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

from google_crc32c import value as crc32c

from headwater.durable_files import documents
from headwater.durable_files.documents import NO_IDENTITY
from headwater.durable_files.files import File, Files, storage_error
from headwater.durable_files.sync_group import SyncGroup
from headwater.errors import StorageError
from headwater.streams.active_segment import create_segment
from headwater.streams.clean_index import (
    INDEX_FILE,
    absences_of,
    encode_index,
    facts_of,
    load_checkpoint,
    load_index,
)
from headwater.streams.end_file import END_FILE
from headwater.streams.head_page import HEAD_PAGE_SIZE, Mark, SegmentHead, encode_head_page
from headwater.streams.log_format import IDENTITY_SIZE, MAX_OFFSET
from headwater.streams.log_state import RESERVATION, LogState
from headwater.streams.offset_set import OffsetSet
from headwater.streams.ownership import STATE_DOCUMENT, judge_owner, judge_segments, not_older_than
from headwater.streams.recorded_end import read_recorded_end
from headwater.streams.recovery import (
    Decision,
    RecoveryReport,
    SegmentFacts,
    absences,
    decide,
    examine,
    extend,
    kept_aside,
)
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment, base_offset_of, segment_name
from headwater.streams.writer import CHECKPOINT_FILE, NEW_ENDING

LOCK = "lock"
COPY_PIECE = 1 << 20


CopyKind = Literal["none", "of records", "of offsets"]
"""Whether a log is filled from other logs. It goes on behind its last record there, so a write that a power loss has torn is
cut at the first missing record, whatever is whole behind that: all of it is fetched again. With the origin's offsets, too,
those of missing records are given out again (`Decision.rewound`)."""


class Found(NamedTuple):
    """What is in the directory. `absent` and `document` (which knows the records below `known_end`) come from an index or
    a checkpoint; None when all was read. `is_indexed`: the index of a clean stop holds."""

    facts: list[SegmentFacts]
    notes: list[str]
    absent: OffsetSet | None = None
    document: bytes | None = None
    known_end: int = 0
    is_indexed: bool = False


class OpenedLog(NamedTuple):
    """What the log starts with. The last segment is the active one; its newest mark is that of `turn`. `absent`: offsets
    without a record. `document`: what the last clean close or checkpoint was given, which holds for the records below
    `known_end`; None when all records have to be read."""

    lock: File
    state: LogState
    segments: list[Segment]
    turn: int
    report: RecoveryReport
    absent: OffsetSet
    document: bytes | None
    known_end: int


def open_directory(
    files: Files,
    directory: str,
    now_ns: int,
    first_offset: int = 0,
    identity: bytes = NO_IDENTITY,
    known_end: int = 0,
    copy: CopyKind = "none",
) -> OpenedLog:
    """Recover the log in `directory`, or make one that starts at `first_offset`; of `identity`, if that is known. The log
    once reached `known_end` or further. `copy`: see `CopyKind`.

    Raises StorageError when nothing in it is of that identity (nothing is changed then), when another process has it, when
    the disk fails, or when it was written by a newer version."""
    try:
        files.mkdir(directory)
        lock = _take_lock(files, directory)
    except OSError as error:
        raise storage_error(f"open the log {directory}", error) from error
    try:
        return _recover(files, directory, lock, now_ns, first_offset, identity, known_end, copy)
    except OSError as error:
        lock.close()
        raise storage_error(f"open the log {directory}", error) from error
    except BaseException:
        lock.close()
        raise


def first_state(identity: bytes, first_offset: int, *, synced: bool) -> LogState:
    """The state of a new log that begins at `first_offset`. `synced`: with sync policy `always` offsets are reserved at
    once, so that the first batch need not save the state (three syncs)."""
    reserved_end = first_offset + (RESERVATION if synced else 0)
    return LogState(identity, first_offset, reserved_end, first_offset, marks_are_synced=True)


def write_new_log(group: SyncGroup, directory: str, state: LogState, now_ns: int) -> None:
    """Write the files of an empty log into an empty directory that no start would read yet; durable once the group is
    committed with the directory. Raises OSError."""
    first_offset = state.start_offset
    documents.write_first(group, f"{directory}/{STATE_DOCUMENT}", state.encode(), state.identity)
    head = SegmentHead(state.identity, first_offset, first_offset, now_ns)
    page = encode_head_page(head, Mark(first_offset, first_offset))
    group.write(f"{directory}/{segment_name(first_offset)}", page)


def opened_new_log(files: Files, directory: str, state: LogState) -> OpenedLog:
    """What `open_directory` would find where `write_new_log` has just written: the same, with nothing read back. Raises
    StorageError when another process has it, or when the disk fails."""
    try:
        lock = _take_lock(files, directory)
    except OSError as error:
        raise storage_error(f"open the log {directory}", error) from error
    segment = Segment.empty(files, directory, state.identity, state.start_offset)
    report = RecoveryReport(next_offset=state.start_offset)
    return OpenedLog(lock, state, [segment], 0, report, OffsetSet(), None, 0)


def _take_lock(files: Files, directory: str) -> File:
    try:
        return files.lock(f"{directory}/{LOCK}")
    except BlockingIOError as error:
        raise StorageError(
            f"the log {directory} is open already", value=directory, hint="close it in the process that has it"
        ) from error


def _recover(
    files: Files,
    directory: str,
    lock: File,
    now_ns: int,
    first_offset: int,
    identity: bytes,
    known_end: int,
    copy: CopyKind,
) -> OpenedLog:
    notes: list[str] = []
    bases = _sweep(files, directory)
    owner = judge_owner(files, directory, bases, identity, notes)
    strangers = judge_segments(files, directory, bases, owner.identity or NO_IDENTITY)
    if owner.state is None and (owner.strangers or strangers) and len(strangers) == len(bases):
        raise StorageError(
            f"nothing in {directory} is of the log {identity.hex()}",
            value=[path for path, _ in (*owner.strangers, *strangers)],
            hint="put its own files back, or remove these to begin anew",
        )
    mine = owner.identity or (identity if identity != NO_IDENTITY else files.entropy(IDENTITY_SIZE))
    testimony = read_recorded_end(files, directory, mine, known_end)
    notes += testimony.notes
    for path, reason in [*owner.strangers, *strangers, *testimony.strangers]:
        notes.append(f"{path} is not of this log: it {reason}; kept as {documents.put_aside(files, path)}")
    if strangers:
        bases = segment_bases(files, directory)
    state = owner.state
    if state is None and bases:
        notes.append(f"{directory}/{STATE_DOCUMENT} is lost; made again from the segments")
    if state is None:
        first = bases[0] if bases else first_offset
        facts = examine_all(files, directory, bases, mine, MAX_OFFSET)
        decision = decide(facts, None, testimony.end)
        if not bases:
            decision = decision._replace(next_offset=max(first, testimony.end.offset))
        reserved_end = max([decision.next_offset, *(item.mark.assigned_end for item in facts[-1:] if item.mark)])
        state = LogState(mine, first, reserved_end, bases[-1] if bases else 0, marks_are_synced=True)
        path = f"{directory}/{STATE_DOCUMENT}"
        with SyncGroup(files) as group:
            documents.write_temporaries(files, group, path, state.encode(), mine)
            group.commit()
        documents.put_in_place(files, path)
        if bases:  # else it gets its first segment at once, and the names of both are made durable together
            files.sync_directory(directory)
        return _carry_out(files, directory, lock, now_ns, state, Found(facts, notes), decision)
    bases = _drop_expired(files, directory, bases, state.start_offset)
    state = not_older_than(files, directory, bases, state, notes)
    found = _find(files, directory, bases, state, notes)
    decision = decide(found.facts, state, testimony.end)
    if not found.is_indexed or decision.has_gap:
        state = replace(state, index_crc=0)  # so that the next close makes a new one, and new marks
    if copy != "none" and not state.closed:
        if (hole := decision.hole) is not None:
            found = Found(examine_all(files, directory, bases, state.identity, hole), found.notes)
            decision = decide(found.facts, state, testimony.end)
        if copy == "of offsets":
            decision = decision.rewound(found.facts)
    return _carry_out(files, directory, lock, now_ns, state, found, decision)


def _drop_expired(files: Files, directory: str, bases: list[int], start_offset: int) -> list[int]:
    """Finish the dropping of segments that lie below where the log begins."""
    while len(bases) > 1 and bases[1] <= start_offset:
        files.unlink(f"{directory}/{segment_name(bases[0])}")
        bases = bases[1:]
    return bases


def _find(files: Files, directory: str, bases: list[int], state: LogState, notes: list[str]) -> Found:
    """What the segments hold: from the index of a clean close where it is valid, else from all of the data."""
    if state.index_crc:
        index = load_index(files, directory, state.index_crc, bases)
        facts = facts_of(files, directory, index, state.identity) if index is not None else None
        if index is not None and facts is not None:
            end = facts[-1].end_offset if facts else 0
            return Found(facts, notes, absences_of(index), index.document, end, is_indexed=True)
        notes.append(f"{directory}/{INDEX_FILE} does not fit the segments; made again from them")
    return _since_checkpoint(files, directory, bases, state, notes) or Found(
        examine_all(files, directory, bases, state.identity, state.reserved_end), notes
    )


def _since_checkpoint(
    files: Files, directory: str, bases: list[int], state: LogState, notes: list[str]
) -> Found | None:
    """What the last checkpoint records, and what was written since; None when it does not match the files."""
    checkpoint = load_checkpoint(files, directory, state.identity, bases)
    if checkpoint is None or checkpoint.end > state.reserved_end:
        return None
    newer = bases[len(checkpoint.contents.segments) :]
    grown_to = newer[0] if newer else state.reserved_end
    facts = facts_of(files, directory, checkpoint.contents, state.identity, grown_to)
    if facts is None:
        return None
    last = facts[-1]
    file = files.open(f"{directory}/{last.name}")
    try:
        extend(file.pread, last, state.identity, grown_to)
    finally:
        file.close()
    facts += examine_all(files, directory, newer, state.identity, state.reserved_end)
    absent = absences_of(checkpoint.contents)
    first = facts[0].base_offset
    known_end = max(first, checkpoint.end)
    absent.add(first, max(first, checkpoint.start))
    gone = absent.count(first, known_end)
    absences(facts, state.start_offset, facts[-1].end_offset, absent)
    same = absent.count(first, known_end) == gone
    return Found(facts, notes, absent, checkpoint.contents.document if same else None, checkpoint.end)


def write_index(
    files: Files, directory: str, facts: list[SegmentFacts], absent: OffsetSet, start: int, document: bytes
) -> int:
    """Write the index, which nothing waits for; returns its CRC32C for the state. Raises OSError."""
    content = encode_index(facts, absent, start, facts[-1].end_offset, document)
    file = files.create(f"{directory}/{INDEX_FILE}")
    try:
        file.pwrite([content], 0)
    finally:
        file.close()
    return crc32c(content) or 1  # 0 says that there is none


def segment_bases(files: Files, directory: str) -> list[int]:
    """Base offsets of the segments, ascending."""
    return sorted(base for name in files.listdir(directory) if (base := base_offset_of(name)) is not None)


def _sweep(files: Files, directory: str) -> list[int]:
    """As `segment_bases`; a file that never got its final name holds nothing and is removed."""
    for name in files.listdir(directory):
        if name.endswith(NEW_SUFFIX) and base_offset_of(name.removesuffix(NEW_SUFFIX) + SUFFIX) is not None:
            files.unlink(f"{directory}/{name}")
    return segment_bases(files, directory)


def examine_all(
    files: Files, directory: str, bases: list[int], identity: bytes, limit: int | None
) -> list[SegmentFacts]:
    """What every segment holds; `limit` is the end of what the newest may hold, None when it is unknown."""
    facts = []
    for base, end in pairwise([*bases, MAX_OFFSET if limit is None else limit]):
        name = segment_name(base)
        file = files.open(f"{directory}/{name}")
        try:
            facts.append(examine(file.pread, file.size(), name, base, identity, end))
        finally:
            file.close()
    return facts


def _carry_out(
    files: Files, directory: str, lock: File, now_ns: int, state: LogState, found: Found, decision: Decision
) -> OpenedLog:
    facts = found.facts
    damage = [item for item in decision.damage if item.end > state.start_offset or item.size]
    if decision.cut_at is not None:
        damage = kept_aside(damage, _cut(files, directory, facts[-1], decision.cut_at))
    if found.absent is None:
        absent = absences(facts, state.start_offset, decision.next_offset)
    else:
        absent = found.absent
        if facts:  # neither an index nor a checkpoint reaches beyond the last batch
            absent.add(facts[-1].end_offset, decision.next_offset)
    state = replace(state, sealed={item.base_offset: (item.generation, item.end_position) for item in facts[:-1]})
    segments = [Segment(files, f"{directory}/{item.name}", state.identity, item) for item in facts]
    records = sum(segment.record_count - segment.dead for segment in segments)
    turn = facts[-1].mark_turn if facts else 0
    if decision.roll:
        end = facts[-1].end_offset if facts else decision.next_offset
        head = SegmentHead(state.identity, decision.next_offset, end, now_ns)
        mark = Mark(decision.next_offset, decision.next_offset)
        segments = [segment for segment in segments if segment.base_offset != decision.next_offset]
        segments.append(create_segment(files, directory, head, mark))
        turn = 0
    report = RecoveryReport(
        damage=tuple(damage),
        notes=(*found.notes, *decision.notes),
        records=records,
        next_offset=decision.next_offset,
    )
    return OpenedLog(lock, state, segments, turn, report, absent, found.document, found.known_end)


def _cut(files: Files, directory: str, facts: SegmentFacts, position: int) -> str:
    """Move the bytes from `position` on out of the segment into a file of their own; returns its name."""
    taken = set(files.listdir(directory))
    stem = f"{facts.name}.cut-{max(position, HEAD_PAGE_SIZE)}"
    kept = next(name for count in range(len(taken) + 1) if (name := f"{stem}-{count}") not in taken)
    source = files.open(f"{directory}/{facts.name}")
    try:
        target = files.create(f"{directory}/{kept}")
        try:
            for at in range(position, facts.file_size, COPY_PIECE):
                target.pwrite([source.pread(min(COPY_PIECE, facts.file_size - at), at)], at - position)
            target.fdatasync()
        finally:
            target.close()
        files.sync_directory(directory)
        source.truncate(position)
        source.fdatasync()
    finally:
        source.close()
    return kept


def delete_directory(files: Files, directory: str) -> None:
    """Remove all that belongs to the log, the directory too when nothing else is in it. Raises OSError."""
    for name in files.listdir(directory):
        if base_offset_of(name.partition(SUFFIX)[0] + SUFFIX) is not None:
            files.unlink(f"{directory}/{name}")
    documents.remove(files, f"{directory}/{STATE_DOCUMENT}")
    for name in (INDEX_FILE, CHECKPOINT_FILE, CHECKPOINT_FILE + NEW_ENDING, END_FILE):
        with suppress(FileNotFoundError):
            files.unlink(f"{directory}/{name}")
    files.unlink(f"{directory}/{LOCK}")
    with suppress(OSError):  # the directory holds other files: leave it
        files.rmdir(directory)
    files.sync_directory(documents.directory_of(directory))
