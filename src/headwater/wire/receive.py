"""The receive buffer: one array per link that the socket writes into and the parser reads in place.

    data:   [ start of an incomplete op | free space for the next recv ]
             0                    filled                        len(data)

The array is never resized: a transport may still hold a view of it while its bytes are being parsed. To grow, a new
array takes its place. Growth follows what one op needs (control line + payload), so the caller's limits on those
(max_control_line, max_payload) bound it; this class knows no limit of its own.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.wire.memory import drop_front
else:
    from headwater.wire.memory import drop_front

START_SIZE: int = 1 << 16  # bytes; reads of 64 KiB cost 1.4x less CPU per message than 16 KiB, 256 KiB leaves L2
KEPT: int = 1 << 23  # bytes; a link whose ops are announced as that large keeps an array for them
FREE_MINIMUM: int = 1 << 12  # bytes; below this a read would return too little to be worth its system call


class ReceiveBuffer:
    """`data[:filled]` is what has arrived and is not consumed yet."""

    def __init__(self, size: int = START_SIZE) -> None:
        self.data = bytearray(size)
        self.filled = 0
        self.expected = 0

    def expect(self, size: int) -> None:
        """What begins at the front will have `size` bytes: make room for all of it at once, and keep that room while
        more of its kind comes. 0 when nothing large is expected any more."""
        self.expected = size

    def writable(self, hint: int = -1) -> memoryview:
        """Space to receive into, at least `FREE_MINIMUM` bytes (or `hint`, when larger)."""
        wanted = max(hint, FREE_MINIMUM, self.expected - self.filled)
        if len(self.data) - self.filled < wanted:
            grown = bytearray(max(2 * len(self.data), self.filled + wanted))
            grown[: self.filled] = memoryview(self.data)[: self.filled]
            self.data = grown
        return memoryview(self.data)[self.filled :]

    def received(self, count: int) -> None:
        """`count` bytes were written into the space that `writable` gave."""
        self.filled += count

    def consume(self, used: int) -> None:
        """`data[:used]` was parsed; the rest moves to the front. A burst's large array is given back when empty."""
        self.filled = drop_front(self.data, used, self.filled)
        if self.filled == 0 and len(self.data) > max(16 * START_SIZE, 2 * min(self.expected, KEPT)):
            self.data = bytearray(START_SIZE)
