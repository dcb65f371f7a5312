"""The receive buffer: an array that the socket writes into and the parser reads in place.

    data:   [ start of an incomplete op | free space for the next recv ]
             0                    filled                        len(data)

An array is never resized, because a transport may still have a view of it while its bytes are parsed; to grow, the
buffer replaces it with a new one. Growth follows the size of one op (control line and payload), so the caller's limits
on those (max_control_line, max_payload) bound it; this class has no limit of its own. A new array is not cleared:
clearing the 60 MiB that one client announces would block the loop for 40 ms and touch memory that the client may never
fill.

Connections of one event loop read one after another, so they can share one array of free space: 10,000 idle connections
then own no array, and parsing stays in memory that is still in the processor's cache. A connection copies its unparsed
rest out of the shared array (`data` is then a small array of its own) and puts it in front of its next read.
"""

from sys import getrefcount
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
    from cython.cimports.headwater.wire.memory import drop_front, unset_array
    from cython.cimports.libc.string import memcpy
else:
    from headwater.wire.memory import drop_front, unset_array

START_SIZE: int = 1 << 16  # bytes; reads of 64 KiB cost 1.4x less CPU per message than 16 KiB
# Where 64 KiB were not enough (`read_large`): messages of 128 bytes cost 10 to 25 % less CPU with reads of 256 KiB. Without
# output (there is no listener, or a stream takes them) those of 1 KiB cost 40 % less, and again 5 to 15 % less with 1 MiB:
# shorter reads come while the next bytes are on their way, and then the reader does the work of their protocol. Small
# ones do not get so much at once: a stream takes some ms for the 8,000 of 128 bytes, and others wait for that.
FULL_READ: int = 4 * START_SIZE
UNHEARD_MESSAGES: int = 16 * START_SIZE
SHARED_SIZE: int = UNHEARD_MESSAGES
STEPPED_SIZE: int = 9 * START_SIZE  # room for four ops with 128 KiB of payload, the chunks of object stores
KEPT: int = 1 << 23  # bytes; a link that announces ops up to this size keeps an array for them
LARGEST_READ: int = 1 << 20  # bytes; others are served between the reads of a client that sends 64 MiB
FREE_MINIMUM: int = 1 << 12  # bytes; a smaller read would not be worth its system call


class Receiver:
    """An owner of a link that is compiled: the link calls it without Python's calls."""

    def receive(self, buffer: bytearray, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse `buffer[:filled]`; returns how many bytes were used (`net.link.LinkOwner`)."""
        raise NotImplementedError


class ReceiveBuffer:
    """`data[:filled]` are the bytes that have arrived and are not consumed yet.

    `shared` is an array that other connections of the same loop also read into; none of them may read between a
    `writable` and its `received`. Without it the buffer has its own array of `size` bytes.
    """

    def __init__(self, size: int = START_SIZE, shared: bytearray | None = None) -> None:
        self._free = bytearray(size) if shared is None else shared
        # Bytes of one read into the shared array; 0 without one.
        self._most = 0 if shared is None else min(START_SIZE, len(shared))
        self._target = self._free
        self.data = self._free
        self.filled = 0
        self.expected = 0
        self._steps = 0  # the size of ops that reads are to end with; 0: they end anywhere
        self._left = False
        self._lent: list[bytearray] = []

    def expect(self, size: cython.Py_ssize_t) -> cython.int:
        """Announce an op of `size` bytes at the front: the buffer makes room for all of it at once, and keeps that room
        until `size` is 0.
        """
        self.expected = size
        return 0

    def leave(self, size: cython.Py_ssize_t) -> cython.bint:
        """Leave the array to the owner, who keeps the `size` bytes of an op in it: the next `consume` takes another. False
        where others read into it, and for an op that fills less than half of it, which would keep the rest in memory.

        Two such arrays are kept, and used again once nothing else refers to them: new ones for every MiB that is received
        cost more in page faults than the copy that they save."""
        if self.data is self._free or 2 * size < len(self.data):
            return False
        self._left = True
        if len(self.data) <= KEPT:
            self._lent = [*self._lent[-1:], self.data]
        return True

    def room(self, size: cython.Py_ssize_t) -> bytearray:
        """An array of `size` bytes: one that was left and that nothing else refers to any more, or a new one."""
        at: cython.Py_ssize_t
        for at in range(len(self._lent)):
            length: cython.Py_ssize_t = len(self._lent[at])
            if size <= length <= 2 * size and references(self._lent, at) == UNUSED:
                found: bytearray = self._lent.pop(at)
                return found
        return unset_array(size)

    def read_large(self, large: bool, op_size: int, unheard: bool = False) -> None:
        """A read has filled 64 KiB: the next ones may take more, FULL_READ, or UNHEARD_MESSAGES if messages are `unheard`,
        that is, not small, and nothing is written for them. `large`: they are above 64 KiB.

        `op_size`: of the incomplete op that is left, 0 without one. If it is above START_SIZE and at most STEPPED_SIZE,
        reads end where this op ends, and the next ones where ops of the same size do. So nothing is left to be moved:
        with chunks of 128 KiB that were two more copies of each."""
        if op_size > START_SIZE:
            fits: cython.bint = self._most > 0 and op_size <= min(STEPPED_SIZE, len(self._free))
            self._steps = op_size if fits else 0
            self.expected = 0 if fits else op_size
        else:
            self._steps = self._steps if large else 0
            self.expected = 0
        if self._most > 0:
            self._most = min(UNHEARD_MESSAGES if unheard and not large else FULL_READ, len(self._free))

    def writable(self, hint: cython.Py_ssize_t = -1) -> memoryview:
        """Space to receive into: at least `FREE_MINIMUM` bytes, or `hint` if that is larger."""
        size: cython.Py_ssize_t = self.space(hint, LARGEST_READ)
        return memoryview(self._target)[self.filled : self.filled + size]

    def space(self, hint: cython.Py_ssize_t, most: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """As `writable`: the number of bytes from `filled` on in the array `_target`. `most`: what others leave to a read
        into the shared array, at least START_SIZE.
        """
        wanted: cython.Py_ssize_t = max(hint, self.expected - self.filled)
        if wanted < 4096:  # FREE_MINIMUM, whose name would be a Python object here
            wanted = 4096
        if self._steps > 0:
            stepped: cython.Py_ssize_t = min(STEPPED_SIZE, len(self._free))
            if self.filled + wanted <= stepped:
                self._keep_front(self._free)
                return max(stepped // self._steps * self._steps - self.filled, wanted)
        limit: cython.Py_ssize_t = min(self._most, most)
        if limit > 0 and 2 * self.filled + wanted <= limit and (self.filled == 0 or self.data is not self._free):
            self._keep_front(self._free)
            return limit - self.filled
        shared: cython.bint = limit > 0 and self.data is self._free
        if shared or len(self.data) - self.filled < wanted:
            grown = self.room(max(FULL_READ if shared else 2 * len(self.data), self.filled + wanted))
            self._keep_front(grown)
            self.data = grown
        self._target = self.data
        return min(len(self.data) - self.filled, max(hint, LARGEST_READ))

    def _keep_front(self, target: bytearray) -> cython.int:
        """Read into `target` next, behind the bytes that are not consumed yet."""
        if self.filled > 0 and target is not self.data:
            if cython.compiled:
                memcpy(PyByteArray_AS_STRING(target), PyByteArray_AS_STRING(self.data), self.filled)
            else:
                target[: self.filled] = memoryview(self.data)[: self.filled]
        self._target = target
        return 0

    def received(self, count: cython.Py_ssize_t) -> cython.int:
        """`count` bytes were written into the view that `writable` returned."""
        self.data = self._target
        self.filled += count
        return 0

    def consume(self, used: cython.Py_ssize_t) -> cython.int:
        """Drop `data[:used]`, which is parsed; the rest stays. An empty large array left by a burst is released."""
        rest: cython.Py_ssize_t = self.filled - used
        if self._left:
            self._left = False
            self.data = self._rest(used) if rest > 0 else self._free
            self.filled = rest
            return 0
        if rest > 0 and self._most > 0 and (self.data is self._free or self.is_spare(rest)):
            self.data = self._rest(used)
            self.filled = rest
            return 0
        self.filled = drop_front(self.data, used, self.filled)
        if rest == 0 and self.data is not self._free and self.is_spare(0):
            if self._most == 0:
                self._free = bytearray(START_SIZE)
            self.data = self._free
        return 0

    def _rest(self, used: cython.Py_ssize_t) -> bytearray:
        """A copy of `data[used:filled]`."""
        if cython.compiled:
            made: bytearray = PyByteArray_FromStringAndSize(PyByteArray_AS_STRING(self.data) + used, self.filled - used)
            return made
        return self.data[used : self.filled]

    def is_spare(self, rest: cython.Py_ssize_t) -> cython.bint:
        """Whether this buffer's own array is much larger than the `rest` bytes left in it and the op expected."""
        least: cython.Py_ssize_t = 16 * START_SIZE
        if self._most > 0:
            least = START_SIZE if rest > 0 else 0
        return len(self.data) > max(least, 4 * rest, 2 * min(self.expected, KEPT))


def references(arrays: list[Any], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many refer to an array of a list, those of this call among them."""
    return getrefcount(arrays[at])


UNUSED: int = references([bytearray()], 0)
"""`references` of an array that only the list refers to: compiled, a call has fewer of its own."""
