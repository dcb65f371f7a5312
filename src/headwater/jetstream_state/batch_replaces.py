# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""What the messages of a batch stand in for, looked up in the table of subjects before it counts the batch.

Hot and compiled: each runs over every message of a stream with such settings. What is to be done once the batch is
durable: `stored_batch`.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.items import Item
    from cython.cimports.headwater.jetstream_state.subject_table import SubjectTable
else:
    from headwater.jetstream_state.items import Item
    from headwater.jetstream_state.subject_table import SubjectTable

from headwater.model.subject import is_literal


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
