# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The few primitives that compile to memchr, memcmp and memcpy, and run as bytes methods when interpreted.

Other modules walk buffers by index, which reads the same interpreted and compiled, and touch pointers only where a loop
per byte or an object per message would cost more, in code that runs compiled alone. Functions here do not check bounds:
each states what it needs, and callers derive their positions from sizes already checked against the buffer.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
    from cython.cimports.cpython.object import Py_SIZE
    from cython.cimports.libc.string import memchr, memcmp, memcpy, memmove

COMPILED: bool = cython.compiled


def find_byte(
    buffer: bytearray, byte: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Index of the first `byte` in `buffer[start:end]`, or -1. Needs 0 <= start <= end <= len(buffer)."""
    if cython.compiled:
        base: cython.p_char = PyByteArray_AS_STRING(buffer)
        found: cython.p_char = cython.cast(cython.p_char, memchr(base + start, byte, end - start))
        if found == cython.NULL:
            return -1
        return found - base  # type: ignore[no-any-return]
    return buffer.find(byte, start, end)


def equals(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t, other: bytes) -> cython.bint:
    """Whether `buffer[start:end] == other`, without making the slice. Needs 0 <= start <= end <= len(buffer)."""
    if cython.compiled:
        if PyBytes_GET_SIZE(other) != end - start:
            return False
        differs: cython.int = memcmp(PyByteArray_AS_STRING(buffer) + start, PyBytes_AS_STRING(other), end - start)
        return differs == 0
    return buffer[start:end] == other


def slice_bytes(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
    """`bytes(buffer[start:end])` with one copy. Needs 0 <= start <= end <= len(buffer)."""
    if cython.compiled:
        made: bytes = PyBytes_FromStringAndSize(PyByteArray_AS_STRING(buffer) + start, end - start)
        return made
    return bytes(memoryview(buffer)[start:end])


def part_of(source: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
    """`source[start:end]`, without a slice object. Needs 0 <= start <= end <= len(source)."""
    if cython.compiled:
        made: bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(source) + start, end - start)
        return made
    return source[start:end]


def joined(one: bytes, two: bytes, three: bytes, four: bytes, five: bytes) -> bytes:
    """The five, one behind another, with one copy of each."""
    if cython.compiled:
        first: cython.Py_ssize_t = PyBytes_GET_SIZE(one)
        second: cython.Py_ssize_t = PyBytes_GET_SIZE(two)
        third: cython.Py_ssize_t = PyBytes_GET_SIZE(three)
        fourth: cython.Py_ssize_t = PyBytes_GET_SIZE(four)
        fifth: cython.Py_ssize_t = PyBytes_GET_SIZE(five)
        made: bytes = PyBytes_FromStringAndSize(cython.NULL, first + second + third + fourth + fifth)
        target: cython.p_char = PyBytes_AS_STRING(made)
        memcpy(target, PyBytes_AS_STRING(one), first)
        target += first
        memcpy(target, PyBytes_AS_STRING(two), second)
        target += second
        memcpy(target, PyBytes_AS_STRING(three), third)
        target += third
        memcpy(target, PyBytes_AS_STRING(four), fourth)
        memcpy(target + fourth, PyBytes_AS_STRING(five), fifth)
        return made
    return b"".join((one, two, three, four, five))


def ends_line(buffer: bytearray, at: cython.Py_ssize_t) -> cython.bint:
    """Whether CR LF is at `buffer[at]`. Needs 0 <= at and at + 2 <= len(buffer)."""
    return buffer[at] == 13 and buffer[at + 1] == 10


def has_empty_token(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether a token of the subject `buffer[start:end]` is empty. Needs 0 <= start <= end <= len(buffer)."""
    if cython.compiled:
        base: cython.p_char = PyByteArray_AS_STRING(buffer)
        after_dot: cython.bint = True
        while start < end:
            if base[start] != 46:
                after_dot = False
            elif after_dot:
                return True
            else:
                after_dot = True
            start += 1
        return after_dot
    return b"" in buffer[start:end].split(b".")


def hash_slice(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """A non-negative hash of `buffer[start:end]`. Needs 0 <= start <= end <= len(buffer).

    For a table of fixed size in which a new entry replaces the one in its slot: a collision only costs an entry.
    """
    if cython.compiled:
        base: cython.p_char = PyByteArray_AS_STRING(buffer)
        at: cython.Py_ssize_t = start
        word: cython.ulonglong = 0
        mixed: cython.ulonglong = end - start
        while at + 8 <= end:
            memcpy(cython.address(word), base + at, 8)
            mixed = (mixed ^ word) * 0x7FEB352D  # fits an int: a longer literal would be a Python object
            mixed ^= mixed >> 29
            at += 8
        if at < end:
            word = 0
            memcpy(cython.address(word), base + at, end - at)
            mixed = (mixed ^ word) * 0x7FEB352D
            mixed ^= mixed >> 29
        mixed = (mixed ^ (mixed >> 32)) * 0x7FEB352D
        return cython.cast(cython.Py_ssize_t, (mixed ^ (mixed >> 31)) & 0x7FFFFFFF)  # type: ignore[no-any-return]
    return hash(bytes(memoryview(buffer)[start:end])) & 0x7FFFFFFF


def count_run(
    buffer: bytearray,
    start: cython.Py_ssize_t,
    filled: cython.Py_ssize_t,
    line: cython.Py_ssize_t,
    stride: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The number of whole ops of `stride` bytes that begin at `start`, each with the same `line` bytes and a final CR
    LF.

    The caller has checked the first op. Needs 0 <= start, 0 < line <= stride - 2 and start + stride <= filled <=
    len(buffer).
    """
    count: cython.Py_ssize_t = 1
    at: cython.Py_ssize_t = start + stride
    if cython.compiled:
        base: cython.p_char = PyByteArray_AS_STRING(buffer)
        # The last digit before CR LF is where different lines usually differ.
        if at + stride > filled or (line > 2 and base[at + line - 3] != base[start + line - 3]):
            return count
        while at + stride <= filled and memcmp(base + at, base + start, line) == 0:
            if base[at + stride - 2] != 13 or base[at + stride - 1] != 10:
                break
            count += 1
            at += stride
        return count
    first = bytes(memoryview(buffer)[start : start + line])
    while at + stride <= filled and buffer.startswith(first, at) and buffer.startswith(b"\r\n", at + stride - 2):
        count += 1
        at += stride
    return count


class OutputBuffer:
    """Outgoing bytes: append many times, take once per flush.

    The unwritten bytes are `data[head:size]`; `head` is above 0 only after a partial write. The backing array grows by
    doubling and is kept between flushes up to `KEEP` bytes, so that steady traffic allocates nothing.
    """

    data: bytearray
    head: cython.Py_ssize_t
    size: cython.Py_ssize_t

    def __init__(self) -> None:
        self.data = bytearray(START)
        self.head = 0
        self.size = 0

    def reserve(self, extra: cython.Py_ssize_t) -> cython.int:
        capacity: cython.Py_ssize_t = len(self.data)
        needed: cython.Py_ssize_t = self.size + extra
        if needed <= capacity:
            return 0
        if self.head > capacity // 2:  # not sooner: this way fewer bytes move than were written since the last move
            self.size = drop_front(self.data, self.head, self.size)
            self.head = 0
            needed = self.size + extra
        while capacity < needed:
            capacity *= 2
        if cython.compiled:
            PyByteArray_Resize(self.data, capacity)
        else:
            self.data.extend(bytes(capacity - len(self.data)))
        return 0

    def append(self, piece: bytes) -> cython.int:
        """Append a bytes object."""
        length: cython.Py_ssize_t = len(piece)
        if self.size + length > len(self.data):
            self.reserve(length)
        if cython.compiled:
            memcpy(PyByteArray_AS_STRING(self.data) + self.size, PyBytes_AS_STRING(piece), length)
        else:
            self.data[self.size : self.size + length] = piece
        self.size += length
        return 0

    def append_slice(self, source: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Append `source[start:end]`. Needs 0 <= start <= end <= len(source); `source` must not be this buffer's own
        array.
        """
        length: cython.Py_ssize_t = end - start
        self.reserve(length)
        if cython.compiled:
            memcpy(PyByteArray_AS_STRING(self.data) + self.size, PyByteArray_AS_STRING(source) + start, length)
        else:
            self.data[self.size : self.size + length] = memoryview(source)[start:end]
        self.size += length
        return 0

    def append_pair(
        self, piece: bytes, source: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        """Append `piece` and `source[start:end]`, with the bounds of `append_slice`."""
        if cython.compiled:
            head: cython.Py_ssize_t = PyBytes_GET_SIZE(piece)
            length: cython.Py_ssize_t = end - start
            self.reserve(head + length)
            target: cython.p_char = PyByteArray_AS_STRING(self.data) + self.size
            memcpy(target, PyBytes_AS_STRING(piece), head)
            memcpy(target + head, PyByteArray_AS_STRING(source) + start, length)
            self.size += head + length
            return 0
        length = len(piece) + end - start
        if self.size + length > len(self.data):
            self.reserve(length)
        self.data[self.size : self.size + length] = piece + source[start:end]
        self.size += length
        return 0

    def append_message(
        self,
        verb: bytes,
        source: bytearray,
        subject: cython.Py_ssize_t,
        subject_end: cython.Py_ssize_t,
        between: bytes,
        tail: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """Append `verb`, `source[subject:subject_end]`, `between` and `source[tail:end]`, with the bounds of
        `append_slice`.
        """
        if cython.compiled:
            first: cython.Py_ssize_t = PyBytes_GET_SIZE(verb)
            name: cython.Py_ssize_t = subject_end - subject
            middle: cython.Py_ssize_t = PyBytes_GET_SIZE(between)
            length: cython.Py_ssize_t = first + name + middle + end - tail
            if self.size + length > Py_SIZE(self.data):
                self.reserve(length)
            origin: cython.p_char = PyByteArray_AS_STRING(source)
            target: cython.p_char = PyByteArray_AS_STRING(self.data) + self.size
            self.size += length
            memcpy(target, PyBytes_AS_STRING(verb), first)
            memcpy(target + first, origin + subject, name)
            target += first + name
            memcpy(target, PyBytes_AS_STRING(between), middle)
            memcpy(target + middle, origin + tail, end - tail)
            return 0
        return self.append(b"".join((verb, source[subject:subject_end], between, source[tail:end])))

    def append_framed(self, line: bytes, payload: bytes) -> cython.int:
        """Append `line`, `payload` and CR LF."""
        if cython.compiled:
            head: cython.Py_ssize_t = PyBytes_GET_SIZE(line)
            length: cython.Py_ssize_t = PyBytes_GET_SIZE(payload)
            if self.size + head + length + 2 > len(self.data):
                self.reserve(head + length + 2)
            target: cython.p_char = PyByteArray_AS_STRING(self.data) + self.size
            memcpy(target, PyBytes_AS_STRING(line), head)
            memcpy(target + head, PyBytes_AS_STRING(payload), length)
            target[head + length] = 13
            target[head + length + 1] = 10
            self.size += head + length + 2
            return 0
        return self.append(b"%b%b\r\n" % (line, payload))

    def append_run(
        self,
        piece: bytes,
        source: bytearray,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stride: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
    ) -> cython.int:
        """Append `piece` and `source[start:end]` `count` times, with both positions `stride` further on each time.

        Needs 0 <= start <= end and end + (count - 1) * stride <= len(source); `source` must not be this buffer's own
        array.
        """
        if cython.compiled:
            head: cython.Py_ssize_t = PyBytes_GET_SIZE(piece)
            length: cython.Py_ssize_t = end - start
            self.reserve(count * (head + length))
            target: cython.p_char = PyByteArray_AS_STRING(self.data) + self.size
            origin: cython.p_char = PyByteArray_AS_STRING(source) + start
            prefix: cython.p_char = PyBytes_AS_STRING(piece)
            self.size += count * (head + length)
            while count > 0:
                memcpy(target, prefix, head)
                memcpy(target + head, origin, length)
                target += head + length
                origin += stride
                count -= 1
            return 0
        width = end - start
        view = memoryview(source)
        tails = [view[at : at + width] for at in range(start, start + count * stride, stride)]
        return self.append(piece + piece.join(tails))

    def take(self) -> bytes:
        """Remove and return all unwritten bytes."""
        taken: bytes = slice_bytes(self.data, self.head, self.size)
        self.clear()
        return taken

    def skip(self, count: cython.Py_ssize_t) -> cython.int:
        """Drop the first `count` bytes, which have been written."""
        self.head += count
        if self.head >= self.size:
            self.head = 0
            self.size = 0
            if len(self.data) > _KEEP:
                self.clear()
        return 0

    def clear(self) -> None:
        """Drop all bytes; replace the backing array if a burst has made it larger than `KEEP`."""
        self.head = 0
        self.size = 0
        if len(self.data) > _KEEP:
            self.data = bytearray(START)

    def __len__(self) -> int:
        return self.size - self.head


START: int = 512  # bytes; the array of an idle connection
KEEP: int = 1 << 22  # bytes; the 64 MiB of a burst are freed, and steady fan-out need not grow again for each flush
# In C: the other name is a Python object, which each write would look up.
_KEEP = cython.declare(cython.Py_ssize_t, KEEP)


def unset_array(size: cython.Py_ssize_t) -> bytearray:
    """An array of `size` bytes, uninitialised when compiled: write it before reading it."""
    if cython.compiled:
        made: bytearray = bytearray()
        PyByteArray_Resize(made, size)
        return made
    return bytearray(size)


def drop_front(buffer: bytearray, used: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Move `buffer[used:filled]` to the front and return the number of bytes moved. The array keeps its length."""
    rest: cython.Py_ssize_t = filled - used
    if rest > 0 and used > 0:
        if cython.compiled:
            memmove(PyByteArray_AS_STRING(buffer), PyByteArray_AS_STRING(buffer) + used, rest)
        else:
            buffer[:rest] = buffer[used:filled]
    return rest
