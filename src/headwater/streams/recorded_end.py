"""Lower bounds of the log's end, from the files beside its segments.

The marks of the newest segment give a bound that the log's end is not above. If the segment was replaced by an older copy
of itself, its marks are older too, and do not show what is missing. Three other files have a lower bound of the end, which
is never too high:

    log.end          exact after a kill, and says so; after a power loss as old as the last write-back (end_file.py)
    log.checkpoint   how far the log reached when it was made (clean_index.py)
    log.state        the exact end, after a clean stop (log_state.py)

The log's owner passes its own bound (positions of consumers) to `Log.open`. If the newest segment and all of these were
replaced by copies of one earlier moment, the loss goes unnoticed.
"""

from typing import NamedTuple

from headwater.durable_files.documents import NO_IDENTITY
from headwater.durable_files.files import Files
from headwater.streams.clean_index import read_checkpoint
from headwater.streams.end_file import END_FILE, END_FILE_SIZE, RecordedEnd, decode_end
from headwater.streams.writer import CHECKPOINT_FILE


class Testimony(NamedTuple):
    """The bound found. `strangers`: paths of files of other logs, with their identity. `notes`: about damaged files."""

    end: RecordedEnd
    strangers: list[tuple[str, str]]
    notes: list[str]


def read_recorded_end(files: Files, directory: str, identity: bytes, known: int = 0) -> Testimony:
    """The highest end that `log.end` and `log.checkpoint` know, `known` at least: what its owner knows to have been durable.
    Raises OSError."""
    found = Testimony(RecordedEnd(known), [], [])
    checkpoint = read_checkpoint(files, directory)
    for name, claim in (
        (END_FILE, _read_end(files, f"{directory}/{END_FILE}")),
        (CHECKPOINT_FILE, (checkpoint.owner, RecordedEnd(checkpoint.end)) if checkpoint is not None else None),
    ):
        if claim is None:
            continue
        owner, end = claim
        if owner == NO_IDENTITY:
            found.notes.append(f"{directory}/{name} is damaged")
        elif owner != identity:
            found.strangers.append((f"{directory}/{name}", f"is of the log {owner.hex()}"))
        else:
            found = found._replace(end=_joined(found.end, end))
    return found


def _joined(known: RecordedEnd, end: RecordedEnd) -> RecordedEnd:
    """The higher of both. Only the highest can be exact."""
    newest = end if end.size else known
    offset = max(known.offset, end.offset)
    return newest._replace(offset=offset, is_exact=newest.is_exact and newest.offset == offset)


def _read_end(files: Files, path: str) -> tuple[bytes, RecordedEnd] | None:
    try:
        file = files.open(path)
    except FileNotFoundError:
        return None
    try:
        return decode_end(file.pread(END_FILE_SIZE, 0), files.boot())
    finally:
        file.close()
