# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The rows of a table of subjects: for each the number of its messages and the sequence of the last, in one piece of memory.

    hash of the subject ─▶ slot: 32 bits of the hash │ place, in words of 8 bytes      16 bytes for each subject, on average
    place ─▶ row: last sequence │ count, 48 bits │ size of the subject, 16 bits │ size of the last message │ the subject

A stream may have a million subjects, of which none is in the processor's caches: what it costs to find one is the lines of
memory that are touched, one after the other. A dict touches four (an index, an entry, the bytes object, the value), and the
garbage collector looks through its objects; here they are a slot and a row, and a caller that knows its next subjects has
the lines of all of them read ahead (`slot_ahead`, `row_ahead`). A row is 32 bytes with a subject of 16, where the dict's
took 150. The size of the last message takes room only in tables that are made `with_weight`.

Slots: linear probing, at most three of four filled; behind a slot that is emptied, others move up. The hash is that of
bytes, whose key is secret, so no client can choose subjects that all fall into one slot. Rows without a subject are used
again for subjects of the same size in words. When more than half of the memory is such rows, the others are moved together,
a few with each row that is dropped, but not during a scan (`begin_scan`): all at once, of a million, took 40 ms.

    moved together ──▶ hole.start … hole.end ◀── not looked at yet: of these, none without a subject is used again

A place is valid until a row is dropped or `clear` is called. Interpreted, there are a dict and a list of rows instead.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.headwater.wire.cache_lines import prefetch
    from cython.cimports.libc.string import memcmp, memcpy, memmove, memset

FEWEST_SLOTS: int = 8
_WORDS: int = 32  # of the first memory for rows
_LEAST_WASTED: int = 1 << 13  # words; below this rows are not moved together
_PASSED: int = 4  # rows for each that is dropped, while they are moved together
_MOST_WORDS: int = 1 << 31  # what 32 bits of a slot can say, and a bit to spare: 16 GiB
_FIRST: int = 1  # place; 0 is none


class _Hole:
    """Between the rows that were moved together and the others."""

    def __init__(self) -> None:
        self.start: cython.Py_ssize_t = _FIRST
        self.end: cython.Py_ssize_t = _FIRST


class SubjectRows:
    """See the head of this module. `size`: the number of rows. `generation` changes when they are cleared."""

    def __init__(self, *, with_weight: bool = False) -> None:
        self.scans = 0
        self.generation = 0
        self._head = 3 if with_weight else 2
        self.clear()

    def clear(self) -> None:
        """Remove all rows."""
        self.size = 0
        self.generation += 1
        self._free: dict[int, int] = {}  # by size in words, the first of a chain: the first word of each says the next
        self._places: dict[bytes, int] = {}
        self._listed: list[list[int | bytes] | int] = [0]
        self._hole: _Hole | None = None
        if cython.compiled:
            self._end = _FIRST
            self._wasted = 0
            self._slot_memory = bytearray(FEWEST_SLOTS * 8)
            self._slots = cython.cast(cython.p_ulonglong, PyByteArray_AS_STRING(self._slot_memory))
            self._mask = FEWEST_SLOTS - 1
            self._row_memory = bytearray(_WORDS * 8)
            self._rows = cython.cast(cython.p_ulonglong, PyByteArray_AS_STRING(self._row_memory))

    # ── one subject ──

    def find(self, subject: bytes) -> cython.Py_ssize_t:
        """Its place; 0 if it is not there."""
        if cython.compiled:
            tag: cython.uint = cython.cast(cython.uint, hash(subject))
            at: cython.Py_ssize_t = tag & self._mask
            size: cython.size_t = len(subject)
            slot: cython.ulonglong = self._slots[at]
            row: cython.p_ulonglong
            while slot != 0:
                if cython.cast(cython.uint, slot >> 32) == tag:
                    row = self._rows + cython.cast(cython.uint, slot)
                    if (row[1] & 0xFFFF) == size and memcmp(row + self._head, PyBytes_AS_STRING(subject), size) == 0:
                        return cython.cast(cython.uint, slot)
                at = (at + 1) & self._mask
                slot = self._slots[at]
            return 0
        return self._places.get(subject, 0)

    def add(self, subject: bytes) -> cython.Py_ssize_t:
        """A row for a subject that is not there, of at most 65,535 bytes: its place. Numbers are 0."""
        place: cython.Py_ssize_t = self._new_row(subject)
        if cython.compiled:
            if self.size * 4 >= self._mask * 3:
                self._resize((self._mask + 1) * 2)
            tag: cython.ulonglong = cython.cast(cython.uint, hash(subject))
            self._put((tag << 32) | place)
        self.size += 1
        return place

    def drop(self, place: cython.Py_ssize_t, subject: bytes) -> cython.int:
        """Remove the row of this subject. All places become invalid."""
        if cython.compiled:
            mask: cython.Py_ssize_t = self._mask
            at: cython.Py_ssize_t = cython.cast(cython.uint, hash(subject)) & mask
            while cython.cast(cython.uint, self._slots[at]) != place:
                at = (at + 1) & mask
            gap: cython.Py_ssize_t = at
            home: cython.Py_ssize_t
            while True:  # each slot behind it moves into the gap, unless that is before where its search begins
                at = (at + 1) & mask
                if self._slots[at] == 0:
                    break
                home = (self._slots[at] >> 32) & mask
                if ((at - home) & mask) >= ((at - gap) & mask):
                    self._slots[gap] = self._slots[at]
                    gap = at
            self._slots[gap] = 0
            words: cython.Py_ssize_t = self._words_of(place)
            self._rows[place + 1] &= 0xFFFF  # a count of 0 says that the row is gone
            if self._hole is None or place < self._hole.start:
                self._rows[place] = self._free.get(words, 0)
                self._free[words] = place
            self._wasted += words
            self.size -= 1
            if self.size * 16 < mask and mask >= 1024:
                self._resize((mask + 1) // 4)
            if self._hole is not None:
                self._move()
            elif self._wasted > _LEAST_WASTED and self._wasted * 2 > self._end and self.scans == 0:
                self._hole = _Hole()
                self._free = {}
        else:
            del self._places[subject]
            self._listed[place] = self._free.get(0, 0)
            self._free[0] = place
            self.size -= 1
        return 0

    # ── one row ──

    def count(self, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The number of messages."""
        if cython.compiled:
            return cython.cast(cython.Py_ssize_t, self._rows[place + 1] >> 16)
        return self._listed[place][1]  # type: ignore[index, return-value]

    def last(self, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The last sequence."""
        if cython.compiled:
            return cython.cast(cython.Py_ssize_t, self._rows[place])
        return self._listed[place][2]  # type: ignore[index, return-value]

    def weight(self, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The size of the last message."""
        if cython.compiled:
            return cython.cast(cython.Py_ssize_t, self._rows[place + 2])
        return self._listed[place][3]  # type: ignore[index, return-value]

    def set(self, place: cython.Py_ssize_t, count: cython.longlong, last: cython.longlong) -> cython.int:
        """Set two of the numbers; `count` is above 0."""
        if cython.compiled:
            self._rows[place] = cython.cast(cython.ulonglong, last)
            self._rows[place + 1] = (self._rows[place + 1] & 0xFFFF) | (cython.cast(cython.ulonglong, count) << 16)
        else:
            self._listed[place][1:3] = [count, last]  # type: ignore[index]
        return 0

    def set_weight(self, place: cython.Py_ssize_t, weight: cython.longlong) -> cython.int:
        """Set the size of the last message."""
        if cython.compiled:
            self._rows[place + 2] = cython.cast(cython.ulonglong, weight)
        else:
            self._listed[place][3] = weight  # type: ignore[index]
        return 0

    def name(self, place: cython.Py_ssize_t) -> bytes:
        """The subject."""
        if cython.compiled:
            text: cython.p_char = cython.cast(cython.p_char, self._rows + place + self._head)
            return PyBytes_FromStringAndSize(text, self._rows[place + 1] & 0xFFFF)  # type: ignore[no-any-return]
        return self._listed[place][0]  # type: ignore[index, return-value]

    # ── all ──

    def following(self, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next row behind this one, or the first behind 0; 0 behind the last. Rows are in no order."""
        if cython.compiled:
            place = _FIRST if place == 0 else place + self._words_of(place)
            while place < self._end:
                if self._hole is not None and place == self._hole.start < self._hole.end:
                    place = self._hole.end
                elif self._rows[place + 1] >> 16 != 0:
                    return place
                else:
                    place += self._words_of(place)
            return 0
        place += 1
        while place < len(self._listed):
            if isinstance(self._listed[place], list):
                return place
            place += 1
        return 0

    def begin_scan(self) -> None:
        """From now on until `end_scan`, rows stay where they are, also when others are added and dropped, until `clear`."""
        self.scans += 1

    def end_scan(self) -> None:
        """See `begin_scan`."""
        self.scans -= 1

    # ── reading ahead ──

    def slot_ahead(self, subject: bytes) -> cython.int:
        """Have the slot read that is looked at first. Compiled only."""
        if cython.compiled:
            prefetch(self._slots + (cython.cast(cython.uint, hash(subject)) & self._mask))
        return 0

    def row_ahead(self, subject: bytes) -> cython.int:
        """Have the row read that is most likely the subject's; its slot has been read. Compiled only."""
        if cython.compiled:
            tag: cython.uint = cython.cast(cython.uint, hash(subject))
            at: cython.Py_ssize_t = tag & self._mask
            while self._slots[at] != 0:
                if cython.cast(cython.uint, self._slots[at] >> 32) == tag:
                    prefetch(self._rows + cython.cast(cython.uint, self._slots[at]))
                    # A line later, if it is across.
                    prefetch(self._rows + cython.cast(cython.uint, self._slots[at]) + 3)
                    break
                at = (at + 1) & self._mask
        return 0

    # ── memory ──

    def _new_row(self, subject: bytes) -> cython.Py_ssize_t:
        place: cython.Py_ssize_t
        if cython.compiled:
            size: cython.Py_ssize_t = len(subject)
            words: cython.Py_ssize_t = self._head + (size + 7) // 8
            place = self._free.get(words, 0)
            if place != 0:
                self._free[words] = cython.cast(cython.Py_ssize_t, self._rows[place])
                self._wasted -= words
            else:
                self._reserve(words)
                place = self._end
                self._end += words
            memset(self._rows + place, 0, self._head * 8)
            self._rows[place + 1] = size
            memcpy(self._rows + place + self._head, PyBytes_AS_STRING(subject), size)
            return place
        place = self._free.get(0, 0)
        if place:
            self._free[0] = self._listed[place]  # type: ignore[assignment]
        else:
            place = len(self._listed)
        self._listed[place : place + 1] = [[subject, 0, 0, 0]]
        self._places[subject] = place
        return place

    def _put(self, slot: cython.ulonglong) -> cython.int:
        """Fill the first empty slot from where the search for it begins."""
        if cython.compiled:
            at: cython.Py_ssize_t = (slot >> 32) & self._mask
            while self._slots[at] != 0:
                at = (at + 1) & self._mask
            self._slots[at] = slot
        return 0

    def _resize(self, slots: cython.Py_ssize_t) -> cython.int:
        """Another number of slots, a power of two."""
        if cython.compiled:
            held: bytearray = self._slot_memory
            old: cython.p_ulonglong = self._slots
            count: cython.Py_ssize_t = self._mask + 1
            at: cython.Py_ssize_t
            self._slot_memory = bytearray(slots * 8)
            self._slots = cython.cast(cython.p_ulonglong, PyByteArray_AS_STRING(self._slot_memory))
            self._mask = slots - 1
            for at in range(count):
                if old[at] != 0:
                    self._put(old[at])
            held.clear()
        return 0

    def _reserve(self, words: cython.Py_ssize_t) -> cython.int:
        """Room for a row of so many words."""
        if cython.compiled:
            room: cython.Py_ssize_t = len(self._row_memory) // 8
            if self._end + words > room:
                room += max(room // 4, words, _WORDS)
                if room > _MOST_WORDS:
                    raise MemoryError("a table of subjects would take more than 16 GiB")
                PyByteArray_Resize(self._row_memory, room * 8)
                self._rows = cython.cast(cython.p_ulonglong, PyByteArray_AS_STRING(self._row_memory))
        return 0

    def _words_of(self, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The size of a row, also of one that is gone."""
        if cython.compiled:
            return self._head + ((self._rows[place + 1] & 0xFFFF) + 7) // 8
        return 1

    def _move(self) -> cython.int:
        """Pass the next rows behind the hole: one with a subject moves to its start."""
        if cython.compiled:
            hole: _Hole = self._hole
            passed: cython.Py_ssize_t = 0
            place: cython.Py_ssize_t
            words: cython.Py_ssize_t
            at: cython.Py_ssize_t
            while passed < _PASSED and hole.end < self._end and self.scans == 0:
                place = hole.end
                words = self._words_of(place)
                if self._rows[place + 1] >> 16 != 0:
                    if hole.start != place:
                        at = cython.cast(cython.uint, hash(self.name(place))) & self._mask
                        while cython.cast(cython.uint, self._slots[at]) != place:
                            at = (at + 1) & self._mask
                        memmove(self._rows + hole.start, self._rows + place, words * 8)
                        self._slots[at] = (self._slots[at] >> 32 << 32) | hole.start
                    hole.start += words
                hole.end += words
                passed += 1
            if hole.end == self._end and self.scans == 0:
                self._wasted -= hole.end - hole.start
                self._end = hole.start
                self._hole = None
                PyByteArray_Resize(self._row_memory, max(self._end, _WORDS) * 8)
                self._rows = cython.cast(cython.p_ulonglong, PyByteArray_AS_STRING(self._row_memory))
        return 0
