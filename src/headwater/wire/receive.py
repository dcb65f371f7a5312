"""The receive buffer: an array that the socket writes into and the parser reads in place.

    data:   [ start of an incomplete op | free space for the next recv ]
             0                    filled                        len(data)

An array is never resized: a transport may still hold a view of it while its bytes are being parsed. To grow, a new
array takes its place. Growth follows what one op needs (control line + payload), so the caller's limits on those
(max_control_line, max_payload) bound it; this class knows no limit of its own. A new array is not cleared: clearing the 60
MiB that one client announces takes 40 ms in which no other is served, and memory that the client never fills.

Connections of one event loop read one after the other, so they can share one array of free space: 10,000 idle ones then
hold no array each, and all of them are parsed in memory that the processor still has in its cache. What one leaves there
unparsed it takes along (`data` is then a small array of its own) and puts in front of its next read.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.wire.memory import drop_front, unset_array
else:
    from headwater.wire.memory import drop_front, unset_array

START_SIZE: int = 1 << 16  # bytes; reads of 64 KiB cost 1.4x less CPU per message than 16 KiB, 256 KiB leaves L2
KEPT: int = 1 << 23  # bytes; a link whose ops are announced as that large keeps an array for them
LARGEST_READ: int = 1 << 20  # bytes; a client that sends 64 MiB gives others their turn in between
FREE_MINIMUM: int = 1 << 12  # bytes; below this a read would return too little to be worth its system call


class ReceiveBuffer:
    """`data[:filled]` is what has arrived and is not consumed yet.

    `shared` is the array that others of the same loop read into as well; then none of them may read between a `writable` and
    its `received`. Without one the buffer has an array of `size` bytes to itself.
    """

    def __init__(self, size: int = START_SIZE, shared: bytearray | None = None) -> None:
        self._free = bytearray(size) if shared is None else shared
        self._view = None if shared is None else memoryview(shared)
        self._target = self._free
        self.data = self._free
        self.filled = 0
        self.expected = 0

    def expect(self, size: cython.Py_ssize_t) -> cython.int:
        """What begins at the front will have `size` bytes: make room for all of it at once, and keep that room while
        more of its kind comes. 0 when nothing large is expected any more."""
        self.expected = size
        return 0

    def writable(self, hint: cython.Py_ssize_t = -1) -> memoryview:
        """Space to receive into, at least `FREE_MINIMUM` bytes (or `hint`, when larger)."""
        wanted: cython.Py_ssize_t = max(hint, FREE_MINIMUM, self.expected - self.filled)
        if self._view is not None and 2 * self.filled + wanted <= len(self._free):
            if self.filled == 0:
                self._target = self._free
                return self._view
            if self.data is not self._free:
                self._target = self._free
                self._target[: self.filled] = memoryview(self.data)[: self.filled]
                return self._view[self.filled :]
        if len(self.data) - self.filled < wanted or (self._view is not None and self.data is self._free):
            grown = unset_array(max(2 * len(self.data), self.filled + wanted))
            grown[: self.filled] = memoryview(self.data)[: self.filled]
            self.data = grown
        self._target = self.data
        return memoryview(self.data)[self.filled : self.filled + max(hint, LARGEST_READ)]

    def received(self, count: cython.Py_ssize_t) -> cython.int:
        """`count` bytes were written into the space that `writable` gave."""
        self.data = self._target
        self.filled += count
        return 0

    def consume(self, used: cython.Py_ssize_t) -> cython.int:
        """`data[:used]` was parsed; the rest stays. A burst's large array is given back when empty."""
        rest: cython.Py_ssize_t = self.filled - used
        if self._view is not None and rest > 0 and (self.data is self._free or self.is_spare(rest)):
            self.data = self.data[used : self.filled]
            self.filled = rest
            return 0
        self.filled = drop_front(self.data, used, self.filled)
        if rest == 0 and self.data is not self._free and self.is_spare(0):
            if self._view is None:
                self._free = bytearray(START_SIZE)
            self.data = self._free
        return 0

    def is_spare(self, rest: cython.Py_ssize_t) -> cython.bint:
        """Whether the array of our own is more than what is left in it, or expected, is worth."""
        least: cython.Py_ssize_t = 16 * START_SIZE
        if self._view is not None:
            least = START_SIZE if rest > 0 else 0
        return len(self.data) > max(least, 4 * rest, 2 * min(self.expected, KEPT))
