# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Deliveries of publishes to ever other subjects, each to one subscription; `wire.publishes_ahead` has the picture.

Compiled only; interpreted, `wire.plain_publishes` does this.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_GET_SIZE
    from cython.cimports.headwater.exchange.flusher import Flusher
    from cython.cimports.headwater.exchange.sublist import Outlet, Sublist
    from cython.cimports.headwater.wire.cache_lines import COUNTS_ITSELF, ELSEWHERE, ROOM, TEXT_AT
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.known_subjects import KnownSubjects
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.publishes_ahead import PublishesAhead, counted
    from cython.cimports.libc.string import memcmp, memcpy
else:
    from headwater.exchange.flusher import Flusher
    from headwater.exchange.sublist import Outlet, Sublist
    from headwater.wire.client_ops import ClientOpParser
    from headwater.wire.known_subjects import KnownSubjects
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.publishes_ahead import PublishesAhead


class Foresight:
    """What reads ahead for requests to the broker itself, which are answered one after the other. `seen`: up to where of
    the current read requests have been looked through."""

    def __init__(self) -> None:
        self.seen = 0

    def look(self, ops: ClientOpParser) -> cython.int:
        """Have in the processor's caches what the current op and those behind it need. No answer depends on it. Compiled
        only."""
        raise NotImplementedError


# One for all sessions: it is filled and used up within a call that runs no Python code.
AHEAD: PublishesAhead = PublishesAhead()
_BEHIND: PublishesAhead = PublishesAhead()


def deliver_ahead(
    ops: ClientOpParser, at: cython.Py_ssize_t, sublist: Sublist, flusher: Flusher, publisher: Outlet
) -> cython.Py_ssize_t:
    """Deliver the ops from `at` on as far as each has one receiver that gets it unlooked at, and have `ops` go on behind
    them. Returns their number; `AHEAD.payload` has their bytes."""
    total: cython.Py_ssize_t = 0
    AHEAD.payload = 0
    if cython.compiled:
        known: KnownSubjects = sublist._known
        now: PublishesAhead = AHEAD
        then: PublishesAhead = _BEHIND
        collected: cython.Py_ssize_t
        done: cython.Py_ssize_t
        window: cython.Py_ssize_t = now.window
        more: cython.bint
        now.collect(ops, at, window, known, sublist.epoch)
        now.step(known)
        while now.count != 0:
            collected = now.count
            then.count = 0
            more = collected == window
            if more:
                window = min(64, 2 * window)
            if window > 16:  # a few that all went well: the next are read meanwhile
                if more:
                    then.collect(ops, now.start[collected], window, known, sublist.epoch)
                more = False
            now.look_up(known)
            done = _append(now, ops.message.buffer, known, flusher, publisher)
            total += done
            then.step(known)
            ops._position = now.start[done] if total > 0 else ops._position
            if done < collected:
                window = max(1, done)
                break
            if more:
                then.collect(ops, now.start[collected], window, known, sublist.epoch)
                then.step(known)
            now, then = then, now
        AHEAD.window = window
        AHEAD.lately = cython.cast(cython.p_void, publisher)
        known.met += total
    return total


def _append(
    ahead: PublishesAhead, buffer: bytearray, known: KnownSubjects, flusher: Flusher, publisher: Outlet
) -> cython.Py_ssize_t:
    """The third pass; returns how many were delivered. No subscription that is found has ended: that changes tags."""
    if cython.compiled:
        base: cython.p_char = PyByteArray_AS_STRING(buffer)
        index: cython.Py_ssize_t
        slot: cython.p_ulonglong
        sizes: cython.uint
        outlet: Outlet
        output: OutputBuffer
        text: cython.p_char
        length: cython.Py_ssize_t  # of `text`, `<subject> <sid> `
        name: cython.Py_ssize_t  # bytes of the subject
        size: cython.Py_ssize_t  # of the tail
        target: cython.p_char
        for index in range(ahead.count):
            slot = known.slots + ahead.slot[index] * 8
            outlet = cython.cast(Outlet, cython.cast(cython.p_void, slot[1]))
            if outlet.guard is not None or (outlet is publisher and not outlet.echo):
                return index
            sizes = cython.cast(cython.p_uint, slot)[6]
            text = cython.cast(cython.p_char, slot) + TEXT_AT
            if sizes & ELSEWHERE:
                text = cython.cast(cython.p_char, slot[4])
            length = sizes & 0xFFFF
            name = ahead.tail[index] - ahead.start[index] - 5
            if length <= name or text[name] != 32 or memcmp(text, base + ahead.start[index] + 4, name) != 0:
                return index
            if sizes & COUNTS_ITSELF:
                if not counted(slot[2]):
                    return index
            else:
                slot[2] += 1
            output = outlet.output
            size = ahead.start[index + 1] - ahead.tail[index]
            if output.size + 4 + max(length, ROOM) + size > PyByteArray_GET_SIZE(output.data):
                output.reserve(4 + max(length, ROOM) + size)
            target = PyByteArray_AS_STRING(output.data) + output.size
            memcpy(target, b"MSG ", 4)
            if sizes & ELSEWHERE:
                memcpy(target + 4, text, length)
            else:
                memcpy(target + 4, text, ROOM)  # all of it: a size that is known beforehand takes a few instructions
            memcpy(target + 4 + length, base + ahead.tail[index], size)
            output.size += 4 + length + size
            outlet.out_messages += 1
            outlet.out_bytes += ahead.size[index]
            AHEAD.payload += ahead.size[index]
            if not outlet.dirty:
                flusher.mark(outlet)
        return ahead.count
    return 0
