# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The subjects that were published to last, and who gets them: a table that is read without touching what it does not need.

    tag ─▶ slot, one cache line ─▶ the seven behind it
           slot: tag │ outlet │ messages it got │ sizes │ right since │ `<subject> <sid> `

With a hundred thousand subjects nothing of this is in the processor's caches, and a message costs as much as it touches
lines of memory. So a slot has all that a delivery to one subscription needs, and its subscription is not touched: its
messages are counted in the slot (`settle`). A caller that knows its next messages reads the slots of all of them ahead
(`publishes_ahead`).

A subject that is longer than a slot has room for is read where its subscription has it. What a subscription with wildcards
gets is counted there, for it has many slots.

The tag is a hash of the subject and of a generation, of which there is another when interest in many subjects changes.
All steps from one to the other can be reversed, so a subject has other tags in other generations, and no slot need be
emptied then; a change of interest in one subject empties its slot (`forget`). Different subjects may share a tag: who
finds a slot compares the subject.

A change of a pattern such as `orders.7.*` (`change`) is noted under its tokens before the first wildcard, with its number.
A slot that was right before the last change is looked at when it is found next: it is right if nothing that its subject
begins with has changed since (`is_right`). So a change costs two lines of memory, however many subjects are known, and a
slot one look for each of the tokens of its subject, four at most, once for all the changes since: into a small table of
changes, which stays in the processor's caches, and only where something that shares its place there has changed, into one
that has as many numbers as slots.

The table has twice as many slots as subjects that are published to, up to a limit that the caller sets for each. Compiled
only; interpreted, a dict is cheaper (`Sublist`).
"""

import sys

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
    from cython.cimports.headwater.wire.cache_lines import (
        COUNTS_ITSELF,
        ELSEWHERE,
        FEW_CHANGES,
        LOOKED_AT,
        NOTED_TOKENS,
        ROOM,
        SWEPT,
        TEXT_AT,
        item,
        prefetch,
    )
    from cython.cimports.headwater.wire.memory import equals
    from cython.cimports.libc.string import memcpy
    from cython.cimports.posix.mman import (
        MAP_ANONYMOUS,
        MAP_FAILED,
        MAP_PRIVATE,
        PROT_READ,
        PROT_WRITE,
        madvise,
        mmap,
        munmap,
    )

SMALLEST: int = 1 << 9  # slots, 32 KiB: what an account has until more subjects come
# Slots, 256 KiB: from here on the system gives the memory and gets it back. Tables of 4 MiB that come and go left the
# heap with gaps: 5 to 12 MB of a server in half an hour of clients that come and go.
MAPPED_FROM: int = 1 << 12
# Bytes. Messages to ever other subjects read a table of 16 MiB at random, each in another page of 4 KiB, and where a page is
# takes longer to find out than the line is to read: 62 ns of the 203 that a message took with 100,000 subscriptions, 18 in
# large pages. A large page is used up as well: a table that grows is half full at once, and its slots are taken at random.
LARGE_PAGE: int = 1 << 21
LARGE_PAGES: int = 14 if sys.platform == "linux" else 0  # MADV_HUGEPAGE, elsewhere MADV_NORMAL


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
            if length >= 8:  # with some that were read: the processor waits long for a word that was copied in pieces
                memcpy(cython.address(word), name + length - 8, 8)
            else:
                word = 0
                memcpy(cython.address(word), name, length)
            mixed = (mixed ^ word) * factor
            mixed ^= mixed >> 32
        mixed *= factor
        mixed ^= mixed >> 29
        return mixed if mixed != 0 else 1
    return 1


class Receiver:
    """A subscription, as far as the table knows it.

    `maximum` is the number of deliveries since SUB after which the subscription ends, 0 for no limit. `delivered`: how many
    there were, without those that its slot counts. `place`: the number of that slot plus 1,
    0 for none; `wild`: it has none, for its subject has wildcards.
    """

    wild: cython.bint
    maximum: cython.Py_ssize_t
    delivered: cython.Py_ssize_t
    place: cython.Py_ssize_t


class Known:
    """A subject and its Match; `only` is the only receiver, if it is one subscription. `line`: the MSG line up to the tail,
    if the slot has no room for it."""

    def __init__(self, subject: bytes, match: object, only: Receiver | None, line: bytes, generation: int) -> None:
        self.subject = subject
        self.match = match
        self.only = only
        self.line = line
        self.generation = generation


class KnownSubjects:
    """The table. `evicted`: how many subjects gave way to others while they were right, `met`: how often `find` had one,
    since the caller set them to 0. `used`: how many it has of the last generation that was added to."""

    def __init__(self) -> None:
        self.size = 0
        self.evicted = 0
        self.met = 0
        self.used = 0
        self._generation = -1
        self._swept = 0  # where `forget_stale` goes on
        self._memory = bytearray()
        self._mapped = 0  # bytes that the system gave; 0: the slots are in `_memory`
        self._owners: list[Known | None] = []  # holds the references that the slots have without counting them
        self.now = 0  # the number of changes so far
        # For each hash of tokens the number of the last change: FEW_CHANGES if there are more slots than that, and behind
        # them as many numbers as slots. None before the first change.
        self._changes = bytearray()
        self._noted = 0  # how many tokens these are: a bit for each number
        if cython.compiled:
            self.make(SMALLEST)

    def make(self, size: cython.Py_ssize_t) -> cython.int:
        """Have `size` slots, a power of two. What is known stays if these are more; else the table is empty."""
        if cython.compiled:
            index: cython.Py_ssize_t
            known: Known | None
            before: cython.Py_ssize_t = self.size
            for index in range(before):
                known = self._owners[index]
                if known is not None and (
                    size < before or known.generation != self._generation or not self.is_right(index)
                ):
                    self._empty(index)
            owners: list[Known | None] = [None] * size
            memory = bytearray(0 if size >= MAPPED_FROM else size * 64 + 64)
            base: cython.p_char = PyByteArray_AS_STRING(memory)
            over: cython.Py_ssize_t = 64 - (cython.cast(cython.Py_ssize_t, base) & 63)
            if size >= MAPPED_FROM:
                spare: cython.Py_ssize_t = LARGE_PAGE if size * 64 >= LARGE_PAGE else 0
                place: cython.p_void = mmap(
                    cython.NULL, size * 64 + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
                )
                if place == MAP_FAILED:
                    raise MemoryError
                base = cython.cast(cython.p_char, place)
                over = 0  # it begins with a page
                if spare > 0:  # with a large one; what is before and behind goes back
                    over = -cython.cast(cython.Py_ssize_t, base) & (LARGE_PAGE - 1)
                    if over > 0:
                        munmap(base, over)
                    if over < spare:
                        munmap(base + over + size * 64, spare - over)
                    madvise(base + over, size * 64, LARGE_PAGES)
            old: cython.p_ulonglong = self.slots
            mapped: cython.Py_ssize_t = self._mapped
            memory, self._memory = self._memory, memory  # the old one stays until all is taken over
            owners, self._owners = self._owners, owners
            self._mapped = size * 64 if size >= MAPPED_FROM else 0
            self.slots = cython.cast(cython.p_ulonglong, base + over)
            self.size = size
            self.used = self._swept = 0
            if self._changes:
                self._note_anew()  # what is taken over is right
            if before < size:
                self._take_over(before, old, owners)
            if mapped > 0:
                munmap(old, mapped)
        return 0

    def _take_over(
        self, size: cython.Py_ssize_t, slots: cython.p_ulonglong, owners: "list[Known | None]"
    ) -> cython.int:
        """Have what is in these slots, of a smaller table."""
        if cython.compiled:
            index: cython.Py_ssize_t
            place: cython.Py_ssize_t
            known: Known | None
            for index in range(size):
                known = owners[index]
                if known is not None:
                    place = self._room(slots[index * 8])
                    memcpy(self.slots + place * 8, slots + index * 8, 64)
                    self._owners[place] = known
                    if known.only is not None and known.only.place == index + 1:
                        known.only.place = place + 1
                    self.used += 1
        return 0

    def __dealloc__(self) -> None:
        if cython.compiled and self._mapped > 0:
            munmap(self.slots, self._mapped)

    def _empty(self, index: cython.Py_ssize_t) -> cython.int:
        """Empty a slot. What it has counted is its subscription's."""
        if cython.compiled:
            known: Known | None = self._owners[index]
            if known is not None:
                slot: cython.p_ulonglong = self.slots + index * 8
                if known.only is not None and known.only.place == index + 1:
                    known.only.delivered += slot[2]
                    known.only.place = 0
                slot[0] = slot[1] = 0
                self._owners[index] = None
        return 0

    def settle(self, receiver: Receiver, stays: cython.bint) -> cython.Py_ssize_t:
        """How many messages a subscription got. Without `stays` its messages need a look from now on."""
        if cython.compiled:
            index: cython.Py_ssize_t = receiver.place - 1
            known: Known | None
            if 0 <= index < self.size:
                known = self._owners[index]
                if known is not None and known.only is receiver:
                    receiver.delivered += self.slots[index * 8 + 2]
                    self.slots[index * 8 + 2] = 0
                    if not stays:
                        self.slots[index * 8 + 1] = 0
                        receiver.place = 0
        return receiver.delivered

    def forget_stale(self, generation: cython.Py_ssize_t) -> cython.int:
        """Empty a few slots that are stale, in turn: after `size` by SWEPT calls, nothing is held on to that was
        stale before. No search that is still right ends at an empty slot: `add` fills those of other generations first."""
        if cython.compiled:
            index: cython.Py_ssize_t
            there: Known | None
            step: cython.int
            _step: cython.int
            for step in range(SWEPT):
                prefetch(item(self._owners, (self._swept + step) & (self.size - 1)))
            for _step in range(SWEPT):
                index = self._swept
                there = self._owners[index]
                if there is not None and there.generation != generation:
                    self._empty(index)
                elif there is not None and not self.is_right(index):
                    self._close(index)
                    continue  # the slot behind may have moved up
                self._swept = (index + 1) & (self.size - 1)
        return 0

    def change(self, pattern: bytes) -> cython.int:
        """What is known of the subjects of this pattern is stale. Returns 0, and changes nothing, if that may be all."""
        if cython.compiled:
            end: cython.Py_ssize_t = 0
            dot: cython.Py_ssize_t
            tokens: cython.int = 0
            while tokens < NOTED_TOKENS:
                dot = pattern.find(b".", end)
                if dot < 0 or (dot == end + 1 and pattern[end] == 42):  # * (and what begins with > is at its end)
                    break
                end = dot + 1
                tokens += 1
            if end == 0 or self.now == 0xFFFFFFFF:
                return 0
            if not self._changes:
                self._note_anew()
            self.now += 1
            self._noted |= 1 << tokens
            name: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(pattern))
            place: cython.ulonglong = tag_of(name, end, 0)
            self._changed_at[place & (FEW_CHANGES - 1) & (self.size - 1)] = self.now
            if self.size > FEW_CHANGES:
                self._changed_at[FEW_CHANGES + (place & (self.size - 1))] = self.now
        return 1

    def _note_anew(self) -> cython.int:
        """All that is known is right now."""
        if cython.compiled:
            self._changes = bytearray(4 * (self.size + (FEW_CHANGES if self.size > FEW_CHANGES else 0)))
            self._changed_at = cython.cast(cython.p_uint, PyByteArray_AS_STRING(self._changes))
            self._noted = 0
        return 0

    def is_right(self, index: cython.Py_ssize_t) -> cython.bint:
        """Whether what a slot has, of the last generation, is right in spite of changes of patterns."""
        if cython.compiled:
            return cython.cast(cython.p_uint, self.slots + index * 8)[7] == self.now or self.is_unchanged(index)
        return False

    def is_unchanged(self, index: cython.Py_ssize_t) -> cython.bint:
        """Whether nothing that the subject of a slot begins with has changed since it was right; it is so now, then."""
        if cython.compiled:
            slot: cython.p_uint = cython.cast(cython.p_uint, self.slots + index * 8)
            known: Known
            name: cython.p_uchar
            length: cython.Py_ssize_t
            if self.slots[index * 8 + 1] == 0:
                known = cython.cast(Known, self._owners[index])
                name = cython.cast(cython.p_uchar, PyBytes_AS_STRING(known.subject))
                length = PyBytes_GET_SIZE(known.subject)
            else:
                name = cython.cast(cython.p_uchar, slot) + TEXT_AT
                if slot[6] & ELSEWHERE:
                    name = cython.cast(cython.p_uchar, self.slots[index * 8 + 4])
                length = slot[6] & 0xFFFF
            at: cython.Py_ssize_t = 0
            place: cython.ulonglong
            left: cython.uint = self._noted >> 1
            while left != 0 and at < length and name[at] != 32:
                at += 1
                if name[at - 1] == 46:
                    if left & 1:
                        place = tag_of(name, at, 0) & (self.size - 1)
                        if self._changed_at[place & (FEW_CHANGES - 1)] > slot[7] and (
                            self.size <= FEW_CHANGES or self._changed_at[FEW_CHANGES + place] > slot[7]
                        ):
                            return False
                    left >>= 1
            slot[7] = self.now
        return True

    def forget(self, subject: bytes, generation: cython.Py_ssize_t) -> cython.int:
        """Nothing is known of this subject any more."""
        if cython.compiled:
            name: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(subject))
            tag: cython.ulonglong = tag_of(name, PyBytes_GET_SIZE(subject), generation)
            index: cython.Py_ssize_t = tag & (self.size - 1)
            known: Known
            _step: cython.int
            for _step in range(LOOKED_AT):
                if self.slots[index * 8] == tag:
                    known = cython.cast(Known, self._owners[index])
                    if known.subject == subject:
                        self._close(index)
                        break
                index = (index + 1) & (self.size - 1)
        return 0

    def _close(self, index: cython.Py_ssize_t) -> cython.int:
        """Empty a slot that is right, and have each behind it that is not in its place move up by one: a search ends at an
        empty slot."""
        if cython.compiled:
            last: cython.Py_ssize_t = self.size - 1
            behind: cython.Py_ssize_t
            there: Known | None
            self._empty(index)
            self.used -= 1
            while True:
                behind = (index + 1) & last
                there = self._owners[behind]
                if there is None or there.generation != self._generation:
                    break
                if (behind - cython.cast(cython.Py_ssize_t, self.slots[behind * 8])) & last == 0:
                    break
                memcpy(self.slots + index * 8, self.slots + behind * 8, 64)
                self._owners[index] = there
                self._owners[behind] = None
                self.slots[behind * 8] = self.slots[behind * 8 + 1] = 0
                if there.only is not None and there.only.place == behind + 1:
                    there.only.place = index + 1
                index = behind
        return 0

    def find_slot(self, tag: cython.ulonglong) -> cython.Py_ssize_t:
        """The number of the slot with this tag, or -1."""
        if cython.compiled:
            index: cython.Py_ssize_t = tag & (self.size - 1)
            _step: cython.int
            for _step in range(LOOKED_AT):
                if self.slots[index * 8] == tag:
                    return index
                if self.slots[index * 8] == 0:
                    break
                index = (index + 1) & (self.size - 1)
        return -1

    def find(
        self, buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t, tag: cython.ulonglong
    ) -> object:
        """The Match of the subject `buffer[start:end]`, whose tag this is; or None."""
        if cython.compiled:
            index: cython.Py_ssize_t = self.find_slot(tag)
            if index >= 0:
                known: Known = cython.cast(Known, self._owners[index])
                if equals(buffer, start, end, known.subject):
                    if not self.is_right(index):
                        self._close(index)
                        return None
                    self.met += 1
                    return known.match
        return None

    def add(
        self, tag: cython.ulonglong, known: Known, outlet: object, line: bytes, most: cython.Py_ssize_t
    ) -> cython.int:
        """Add a subject that is not there; the table may have `most` slots.

        `outlet` gets its messages unlooked at, None if they need a look; `known.only` holds it. `line`: their MSG line up to
        the tail.
        """
        if cython.compiled:
            if known.generation != self._generation:
                self._generation = known.generation
                self.used = 0
            if self.used * 2 >= self.size and self.size < most:
                self.make(self.size * 2)
            elif self.size > most:
                self.make(most)
            self.used += 1
            slot: cython.p_ulonglong = self.slots + self._room(tag) * 8
            index: cython.Py_ssize_t = (slot - self.slots) >> 3
            self._owners[index] = known
            slot[0] = tag
            slot[1] = slot[2] = 0
            cython.cast(cython.p_uint, slot)[7] = self.now
            if outlet is not None and known.only is not None:
                self._fill(slot, index, known, outlet, line)
        return 0

    def _room(self, tag: cython.ulonglong) -> cython.Py_ssize_t:
        """The number of an empty slot for this tag. Subjects that are nearer to the slot of their tag than it move on: so
        none is far from there, and few find no room. A table that is half full would else lose one in a hundred."""
        if cython.compiled:
            last: cython.Py_ssize_t = self.size - 1
            index: cython.Py_ssize_t = tag & last
            away: cython.Py_ssize_t = 0
            there: Known | None = self._owners[index]
            while there is not None and there.generation == self._generation and away < LOOKED_AT:
                if ((index - cython.cast(cython.Py_ssize_t, self.slots[index * 8])) & last) < away:
                    break
                index = (index + 1) & last
                away += 1
                there = self._owners[index]
            if there is not None and there.generation == self._generation:
                if away == LOOKED_AT:
                    index = (index - 1) & last  # the last one that a search looks at
                    self._drop(index)
                else:
                    self._move_on(index)
            self._empty(index)
            return index
        return 0

    def _move_on(self, index: cython.Py_ssize_t) -> cython.int:
        """Have what is in a slot, and as much of what is behind it as must, move on by one."""
        if cython.compiled:
            last: cython.Py_ssize_t = self.size - 1
            end: cython.Py_ssize_t = index
            there: Known | None = self._owners[end]
            while there is not None and there.generation == self._generation:
                # Of a full table it moves no more than 64.
                if (end - cython.cast(cython.Py_ssize_t, self.slots[end * 8])) & last >= LOOKED_AT - 1 or (
                    end - index
                ) & last == 64:
                    self._drop(end)
                    break
                end = (end + 1) & last
                there = self._owners[end]
            self._empty(end)
            before: cython.Py_ssize_t
            while end != index:
                before = (end - 1) & last
                there = self._owners[before]
                memcpy(self.slots + end * 8, self.slots + before * 8, 64)
                self._owners[end] = there
                self._owners[before] = None
                if there is not None and there.only is not None and there.only.place == before + 1:
                    there.only.place = end + 1
                end = before
            self.slots[index * 8] = 0
        return 0

    def _drop(self, index: cython.Py_ssize_t) -> cython.int:
        """A subject that is still right gives way."""
        self.evicted += 1
        self.used -= 1
        return self._empty(index)

    def _fill(
        self, slot: cython.p_ulonglong, index: cython.Py_ssize_t, known: Known, outlet: object, line: bytes
    ) -> cython.int:
        """Write into a slot what a delivery needs."""
        if cython.compiled:
            only: Receiver = cython.cast(Receiver, known.only)
            size: cython.Py_ssize_t = PyBytes_GET_SIZE(line) - 4
            if size > 0xFFFF:
                return 0
            sizes: cython.uint = cython.cast(cython.uint, size)
            if size > ROOM:
                known.line = line
                sizes |= ELSEWHERE
                slot[4] = cython.cast(cython.ulonglong, cython.cast(cython.p_void, PyBytes_AS_STRING(line) + 4))
            else:
                memcpy(cython.cast(cython.p_char, slot) + TEXT_AT, PyBytes_AS_STRING(line) + 4, size)
            if not only.wild:
                self.settle(only, False)  # in a slot of another generation
                only.place = index + 1
            else:
                sizes |= COUNTS_ITSELF
                slot[2] = cython.cast(cython.ulonglong, cython.cast(cython.p_void, only))
            cython.cast(cython.p_uint, slot)[6] = sizes
            slot[1] = cython.cast(cython.ulonglong, cython.cast(cython.p_void, outlet))
        return 0
