# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Deliveries of publishes to ever other subjects, each to one subscription; `wire.publishes_ahead` has the picture.

Compiled only; interpreted, `wire.plain_publishes` does this.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_GET_SIZE
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
    from cython.cimports.headwater.exchange.flusher import Flusher
    from cython.cimports.headwater.exchange.sublist import Outlet, Sublist, Subscription
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.headwater.wire.publishes_ahead import PublishesAhead
    from cython.cimports.libc.string import memcmp, memcpy
else:
    from headwater.exchange.flusher import Flusher
    from headwater.exchange.sublist import Outlet, Sublist, Subscription
    from headwater.wire.client_ops import ClientOpParser
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.publishes_ahead import PublishesAhead

# One for all sessions: it is filled and used up within a call that runs no Python code.
AHEAD: PublishesAhead = PublishesAhead()


def deliver_ahead(ops: ClientOpParser, sublist: Sublist, flusher: Flusher, publisher: Outlet) -> cython.Py_ssize_t:
    """Deliver the ops that follow in `ops` as far as each has one receiver that gets it unlooked at. Returns their number;
    `AHEAD.payload` has their bytes."""
    total: cython.Py_ssize_t = 0
    AHEAD.payload = 0
    if cython.compiled:
        collected: cython.Py_ssize_t
        done: cython.Py_ssize_t
        while True:
            AHEAD.collect(ops, sublist._known, sublist.generation)
            collected = AHEAD.count
            if collected == 0:
                return total
            AHEAD.look_up(sublist._known)
            done = _append(ops.message.buffer, flusher, publisher)
            total += done
            if not AHEAD.took(ops, done, collected):
                return total
    return total


def _append(buffer: bytearray, flusher: Flusher, publisher: Outlet) -> cython.Py_ssize_t:
    """The third pass; returns how many were delivered."""
    if cython.compiled:
        base: cython.p_char = PyByteArray_AS_STRING(buffer)
        ahead: PublishesAhead = AHEAD
        index: cython.Py_ssize_t
        subscription: Subscription
        outlet: Outlet
        output: OutputBuffer
        text: cython.p_char
        length: cython.Py_ssize_t  # of `text`
        name: cython.Py_ssize_t  # bytes of the subject
        size: cython.Py_ssize_t  # of the tail
        target: cython.p_char
        for index in range(ahead.count):
            subscription = cython.cast(Subscription, cython.cast(cython.p_void, ahead.only[index]))
            outlet = subscription.outlet
            if subscription.closed or subscription.maximum != 0 or outlet.guard is not None:
                return index
            if outlet is publisher and not outlet.echo:
                return index
            output = outlet.output
            name = ahead.tail[index] - ahead.start[index] - 5
            size = ahead.start[index + 1] - ahead.tail[index]
            text = PyBytes_AS_STRING(cython.cast(bytes, cython.cast(cython.p_void, ahead.text[index])))
            length = PyBytes_GET_SIZE(cython.cast(bytes, cython.cast(cython.p_void, ahead.text[index])))
            if PyBytes_GET_SIZE(subscription.msg) == 0:  # under a wildcard: `text` is the subject
                if length != name or memcmp(text, base + ahead.start[index] + 4, name) != 0:
                    return index
                output.append_message(
                    b"MSG ",
                    buffer,
                    ahead.start[index] + 4,
                    ahead.start[index] + 4 + name,
                    subscription.after_subject,
                    ahead.tail[index],
                    ahead.start[index + 1],
                )
            else:  # `text` is `MSG <subject> <sid> `
                if length < name + 5 or memcmp(text + 4, base + ahead.start[index] + 4, name + 1) != 0:
                    return index
                if output.size + length + size > PyByteArray_GET_SIZE(output.data):
                    output.reserve(length + size)
                target = PyByteArray_AS_STRING(output.data) + output.size
                memcpy(target, text, length)
                memcpy(target + length, base + ahead.tail[index], size)
                output.size += length + size
            outlet.out_messages += 1
            outlet.out_bytes += ahead.size[index]
            ahead.payload += ahead.size[index]
            subscription.delivered += 1
            if not outlet.dirty:
                flusher.mark(outlet)
        return ahead.count
    return 0
