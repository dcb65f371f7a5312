"""Opening a log directory: look at everything, let `recovery` decide, then carry the decision out.

The order makes a crash during opening harmless: looking changes nothing; cut bytes are durable in their own file before
the segment is cut; a new segment is durable before anything relies on it. Opening twice finds the same log.

A directory without segments and state is a new log. What is there and is neither a segment, nor the state, nor the lock
is left alone.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from google_crc32c import value as crc32c

from headwater.errors import CorruptLog, StorageError
from headwater.streams import meta
from headwater.streams.clean_index import INDEX_FILE, CleanIndex, absences_of, encode_index, facts_of, load_index
from headwater.streams.files import File, Files, storage_error
from headwater.streams.log_format import (
    HEAD_PAGE_SIZE,
    IDENTITY_SIZE,
    MAX_OFFSET,
    Mark,
    SegmentHead,
)
from headwater.streams.log_state import LogState
from headwater.streams.offset_set import OffsetSet
from headwater.streams.recovery import (
    Decision,
    RecoveryReport,
    SegmentFacts,
    absences,
    decide,
    examine,
    identity_of,
    kept_aside,
)
from headwater.streams.segment import NEW_SUFFIX, SUFFIX, Segment, base_offset_of, segment_name
from headwater.streams.writer import STATE_DOCUMENT, create_segment

LOCK = "lock"
COPY_PIECE = 1 << 20


class Found(NamedTuple):
    """What is in the directory. `clean_index` is None when the segments were read."""

    facts: list[SegmentFacts]
    clean_index: CleanIndex | None
    notes: list[str]


class OpenedLog(NamedTuple):
    """What the log starts with. The last segment is the active one; its newest mark is that of `turn`. `absent`: offsets
    without a record. `document`: what the last clean close was given; None when the segments had to be read."""

    lock: File
    state: LogState
    segments: list[Segment]
    turn: int
    report: RecoveryReport
    absent: OffsetSet
    document: bytes | None


def open_directory(files: Files, directory: str, now_ns: int, first_offset: int = 0) -> OpenedLog:
    """Recover the log in `directory`, or make one that starts at `first_offset`. Raises StorageError when another process
    has it, when the disk fails, or when it was written by a newer version."""
    try:
        files.mkdir(directory)
        lock = _take_lock(files, directory)
    except OSError as error:
        raise storage_error(f"open the log {directory}", error) from error
    try:
        return _recover(files, directory, lock, now_ns, first_offset)
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


def _recover(files: Files, directory: str, lock: File, now_ns: int, first_offset: int) -> OpenedLog:
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
        identity = claimed_identity(files, directory, bases) or files.entropy(IDENTITY_SIZE)
        first = bases[0] if bases else first_offset
        facts = examine_all(files, directory, bases, identity, MAX_OFFSET)
        decision = decide(facts, None)
        if not bases:
            decision = decision._replace(next_offset=first)
        state = LogState(identity, first, decision.next_offset, bases[-1] if bases else 0, marks_are_synced=True)
        meta.save(files, f"{directory}/{STATE_DOCUMENT}", state.encode())
        return _carry_out(files, directory, lock, now_ns, state, Found(facts, None, notes), decision)
    bases = _drop_expired(files, directory, bases, state.start_offset)
    found = _find(files, directory, bases, state, notes)
    if found.clean_index is None:
        state = replace(state, index_crc=0)  # so that the next close makes a new one
    return _carry_out(files, directory, lock, now_ns, state, found, decide(found.facts, state))


def _drop_expired(files: Files, directory: str, bases: list[int], start_offset: int) -> list[int]:
    """Finish the dropping of segments that lie below where the log begins."""
    while len(bases) > 1 and bases[1] <= start_offset:
        files.unlink(f"{directory}/{segment_name(bases[0])}")
        bases = bases[1:]
    return bases


def _find(files: Files, directory: str, bases: list[int], state: LogState, notes: list[str]) -> Found:
    """What the segments hold: from the index of a clean close where it may be believed, else from all of the data."""
    if state.index_crc:
        index = load_index(files, directory, state.index_crc, bases)
        facts = facts_of(files, directory, index, state.identity) if index is not None else None
        if facts is not None:
            return Found(facts, index, notes)
        notes.append(f"{directory}/{INDEX_FILE} does not fit the segments; made again from them")
    return Found(examine_all(files, directory, bases, state.identity, state.reserved_end), None, notes)


def save_index(
    files: Files, directory: str, facts: list[SegmentFacts], absent: OffsetSet, start: int, document: bytes
) -> int:
    """Write the index durably; returns its CRC32C for the state. Raises OSError."""
    content = encode_index(facts, absent, start, facts[-1].end_offset, document)
    file = files.create(f"{directory}/{INDEX_FILE}")
    try:
        file.pwrite([content], 0)
        file.fdatasync()
    finally:
        file.close()
    return crc32c(content) or 1  # 0 says that there is none


def segment_bases(files: Files, directory: str) -> list[int]:
    """Base offsets of the segments, ascending."""
    return sorted(base for name in files.listdir(directory) if (base := base_offset_of(name)) is not None)


def _sweep(files: Files, directory: str) -> list[int]:
    """As `segment_bases`; what never got its final name holds nothing, and goes."""
    for name in files.listdir(directory):
        if name.endswith(NEW_SUFFIX) and base_offset_of(name.removesuffix(NEW_SUFFIX) + SUFFIX) is not None:
            files.unlink(f"{directory}/{name}")
    return segment_bases(files, directory)


def claimed_identity(files: Files, directory: str, bases: list[int]) -> bytes | None:
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


def examine_all(
    files: Files, directory: str, bases: list[int], identity: bytes, limit: int | None
) -> list[SegmentFacts]:
    """What every segment holds; `limit` is the end of what the newest may hold, None when nobody knows."""
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
    if found.clean_index is not None:
        absent = absences_of(found.clean_index)
    else:
        absent = absences(facts, state.start_offset, decision.next_offset)
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
    document = found.clean_index.document if found.clean_index is not None else None
    return OpenedLog(lock, state, segments, turn, report, absent, document)


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
    with suppress(FileNotFoundError):
        files.unlink(f"{directory}/{INDEX_FILE}")
    files.unlink(f"{directory}/{LOCK}")
    with suppress(OSError):  # something else lives here: not ours to judge
        files.rmdir(directory)
    files.sync_directory(meta.directory_of(directory))
