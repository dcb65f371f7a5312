# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Publishes to ever other subjects, each of which has one receiver: what they need is read ahead, for all at once.

    PUB a.17 128␍␊ …      PUB b.3 128␍␊ …      PUB a.99 128␍␊ …      up to 64 of them
    1. `collect`          the tag of each subject; then their slots are prefetched, one after the other: each waits until
                          the processor knows where the page is, and in a loop of nothing else these waits overlap
    2. `step`             prefetches the slot behind where it is not that one
    3. `look_up`          finds it; what it only points to is prefetched
    4. the router         appends one message after the other, in their order (`exchange.ahead`)

With a hundred thousand subjects each step from one object to the next waits for memory, a hundred times as long as for an
instruction. In passes over many messages these waits overlap, and between two passes over the same messages there is one
over others: the next are collected before these are looked up and appended, and step on thereafter.

A pass ends before the first message that is not of this kind: one whose subject the table does not know, which has other
receivers, headers, or a reply that may be reserved is left to the session. Compiled only.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.headwater.wire.cache_lines import COUNTS_ITSELF, ELSEWHERE, prefetch
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.known_subjects import KnownSubjects, Receiver, tag_of
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.publish_series import _sizes_end
    from cython.cimports.headwater.wire.scan import word_end
    from cython.cimports.libc.string import memcmp
else:
    from headwater.wire.client_ops import ClientOpParser
    from headwater.wire.known_subjects import KnownSubjects, Receiver
    from headwater.wire.message_view import MessageView


class PublishesAhead:
    """The positions of `count` messages in one buffer, and the slot (`known_subjects`) of each; valid until the table
    changes.

    `window`: how many are tried together, more after all of them could be delivered, fewer after not. `payload`: bytes
    of the payloads that were delivered. `lately`: the publisher of the last ones, which may be gone.
    """

    def __init__(self) -> None:
        self.count = 0
        self.window = 4
        self.payload = 0

    def goes_on(self, publisher: object, message: MessageView) -> cython.bint:
        """Whether the last messages were this publisher's, and many: so are this one and the next, one may suppose."""
        if cython.compiled and message.headers == message.payload:
            return self.window > 16 and self.lately == cython.cast(cython.p_void, publisher)
        return False

    def collect(
        self,
        ops: ClientOpParser,
        at: cython.Py_ssize_t,
        window: cython.Py_ssize_t,
        known: KnownSubjects,
        generation: cython.Py_ssize_t,
    ) -> cython.int:
        """The first pass, over the ops that follow in `ops`. Two in turn with one subject end it: they are a run or a
        series."""
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(ops.message.buffer))
            filled: cython.Py_ssize_t = ops._filled
            count: cython.Py_ssize_t = 0
            stop: cython.Py_ssize_t
            line_end: cython.Py_ssize_t
            size: cython.Py_ssize_t = 0
            tag: cython.ulonglong
            before: cython.ulonglong = 0
            while count < window and at + 8 <= filled and memcmp(base + at, b"PUB ", 4) == 0:
                stop = word_end(base, at + 4, filled)
                if stop == filled or base[stop] != 32 or base[at + 4] == 95 or base[at + 4] == 36:  # _ $
                    break
                line_end = _sizes_end(base, stop + 1, filled, cython.address(size))
                if line_end < 0 or size > ops.max_payload or line_end - at - 4 > ops.max_control_line:
                    break
                if line_end + size + 4 > filled or base[line_end + 2 + size] != 13 or base[line_end + 3 + size] != 10:
                    break
                tag = tag_of(base + at + 4, stop - at - 4, generation)
                if tag == before:
                    count -= 1
                    break
                before = tag
                self.start[count] = at
                self.tail[count] = stop + 1
                self.size[count] = size
                self._tag[count] = tag
                count += 1
                at = line_end + size + 4
                self.start[count] = at
            self.count = count
            index: cython.Py_ssize_t
            last: cython.Py_ssize_t = known.size - 1
            for index in range(count):
                self.slot[index] = self._tag[index] & last
                prefetch(known.slots + self.slot[index] * 8)
        return 0

    def step(self, known: KnownSubjects) -> cython.int:
        """The second pass. One in four is in a slot behind that of its tag: another line. No branch has to be guessed."""
        if cython.compiled:
            index: cython.Py_ssize_t
            number: cython.Py_ssize_t
            last: cython.Py_ssize_t = known.size - 1
            for index in range(self.count):
                number = (self.slot[index] + (known.slots[self.slot[index] * 8] != self._tag[index])) & last
                self.slot[index] = number
                prefetch(known.slots + number * 8)
        return 0

    def look_up(self, known: KnownSubjects) -> cython.int:
        """The third pass."""
        if cython.compiled:
            index: cython.Py_ssize_t
            number: cython.Py_ssize_t
            slot: cython.p_ulonglong
            outlet: cython.ulonglong = 0
            sizes: cython.uint
            self.step(known)
            for index in range(self.count):
                number = self.slot[index]
                if known.slots[number * 8] != self._tag[index]:
                    number = known.find_slot(self._tag[index])
                slot = known.slots + number * 8
                if number < 0 or slot[1] == 0 or not known.is_right(number):
                    self.count = index
                    break
                self.slot[index] = number
                if slot[1] != outlet:
                    outlet = slot[1]
                    prefetch(cython.cast(cython.p_void, outlet))
                sizes = cython.cast(cython.p_uint, slot)[6]
                if sizes & ELSEWHERE:
                    prefetch(cython.cast(cython.p_void, slot[4]))
                if sizes & COUNTS_ITSELF:
                    prefetch(cython.cast(cython.p_void, slot[2]))
        return 0


def counted(subscription: cython.ulonglong) -> cython.bint:
    """Count a message for a subscription with wildcards; False if it has a limit. Compiled only."""
    if cython.compiled:
        receiver: Receiver = cython.cast(Receiver, cython.cast(cython.p_void, subscription))
        if receiver.maximum != 0:
            return False
        receiver.delivered += 1
    return True
