# cython: boundscheck=True, wraparound=True
"""Which records a scan of a log has met, for who removes them: where they are and how much they weigh, no copies of them.

A purge needs the subject of each, its offset and its size. To copy header block and payload as well, and to make an object
of all that, took a quarter of a purge's instructions.
"""

from collections.abc import Callable, Sequence

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.headwater.model.subject_match import _compare
    from cython.cimports.headwater.streams.log_format import RecordCursor, StoredRecord
    from cython.cimports.headwater.streams.offset_set import OffsetSet
else:
    from headwater.model.subject_match import matches
    from headwater.streams.log_format import RecordCursor, StoredRecord
    from headwater.streams.offset_set import OffsetSet


Wanted = bytes | Callable[[bytes], bool]  # a subject, or whether one is wanted


class RecordPlaces:
    """Records of a log in their order. `plain` and `with_headers`: what a record counts for beside the bytes of its subject,
    header block and payload, if it has no header block and if it has one."""

    offsets: list[int]
    subjects: list[bytes]
    sizes: list[int]

    def __init__(self, plain: cython.Py_ssize_t, with_headers: cython.Py_ssize_t) -> None:
        self.offsets = []
        self.subjects = []
        self.sizes = []
        self._plain = plain
        self._with_headers = with_headers

    def __len__(self) -> int:
        return len(self.offsets)

    def note(self, record: StoredRecord) -> None:
        """Have this record, too."""
        more = self._with_headers if record.header_block else self._plain
        self.offsets.append(record.offset)
        self.subjects.append(record.subject)
        self.sizes.append(more + len(record.subject) + len(record.header_block) + len(record.payload))

    def note_matching(
        self,
        cursor: RecordCursor,
        start: cython.longlong,
        end: cython.longlong,
        absent: OffsetSet,
        wanted: Wanted | tuple[bytes, ...] | None,
        most: cython.Py_ssize_t,
    ) -> cython.bint:
        """Have the records behind the cursor with offsets in `[start, end)` that are not `absent`; only those `wanted`, or
        that match one of these patterns (None: all). False where there are `most` of them, or one at `end` or above was met:
        then what is behind was not looked at."""
        subject: bytes | None = wanted if isinstance(wanted, bytes) else None
        patterns: Sequence[bytes] | None = wanted if isinstance(wanted, tuple) else None
        chosen = wanted if callable(wanted) else None
        name: bytes
        more: cython.Py_ssize_t
        while cursor.advance() if subject is None else cursor.advance_to(subject):
            if cursor.offset >= end:
                return False
            if cursor.offset < start or absent.has(cursor.offset):
                continue
            if patterns is not None and not _matches(cursor, patterns):
                continue
            name = cursor.subject() if subject is None else subject
            if chosen is not None and not chosen(name):
                continue
            more = self._with_headers if cursor.payload_at > cursor.header_block_at else self._plain
            self.offsets.append(cursor.offset)
            self.subjects.append(name)
            self.sizes.append(more + cursor.end - cursor.subject_at)
            if len(self.offsets) >= most:
                return False
        return True

    def keep(self, offsets: list[int]) -> "RecordPlaces":
        """These of them."""
        there = set(offsets)
        kept = RecordPlaces(self._plain, self._with_headers)
        for offset, subject, size in zip(self.offsets, self.subjects, self.sizes, strict=True):
            if offset in there:
                kept.offsets.append(offset)
                kept.subjects.append(subject)
                kept.sizes.append(size)
        return kept


def _matches(cursor: RecordCursor, patterns: Sequence[bytes]) -> cython.bint:
    """Whether the subject of a record matches one of these; compiled, no object is made of it."""
    pattern: bytes
    for pattern in patterns:
        if cython.compiled:
            start: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(cursor.buffer)) + cursor.subject_at
            size: cython.Py_ssize_t = cursor.header_block_at - cursor.subject_at
            if _compare(cython.cast(cython.p_uchar, PyBytes_AS_STRING(pattern)), len(pattern), start, size):
                return True
        elif matches(pattern, cursor.subject()):
            return True
    return False
