"""Decides which log a file belongs to: compares each file's own data with its place and with the other files.

A log has an identity, 64 random bits. The two copies of its state, the head of every segment and every batch carry it;
a segment's head and a document also say which one they are. An operator may still copy a file of another log, or an
older copy, to a name that this log reads. So, before the contents of a file are used:

1. **The log's identity** is what its stream says it is, where that is known. Else it is the one that most of its files
carry, where each segment and each copy of the state counts once; segments decide a tie, because they hold the messages.
2. **A copy of the state** of another identity is a stranger. Of the others the higher generation counts.
3. **A segment** of another identity, or whose head names another base offset than the file's name, is a stranger. One
   that says nothing (its head and its first batch are damaged) is this log's.
4. **A state that is older than the segments** (marks reach past its reservation, or a segment begins there) is used only
as far as it can be right: its reservation is raised, so that no intact batch is taken for torn.

The caller that opens the log puts strangers aside and never deletes them. This module only reads and decides.
`recovery.decide` reports what is lost with a file that should have been in the stranger's place.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from headwater.durable_files import documents
from headwater.durable_files.documents import NO_IDENTITY
from headwater.durable_files.files import Files
from headwater.errors import CorruptLog
from headwater.streams.head_page import HEAD_PAGE_SIZE, decode_marks, decode_segment_head
from headwater.streams.log_state import LogState
from headwater.streams.recovery import examine, identity_of
from headwater.streams.segment import segment_name

STATE_DOCUMENT = "log.state"

Stranger = tuple[str, str]  # path, the identity or place in its own data


class Owner(NamedTuple):
    """`identity`: the log's; None when no file says one. `state`: the newest copy that is the log's own."""

    identity: bytes | None
    state: LogState | None
    strangers: list[Stranger]


def judge_owner(files: Files, directory: str, bases: Sequence[int], known: bytes, notes: list[str]) -> Owner:
    """Points 1 and 2. `known`: the identity that the stream says its log has, or `NO_IDENTITY`. Appends to `notes` what is
    damaged. Raises OSError, and CorruptLog for a state of another version."""
    path = f"{directory}/{STATE_DOCUMENT}"
    states = {
        copy.path: state for copy in documents.copies(files, path, []) if (state := LogState.decode(copy.payload))
    }
    voices = Counter(claim for base in bases if (claim := _claim(files, directory, base)) is not None)
    claimed_by_segments = set(voices)
    voices.update(state.identity for state in states.values())
    identity = known if known != NO_IDENTITY else None
    if identity is None and voices:
        identity = max(voices, key=lambda claim: (voices[claim], claim in claimed_by_segments))
    strangers = [
        (place, f"is of the log {state.identity.hex()}")
        for place, state in states.items()
        if state.identity != identity
    ]
    outside = {place for place, _ in strangers}
    mine = documents.load_copy(
        files, path, notes, judge=lambda copy: "is of another log" if copy.path in outside else ""
    )
    if mine is None:
        return Owner(identity, None, strangers)
    state = states.get(mine.path)
    if state is None:
        raise CorruptLog(
            f"{path} is intact but not of a version this program knows",
            hint="it was written by a newer Headwater; open the log with that, or upgrade",
        )
    return Owner(identity, state, strangers)


def judge_segments(files: Files, directory: str, bases: Sequence[int], identity: bytes) -> list[Stranger]:
    """Point 3. Raises OSError."""
    strangers = []
    for base in bases:
        path = f"{directory}/{segment_name(base)}"
        file = files.open(path)
        try:
            head = decode_segment_head(file.pread(HEAD_PAGE_SIZE, 0))
            claim = identity_of(file.pread)
        finally:
            file.close()
        if claim is not None and claim != identity:
            strangers.append((path, f"is of the log {claim.hex()}"))
        elif head is not None and head.base_offset != base:
            strangers.append((path, f"is the segment that begins at offset {head.base_offset}"))
    return strangers


def not_older_than(files: Files, directory: str, bases: Sequence[int], state: LogState, notes: list[str]) -> LogState:
    """Point 4: the state, with a reservation that covers what the newest segments say. Raises OSError."""
    if not bases:
        return state
    newest = bases[-1]
    file = files.open(f"{directory}/{segment_name(newest)}")
    try:
        mark, _, _ = decode_marks(file.pread(HEAD_PAGE_SIZE, 0), state.identity)
        end = max(newest, mark.assigned_end if mark is not None else 0)
        if end <= state.reserved_end:
            return state
        if state.closed and newest <= state.reserved_end:
            # The stop's own mark may be lost (it is not synced), and the one before it reserves offsets that were not used.
            found = examine(file.pread, file.size(), segment_name(newest), newest, state.identity, end)
            if found.end_offset <= state.reserved_end and not found.tail:
                return state
    finally:
        file.close()
    notes.append(f"{directory}/{STATE_DOCUMENT} is of an older time than {segment_name(newest)}")
    return replace(state, reserved_end=end, index_crc=0, closed=False)


def _claim(files: Files, directory: str, base: int) -> bytes | None:
    file = files.open(f"{directory}/{segment_name(base)}")
    try:
        return identity_of(file.pread)
    finally:
        file.close()
