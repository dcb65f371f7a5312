# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""A series: consecutive publishes for the same receivers, whose control lines differ.

    PUB orders.17 128␍␊ … PUB orders.18 ORDERS.r.5 131␍␊ …
        │         │    └ end of the payload + 2
        │         └ tail
        └ subject

A run (`client_ops`) has one control line. In a series the sizes, the replies and, under a wildcard, the subjects differ,
so only positions are collected here: numbers in arrays, and no Python object is touched between two messages. The handler
then looks at limits and receivers once, and each receiver gets the whole series in one loop of copies.

Only the common form of PUB is collected (`scan.PublishLine`). Whatever needs a look of its own ends the series: headers, a
reply that may be reserved, a digit in front of a reply. Interpreted, no series is longer than one message.

A peer's frames, `RMSG <account> ` in place of `PUB `, make a series in the same way; one for queue groups ends it.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.memory import OutputBuffer, has_empty_token, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.scan import word_end
    from cython.cimports.libc.string import memchr, memcmp, memcpy
else:
    from headwater.wire.client_ops import ClientOpParser
    from headwater.wire.memory import OutputBuffer
    from headwater.wire.message_view import MessageView

MOST = 256  # messages, the length of the arrays


def _covered_end(
    buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t, deep: cython.bint
) -> cython.Py_ssize_t:
    """The end of a subject's tokens from `start` on: one that is not empty, or any number if `deep`. Compiled only. The
    byte there is a blank if that is what they are, and else the answer is a byte that is none."""
    if cython.compiled:
        base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
        end: cython.Py_ssize_t = word_end(base, start, filled)
        if end == start or end == filled:
            return start - 1
        if memchr(base + start, 46, end - start) == cython.NULL or (deep and not has_empty_token(buffer, start, end)):
            return end
    return start - 1


def _sizes_end(
    base: cython.p_uchar, at: cython.Py_ssize_t, filled: cython.Py_ssize_t, size: cython.p_Py_ssize_t
) -> cython.Py_ssize_t:
    """The position of the CR LF behind `[reply ]<size>` at `at`, -1 if something else is there, or a reply that may be a
    reserved one. Compiled only."""
    if cython.compiled:
        digit: cython.uint
        value: cython.Py_ssize_t = 0
        first: cython.Py_ssize_t = at
        if at >= filled:
            return -1
        digit = base[at] - 48
        if digit > 9:
            at = word_end(base, at, filled)
            if at + 1 >= filled or at < first + 1 or base[at] != 32:
                return -1
            digit = base[first + 1]
            if digit == 82 or digit == 71 or digit == 74:  # R, G, J
                return -1
            at += 1
            first = at
        last: cython.Py_ssize_t = min(filled, first + 9)
        while at < last:
            digit = base[at] - 48
            if digit > 9:
                break
            value = value * 10 + digit
            at += 1
        size[0] = value
        if at == first or at + 2 > filled or base[at] != 13 or base[at + 1] != 10:
            return -1
        return at
    return -1


class PublishSeries:
    """The positions of up to MOST messages in one buffer. Valid until more is read into it."""

    def __init__(self) -> None:
        self.count = 0
        self.payload = 0  # bytes of all payloads
        self._names = 0  # bytes of all subjects
        self._tails = 0  # bytes of all tails
        self._max_payload = 0
        self._max_line = 0  # bytes of a control line without its beginning

    def collect(self, ops: ClientOpParser, prefix: bytes | None, deep: cython.bint) -> cython.Py_ssize_t:
        """Collect the current op of `ops`, a PUB, and those behind it that have its receivers; returns their number.

        Without a `prefix` these have its subject. With one they have a subject that begins with it, and then one token or,
        if `deep`, any number of them. `ops` is advanced, its message stays the first.
        """
        self.count = 1
        if cython.compiled:
            self.limit(ops.max_payload, ops.max_control_line)
            ops._position = self.gather(ops.message, b"PUB ", ops._position, ops._filled, prefix, deep)
        return self.count

    def limit(self, max_payload: cython.Py_ssize_t, max_line: cython.Py_ssize_t) -> cython.int:
        """The most bytes of a payload, and of a control line without its beginning, in what is gathered from now on."""
        self._max_payload, self._max_line = max_payload, max_line
        return 0

    def gather(
        self,
        message: MessageView,
        head: bytes,
        at: cython.Py_ssize_t,
        filled: cython.Py_ssize_t,
        prefix: bytes | None,
        deep: cython.bint,
    ) -> cython.Py_ssize_t:
        """Collect `message` and those from `at` on that begin with `head` and have its receivers (`collect`); returns where
        they end."""
        self.count = 1
        if cython.compiled:
            base: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(message.buffer))
            verb: cython.p_char = PyBytes_AS_STRING(head)
            start: cython.Py_ssize_t = PyBytes_GET_SIZE(head)
            name: cython.p_uchar = base + message.subject
            length: cython.Py_ssize_t = message.subject_end - message.subject
            if prefix is not None:
                name = cython.cast(cython.p_uchar, PyBytes_AS_STRING(prefix))
                length = PyBytes_GET_SIZE(prefix)
            stop: cython.Py_ssize_t
            tail: cython.Py_ssize_t
            line_end: cython.Py_ssize_t
            size: cython.Py_ssize_t = 0
            count: cython.Py_ssize_t = 1
            self.payload = message.end - message.payload
            self._names = message.subject_end - message.subject
            self._tails = message.end + 2 - message.tail
            self._subject[0] = message.subject
            self._tail[0] = message.tail
            self._end[0] = message.end + 2
            while count < 256 and at + start + 4 <= filled and memcmp(base + at, verb, start) == 0:
                stop = at + start + length
                if stop >= filled or memcmp(base + at + start, name, length) != 0:
                    break
                if prefix is not None:
                    stop = _covered_end(message.buffer, stop, filled, deep)
                if base[stop] != 32:
                    break
                tail = stop + 1
                line_end = _sizes_end(base, tail, filled, cython.address(size))
                if line_end < 0 or size > self._max_payload or line_end - at - start > self._max_line:
                    break
                stop = line_end + 2 + size
                if stop + 2 > filled or base[stop] != 13 or base[stop + 1] != 10:
                    break
                self.payload += size
                self._names += tail - 1 - start - at
                self._tails += stop + 2 - tail
                self._subject[count] = at + start
                self._tail[count] = tail
                self._end[count] = stop + 2
                count += 1
                at = stop + 2
            self.count = count
        return at

    def append_frames(self, output: OutputBuffer, buffer: bytearray, head: bytes) -> cython.int:
        """Append each message to a peer's output: `head`, and the text from its subject on."""
        if cython.compiled:
            length: cython.Py_ssize_t = PyBytes_GET_SIZE(head)
            extra: cython.Py_ssize_t = self.count * (length + 1) + self._names + self._tails
            output.reserve(extra)
            origin: cython.p_char = PyByteArray_AS_STRING(buffer)
            target: cython.p_char = PyByteArray_AS_STRING(output.data) + output.size
            output.size += extra
            index: cython.Py_ssize_t
            size: cython.Py_ssize_t
            for index in range(self.count):
                size = self._end[index] - self._subject[index]
                memcpy(target, PyBytes_AS_STRING(head), length)
                memcpy(target + length, origin + self._subject[index], size)
                target += length + size
        return 0

    def append_to(self, output: OutputBuffer, buffer: bytearray, line: bytes, after_subject: bytes) -> cython.int:
        """Append each message to one receiver's output: `line`, the MSG line up to the tail, or without it the subject
        and `after_subject`; and the tail."""
        if cython.compiled:
            origin: cython.p_char = PyByteArray_AS_STRING(buffer)
            target: cython.p_char
            index: cython.Py_ssize_t
            size: cython.Py_ssize_t
            head: cython.p_char = PyBytes_AS_STRING(line)
            length: cython.Py_ssize_t = PyBytes_GET_SIZE(line)
            if length > 0:
                output.reserve(self.count * length + self._tails)
                target = PyByteArray_AS_STRING(output.data) + output.size
                output.size += self.count * length + self._tails
                for index in range(self.count):
                    memcpy(target, head, length)
                    target += length
                    size = self._end[index] - self._tail[index]
                    memcpy(target, origin + self._tail[index], size)
                    target += size
                return 0
            head = PyBytes_AS_STRING(after_subject)
            length = PyBytes_GET_SIZE(after_subject)
            output.reserve(self.count * (4 + length) + self._names + self._tails)
            target = PyByteArray_AS_STRING(output.data) + output.size
            output.size += self.count * (4 + length) + self._names + self._tails
            for index in range(self.count):
                size = self._tail[index] - 1 - self._subject[index]
                memcpy(target, b"MSG ", 4)
                memcpy(target + 4, origin + self._subject[index], size)
                target += 4 + size
                memcpy(target, head, length)
                target += length
                size = self._end[index] - self._tail[index]
                memcpy(target, origin + self._tail[index], size)
                target += size
        return 0

    def reply_pairs(self, buffer: bytearray) -> list[tuple[bytes, bytes]]:
        """The subject and the reply of each message that has one."""
        found: list[tuple[bytes, bytes]] = []
        if cython.compiled:
            index: cython.Py_ssize_t
            for index in range(self.count):
                tail: cython.Py_ssize_t = self._tail[index]
                words: list[bytes] = slice_bytes(buffer, tail, self._end[index]).split(b"\r\n", 1)[0].split(b" ")
                if len(words) == 2:
                    found.append((slice_bytes(buffer, self._subject[index], tail - 1), words[0]))
        return found
