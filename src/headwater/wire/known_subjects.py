# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The subjects that were published to last, and who gets them: a table that is read without touching what it does not need.

    tag ─▶ pair of slots, one cache line ─▶ two more pairs ─▶ three more …
           slot: tag │ Known │ only receiver │ text, the bytes that begin what this one gets

With a hundred thousand subjects nothing of this is in the processor's caches, and a message costs as much as it touches
lines of memory. So a slot is half a line, and has what a delivery to one subscription needs: a caller that knows its next
messages reads the slots of all of them ahead, and then their subscriptions (`publishes_ahead`).

The tag is a hash of the subject and of the generation of interest. All steps from one to the other can be reversed, so a
subject has other tags in other generations, and no slot need be emptied when interest changes. Different subjects may
share a tag: who finds a slot compares the subject.

The table has twice as many slots as subjects that are published to, up to a limit that the caller sets for each. Compiled
only; interpreted, a dict is cheaper (`Sublist`).
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.wire.cache_lines import prefetch
    from cython.cimports.headwater.wire.memory import equals
    from cython.cimports.libc.string import memcpy


def tag_of(name: cython.p_uchar, length: cython.Py_ssize_t, generation: cython.Py_ssize_t) -> cython.ulonglong:
    """The tag of a subject, never 0. Compiled only."""
    if cython.compiled:
        factor: cython.ulonglong = 0x2545F491  # in two halves: a longer literal would be a Python object
        factor = (factor << 32) | 0x4F6CDD1D
        word: cython.ulonglong = 0
        mixed: cython.ulonglong = cython.cast(cython.ulonglong, generation) * factor + length
        at: cython.Py_ssize_t = 0
        while at + 8 <= length:
            memcpy(cython.address(word), name + at, 8)
            mixed = (mixed ^ word) * factor
            mixed ^= mixed >> 32
            at += 8
        if at < length:
            word = 0
            memcpy(cython.address(word), name + at, length - at)
            mixed = (mixed ^ word) * factor
            mixed ^= mixed >> 32
        mixed *= factor
        mixed ^= mixed >> 29
        return mixed if mixed != 0 else 1
    return 1


class Known:
    """A subject and its Match; `only` is the only receiver, if it is one subscription of a client."""

    def __init__(self, subject: bytes, match: object, only: object, generation: int) -> None:
        self.subject = subject
        self.match = match
        self.only = only
        self.generation = generation


class KnownSubjects:
    """The table. `evicted` counts the subjects that gave way to others while they were still right."""

    def __init__(self) -> None:
        self.size = 0
        self.evicted = 0
        self._used = 0  # slots that were filled in this generation
        self._generation = -1
        self._swept = 0  # where `forget_stale` goes on
        self._memory = bytearray()
        self._owners: list[Known | None] = []  # holds the references that the slots have without counting them
        if cython.compiled:
            self._make(1 << 10)  # a small one until more subjects come

    def _make(self, size: cython.Py_ssize_t) -> cython.int:
        """An empty table of `size` slots, a power of two."""
        if cython.compiled:
            self._memory = bytearray(size * 32 + 64)
            base: cython.p_char = PyByteArray_AS_STRING(self._memory)
            over: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, base) & 63
            self._slots = cython.cast(cython.p_ulonglong, base + 64 - over)
            self._owners = [None] * size
            self.size = size
            self._used = self._swept = 0
        return 0

    def forget_stale(self, generation: cython.Py_ssize_t) -> cython.int:
        """Empty a few slots of other generations, in turn: after an eighth as many calls as there are slots, nothing is held
        on to that was stale before. No search that is still right ends at an empty slot: `add` fills stale ones first."""
        if cython.compiled:
            index: cython.Py_ssize_t
            there: Known | None
            _step: cython.int
            for _step in range(8):
                index = self._swept
                there = self._owners[index]
                if there is not None and there.generation != generation:
                    self._slots[index * 4] = 0
                    self._owners[index] = None
                self._swept = (index + 1) & (self.size - 1)
        return 0

    def prefetch_slot(self, tag: cython.ulonglong) -> None:
        """Have the line of `tag` read that most often has its slot."""
        if cython.compiled:
            prefetch(self._slots + (tag & (self.size - 2)) * 4)

    def find_slot(self, tag: cython.ulonglong) -> cython.Py_ssize_t:
        """The first word of the slot with this tag, or -1."""
        if cython.compiled:
            home: cython.Py_ssize_t = tag & (self.size - 2)
            at: cython.Py_ssize_t
            step: cython.int
            for step in range(8):  # as `add` places it
                at = ((home + step) & (self.size - 1)) * 4
                if self._slots[at] == tag:
                    return at
                if self._slots[at] == 0:
                    break
        return -1

    def find(
        self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t, tag: cython.ulonglong
    ) -> object:
        """The Match of the subject `buffer[start:end]`, whose tag this is; or None."""
        if cython.compiled:
            at: cython.Py_ssize_t = self.find_slot(tag)
            if at >= 0:
                known: Known = cython.cast(Known, cython.cast(cython.p_void, self._slots[at + 1]))
                if equals(buffer, start, end, known.subject):
                    return known.match
        return None

    def add(self, tag: cython.ulonglong, known: Known, text: bytes, most: cython.Py_ssize_t) -> cython.int:
        """Add a subject that is not there; the table may have `most` slots. `known` holds what `text` is part of."""
        if cython.compiled:
            if known.generation != self._generation:
                self._generation = known.generation
                self._used = 0
            if self._used * 2 >= self.size and self.size < most:
                self._make(self.size * 2)
            elif self.size > most:
                self._make(most)
            home: cython.Py_ssize_t = tag & (self.size - 2)
            index: cython.Py_ssize_t = home
            step: cython.int
            there: Known | None
            for step in range(8):
                index = (home + step) & (self.size - 1)
                there = self._owners[index]
                if there is None or there.generation != self._generation:
                    self._used += 1
                    break
            else:  # the window is full
                self.evicted += 1
                index = home + ((tag >> 40) & 1)
            self._owners[index] = known
            slot: cython.p_ulonglong = self._slots + index * 4
            slot[0] = tag
            slot[1] = cython.cast(cython.ulonglong, cython.cast(cython.p_void, known))
            slot[2] = 0 if known.only is None else cython.cast(cython.ulonglong, cython.cast(cython.p_void, known.only))
            slot[3] = cython.cast(cython.ulonglong, cython.cast(cython.p_void, text))
        return 0
