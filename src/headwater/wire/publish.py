# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Writer of the ops that clients send: PUB, HPUB, SUB, UNSUB, CONNECT, PING, PONG (client protocol document).

    PUB  <subject> [reply ]<#bytes>␍␊<payload>␍␊
    HPUB <subject> [reply ]<#header bytes> <#total bytes>␍␊<header block><payload>␍␊

Ops are appended to an `OutputBuffer`, which the caller flushes. Everything is checked before the first byte of an op is
written, so a refused op leaves nothing in the buffer. White space in a subject would inject an argument and CR LF an
op: such subjects, reply subjects and queue groups are refused here with SubjectError. The caller checks sizes against
the server's `max_payload`.

A program publishes to few subjects many times, so `PUB <subject> ` is checked and encoded once per subject and cached,
and so is the whole control line while neither subject nor size changes.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.headwater.model.subject_match import is_plain
    from cython.cimports.headwater.wire.memory import OutputBuffer
    from cython.cimports.libc.string import memcpy
else:
    from headwater.model.subject_match import is_plain
    from headwater.wire.memory import OutputBuffer

from headwater.errors import SubjectError
from headwater.model.subject import validate_subject
from headwater.model.thinning import thin_out
from headwater.wire.handshake import ConnectOptions, encode_connect

KNOWN_SUBJECTS: int = 1024  # size of the cache of encoded subjects, of which every eighth goes when it is full
LONGEST_NUMBER: int = 20  # bytes in decimal, a sign included
_PAIRS = cython.declare(bytes, b"".join(b"%02d" % pair for pair in range(100)))


class OpWriter:
    """Appends ops to `output`. Subjects are str; bytes that are not UTF-8 appear in them as surrogate escapes."""

    def __init__(self, output: OutputBuffer) -> None:
        self.output = output
        self.last_subject: str | None = None  # not "": an empty subject would pass as already checked
        self.last_encoded = b""
        self.last_line = b""  # `PUB <last subject> <last size>␍␊`, or b""
        self.last_size = 0
        self.last_reply_head = ""
        self.known: dict[str, bytes] = {}

    def again(self, subject: str, payload: bytes, limit: cython.Py_ssize_t) -> cython.bint:
        """PUB without a reply subject, if subject and size are those of the last one, and the size is within `limit` (0: no
        limit); whether it was. Else nothing is written: `publish` it."""
        size: cython.Py_ssize_t = len(payload)
        head: cython.Py_ssize_t = len(self.last_line)
        if size != self.last_size or size > limit > 0 or head == 0:
            return False
        if subject is not self.last_subject and subject != self.last_subject:
            return False
        if cython.compiled:  # `append_framed`, whose call would cost as much as all of this
            if self.output.size + head + size + 2 > len(self.output.data):
                self.output.reserve(head + size + 2)
            target: cython.p_char = PyByteArray_AS_STRING(self.output.data) + self.output.size
            memcpy(target, PyBytes_AS_STRING(self.last_line), head)
            memcpy(target + head, PyBytes_AS_STRING(payload), size)
            target[head + size] = 13
            target[head + size + 1] = 10
            self.output.size += head + size + 2
        else:
            self.output.append_framed(self.last_line, payload)
        return True

    def publish(self, subject: str, reply: str, header_block: bytes, payload: bytes) -> cython.int:
        """PUB, or HPUB when `header_block` is not empty. Raises SubjectError for the subject or the reply subject."""
        output: OutputBuffer = self.output
        header_size: cython.Py_ssize_t = len(header_block)
        size: cython.Py_ssize_t = len(payload)
        if subject != self.last_subject:
            self.encode_subject(subject)
        if header_size == 0 and len(reply) == 0:
            if size == self.last_size:
                if len(self.last_line) == 0:
                    self.last_line = b"PUB %b%d\r\n" % (self.last_encoded, size)
                return output.append_framed(self.last_line, payload)
            self.last_size = size  # the second message of one size in a row caches its line
            self.last_line = b""
        encoded_reply: bytes = self.encode_reply(reply) if reply else b""
        output.append(b"PUB " if header_size == 0 else b"HPUB ")
        output.append(self.last_encoded)
        if reply:
            output.append(encoded_reply)
            output.append(b" ")
        if header_size:
            append_number(output, header_size)
            output.append(b" ")
        append_number(output, header_size + size)
        output.append(b"\r\n")
        if header_size:
            output.append(header_block)
        return output.append_framed(b"", payload)

    def ask(
        self, subject: str, inbox: bytes, number: cython.Py_ssize_t, header_block: bytes, payload: bytes
    ) -> cython.int:
        """As `publish` with the reply subject `inbox` (a checked one up to its last dot) and `number`: nothing is checked
        or encoded of what a request has for itself."""
        output: OutputBuffer = self.output
        header_size: cython.Py_ssize_t = len(header_block)
        if subject is not self.last_subject and subject != self.last_subject:
            self.encode_subject(subject)
        output.append(b"PUB " if header_size == 0 else b"HPUB ")
        output.append(self.last_encoded)
        output.append(inbox)
        output.reserve(3 * LONGEST_NUMBER)
        self.put_after(number, 32)
        if header_size:
            self.put_after(header_size, 32)
        self.put_after(header_size + len(payload), 13)
        if header_size == 0:
            return output.append_framed(b"\n", payload)
        output.append(b"\n")
        output.append(header_block)
        return output.append_framed(b"", payload)

    def put_after(self, number: cython.Py_ssize_t, code: cython.int) -> cython.int:
        """Append a number and a character, for which there is room."""
        output: OutputBuffer = self.output
        output.size = put_number(output.data, output.size, number)
        output.data[output.size] = code
        output.size += 1
        return 0

    def encode_subject(self, subject: str) -> cython.int:
        """Set the last subject to `subject`; the encoded form includes the space that follows it."""
        encoded: bytes | None = self.known.get(subject)
        if encoded is None:
            # Interpreted, no signature keeps out what is no text: `validate_subject` says so.
            plain: bytes = subject.encode("ascii") if isinstance(subject, str) and subject.isascii() else b""
            encoded = (plain if is_plain(plain) else encode_checked(validate_subject(subject))) + b" "
            if len(self.known) >= KNOWN_SUBJECTS:
                thin_out(self.known)
            self.known[subject] = encoded
        self.last_subject = subject
        self.last_encoded = encoded
        self.last_line = b""
        return 0

    def encode_reply(self, reply: str) -> bytes:
        """The bytes of `reply`.

        A reply subject, unlike a subject, is mostly used once. Those of one inbox differ only in their last token, so
        the tokens before it are checked only for the first.
        """
        head: str = self.last_reply_head
        if not head or not reply.startswith(head) or not reply[len(head) :].isalnum():
            validate_subject(reply)
            self.last_reply_head = reply[: reply.rfind(".") + 1]
        return reply.encode("ascii") if reply.isascii() else encode_checked(reply)

    def subscribe(self, subject: str, queue: str, sid: int) -> None:
        """SUB; `queue` is empty for a plain subscription. Raises SubjectError."""
        validate_subject(subject, wildcards=True)
        if queue and (queue != "".join(queue.split()) or not queue.isprintable()):
            raise SubjectError(f"the queue group {queue!r} contains blanks or control characters", value=queue)
        middle = f" {queue} " if queue else " "
        self.output.append(encode_checked(f"SUB {subject}{middle}{sid}\r\n"))

    def unsubscribe(self, sid: int, maximum: int = 0) -> None:
        """UNSUB: now (`maximum` 0), or after `maximum` messages since SUB."""
        self.output.append(b"UNSUB %d %d\r\n" % (sid, maximum) if maximum > 0 else b"UNSUB %d\r\n" % sid)

    def connect(self, options: ConnectOptions) -> None:
        """CONNECT."""
        self.output.append(encode_connect(options))

    def ping(self) -> None:
        """PING."""
        self.output.append(b"PING\r\n")

    def pong(self) -> None:
        """PONG."""
        self.output.append(b"PONG\r\n")


def encode_checked(text: str) -> bytes:
    """The bytes of a subject. Raises SubjectError for surrogates that do not escape a byte."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise SubjectError(f"the subject {text!r} has no UTF-8 form: {error.reason}", value=text) from error


def digits_of(number: cython.ulonglong) -> cython.Py_ssize_t:
    """The number of decimal digits of a non-negative number."""
    digits: cython.Py_ssize_t = 1
    while number >= 10000:
        number //= 10000
        digits += 4
    return digits + (number >= 10) + (number >= 100) + (number >= 1000)


def put_number(data: bytearray, at: cython.Py_ssize_t, number: cython.longlong) -> cython.Py_ssize_t:
    """Write a number in decimal at `data[at]`, where there is room for `LONGEST_NUMBER` bytes; returns where it ends. When
    compiled, without making a bytes object."""
    if cython.compiled and number >= 0:
        target: cython.p_char = PyByteArray_AS_STRING(data)
        rest: cython.ulonglong = number
        following: cython.ulonglong
        pair: cython.ulonglong
        end: cython.Py_ssize_t = at + digits_of(rest)
        at = end
        pairs: cython.p_char = PyBytes_AS_STRING(_PAIRS)
        while rest >= 100:
            following = rest // 100
            at -= 2
            pair = 2 * (rest - 100 * following)
            target[at] = pairs[pair]
            target[at + 1] = pairs[pair + 1]
            rest = following
        if rest >= 10:
            target[at - 2] = pairs[2 * rest]
            target[at - 1] = pairs[2 * rest + 1]
        else:
            target[at - 1] = cython.cast(cython.char, 48 + rest)
        return end
    text: bytes = b"%d" % number  # interpreted; and a timestamp of a clock before 1970
    data[at : at + len(text)] = text
    return at + len(text)


def append_number(output: OutputBuffer, number: cython.longlong) -> cython.int:
    """Append a number in decimal."""
    output.reserve(LONGEST_NUMBER)
    output.size = put_number(output.data, output.size, number)
    return 0
