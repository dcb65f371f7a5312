# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""What the messages of a batch leave to do once they are durable: roll-ups, TTLs, republishing.

`previous_of` and `replaced_by` look at the table of subjects before it counts the batch, `attend` does the work after it.
Hot and compiled: each runs over every message of a stream with such settings.
"""

from collections.abc import Callable
from heapq import heappush
from typing import TYPE_CHECKING

import cython

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.items import Item, Particulars
    from cython.cimports.headwater.jetstream_state.subject_table import SubjectTable
else:
    from headwater.jetstream_state.items import Item, Particulars
    from headwater.jetstream_state.subject_table import SubjectTable

from headwater.model.subject import is_literal

if TYPE_CHECKING:
    from headwater.jetstream_state.contents import Contents


def previous_of(items: list[Item], subjects: SubjectTable) -> dict[int, int]:
    """By sequence, the message of the same subject before each of these, which are not added yet; 0 for none."""
    known: dict[bytes, int] = {}
    found: dict[int, int] = {}
    is_alone: cython.bint = False  # behind a roll-up of everything
    item: Item
    for item in items:
        if item.subject:
            sequence = item.sequence
            before = known.get(item.subject)
            found[sequence] = before if before is not None else 0 if is_alone else subjects.last(item.subject)
            if item.particulars is not None and item.particulars.rollup == b"all":
                known, is_alone = {}, True
            known[item.subject] = sequence
    return found


def replaced_by(items: list[Item], subjects: SubjectTable) -> dict[int, tuple[int, int]]:
    """By sequence of those of these, which are not added yet, that roll up their subject: the only message of the
    subject before it and its size, 0 for none and where only the log has the size. Those with more before them are
    left out: only the log has their sequences."""
    found: dict[int, tuple[int, int]] = {}
    newest: dict[bytes, tuple[int, int] | None] = {}  # None: more than one may be there
    item: Item
    kind: bytes
    for item in items:
        kind = item.particulars.rollup if item.particulars is not None else b""
        if kind == b"all":
            return found
        if kind == b"sub" and is_literal(item.subject):  # with wildcards it replaces messages of other subjects, too
            if item.subject not in newest:
                lone = subjects.total(item.subject) <= 1
                newest[item.subject] = (subjects.last(item.subject), 0) if lone else None
            only = newest[item.subject]
            if only is not None:
                found[item.sequence] = only
            newest[item.subject] = (item.sequence, item.size)
        elif item.subject:
            newest[item.subject] = None
    return found


def attend(
    items: list[Item],
    contents: "Contents",
    is_needed: Callable[[Item], bool] | None,
    republish: Callable[[Item], None] | None,
) -> None:
    """Apply roll-ups and TTLs of messages that became durable, and republish them. `is_needed(item)`: whether it is still
    there; None: all are. Messages that roll-ups replace leave together."""
    expires: cython.bint = contents.config.allow_msg_ttl
    entries: list[tuple[int, int]] = contents.expiry.entries
    replaced: dict[int, tuple[int, int]] = contents.replaced
    gone: list[tuple[int, bytes, int]] = []
    particulars: Particulars | None
    item: Item
    for item in items:
        particulars = item.particulars
        if particulars is None or (is_needed is not None and not is_needed(item)):
            continue
        if particulars.rollup:
            only = replaced.get(item.sequence) if replaced else None
            if only is not None and only[1]:
                gone.append((only[0], item.subject, only[1]))
            else:
                if gone:
                    contents.remove_known(gone)
                    gone = []
                contents.roll_up(particulars.rollup, item.subject, item.sequence)
        if expires and particulars.ttl_ns > 0:
            heappush(entries, (particulars.timestamp_ns + particulars.ttl_ns, item.sequence))
        elif expires and particulars.ttl_ns < 0 and particulars.header_block:
            contents.expiry.note(item.sequence, particulars.header_block, particulars.timestamp_ns)
        if republish is not None:
            republish(item)
    if gone:
        contents.remove_known(gone)
