"""Opening a log directory: look at everything, let `recovery` decide, then carry the decision out.

The order makes a crash during opening harmless: looking changes nothing; cut bytes are durable in their own file before
the segment is cut; a new segment is durable before anything relies on it. Opening twice finds the same log.

A directory without segments and state is a new log. What is there and is neither a segment, nor the state, nor the lock
is left alone.
"""

from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from headwater.errors import CorruptLog, StorageError
from headwater.streams import meta
from headwater.streams.files import File, Files, storage_error
from headwater.streams.log_format import (
    HEAD_PAGE_SIZE,
    IDENTITY_SIZE,
    MAX_OFFSET,
    Mark,
    SegmentHead,
)
from headwater.streams.log_state import LogState
from headwater.streams.recovery import Decision, RecoveryReport, SegmentFacts, decide, examine, identity_of, kept_aside
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment, base_offset_of, segment_name
from headwater.streams.writer import STATE_DOCUMENT, create_segment

LOCK = "lock"
COPY_PIECE = 1 << 20


class OpenedLog(NamedTuple):
    """What the log starts with. The last segment is the active one; its newest mark is that of `turn`."""

    lock: File
    state: LogState
    segments: list[Segment]
    turn: int
    report: RecoveryReport


def open_directory(files: Files, directory: str, now_ns: int) -> OpenedLog:
    """Recover the log in `directory`, or make one. Raises StorageError when another process has it, when the disk
    fails, or when it was written by a newer version."""
    try:
        files.mkdir(directory)
        lock = _take_lock(files, directory)
    except OSError as error:
        raise storage_error(f"open the log {directory}", error) from error
    try:
        return _recover(files, directory, lock, now_ns)
    except OSError as error:
        lock.close()
        raise storage_error(f"open the log {directory}", error) from error
    except BaseException:
        lock.close()
        raise


def _take_lock(files: Files, directory: str) -> File:
    try:
        return files.lock(f"{directory}/{LOCK}")
    except BlockingIOError as error:
        raise StorageError(
            f"the log {directory} is open already", value=directory, hint="close it in the process that has it"
        ) from error


def _recover(files: Files, directory: str, lock: File, now_ns: int) -> OpenedLog:
    notes: list[str] = []
    document = meta.load(files, f"{directory}/{STATE_DOCUMENT}", notes)
    state = LogState.decode(document) if document is not None else None
    bases = _sweep(files, directory)
    if document is not None and state is None:
        raise CorruptLog(
            f"{directory}/{STATE_DOCUMENT} is intact but not of a version this program knows",
            hint="it was written by a newer Headwater; open the log with that, or upgrade",
        )
    if state is None and bases:
        notes.append(f"{directory}/{STATE_DOCUMENT} is lost; made again from the segments")
    if state is None:
        identity = _claimed_identity(files, directory, bases) or files.entropy(IDENTITY_SIZE)
        first = bases[0] if bases else 0
        facts = _examine_all(files, directory, bases, identity, MAX_OFFSET)
        decision = decide(facts, None)
        state = LogState(identity, first, decision.next_offset, bases[-1] if bases else 0, marks_are_synced=True)
        meta.save(files, f"{directory}/{STATE_DOCUMENT}", state.encode())
    else:
        facts = _examine_all(files, directory, bases, state.identity, state.reserved_end)
        decision = decide(facts, state)
    return _carry_out(files, directory, lock, now_ns, state, facts, decision, notes)


def _sweep(files: Files, directory: str) -> list[int]:
    """Base offsets of the segments, ascending. A segment that never got its final name holds nothing."""
    bases = []
    for name in files.listdir(directory):
        base = base_offset_of(name)
        if base is not None:
            bases.append(base)
        elif name.endswith(NEW_SUFFIX) and base_offset_of(name.removesuffix(NEW_SUFFIX) + SUFFIX) is not None:
            files.unlink(f"{directory}/{name}")
    return sorted(bases)


def _claimed_identity(files: Files, directory: str, bases: list[int]) -> bytes | None:
    """Without a state, the log is who its segments say it is."""
    for base in bases:
        file = files.open(f"{directory}/{segment_name(base)}")
        try:
            identity = identity_of(file.pread)
        finally:
            file.close()
        if identity is not None:
            return identity
    return None


def _examine_all(files: Files, directory: str, bases: list[int], identity: bytes, limit: int) -> list[SegmentFacts]:
    facts = []
    for base, end in pairwise([*bases, limit]):
        name = segment_name(base)
        file = files.open(f"{directory}/{name}")
        try:
            facts.append(examine(file.pread, file.size(), name, base, identity, end))
        finally:
            file.close()
    return facts


def _carry_out(
    files: Files,
    directory: str,
    lock: File,
    now_ns: int,
    state: LogState,
    facts: list[SegmentFacts],
    decision: Decision,
    notes: list[str],
) -> OpenedLog:
    damage = decision.damage
    if decision.cut_at is not None:
        damage = kept_aside(damage, _cut(files, directory, facts[-1], decision.cut_at))
    segments = [Segment(files, f"{directory}/{found.name}", state.identity, found) for found in facts]
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
        notes=(*notes, *decision.notes),
        records=sum(segment.record_count for segment in segments),
        next_offset=decision.next_offset,
    )
    return OpenedLog(lock, state, segments, turn, report)


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
    meta.remove(files, f"{directory}/{STATE_DOCUMENT}")
    files.unlink(f"{directory}/{LOCK}")
    with suppress(OSError):  # something else lives here: not ours to judge
        files.rmdir(directory)
    files.sync_directory(meta.directory_of(directory))
