"""Push parser of the ops that clients send to the broker.

The parser walks the receive buffer and fills one `MessageView` with positions in it, so a PUB makes no Python object.
Any chunking of the input gives the same calls. No input makes it raise: the first violation of the protocol is reported
through `on_violation`, and then the parser stops.

    PUB  <subject> [reply] <size>␍␊<payload>␍␊                      client protocol document, "PUB / HPUB"
    HPUB <subject> [reply] <header size> <total size>␍␊<headers><payload>␍␊
         │                 └ tail ──────────────────────────────────────┘
         └ subject

Everything after the subject is what a subscriber receives after its sid. `MessageView` therefore has the position of
this `tail`, and one delivery is `MSG <subject> <sid> ` plus one copy of the tail. If the client spaced its arguments
differently, or ended the line with LF alone, the parser first rewrites the op into a separate buffer and passes that to
the handler.

Most clients write one form of PUB and HPUB, `scan.PublishLine`, and often repeat the same line many times.
`next_publish` parses that form, and the handler calls it to advance from one such op to the next, so it can hoist
checks out of the loop. Consecutive ops with the same control line are passed together, as a run: the handler then
checks subject, reply and sizes once. The general parser takes everything else; both must give the same result for the
common form.

`verbs.LAW` lists the verbs. Leniencies are nats-server's: verbs in any case, spaces and tabs, LF for CRLF at the end of
a control line (never at the end of a payload), any text after PING and PONG. One rule is stricter: a PING line must fit
`max_control_line` like every other line, where nats-server reads without a limit.
"""

import cython

from headwater.wire.scan import PLAIN_PUBLISH
from headwater.wire.verbs import SUSPEND, Phase, Sender, Spellings, Verb, spellings
from headwater.wire.violations import (
    BAD_ARGUMENTS,
    CONTROL_LINE_TOO_LONG,
    NOT_CONNECTED,
    PAYLOAD_TOO_LARGE,
    UNKNOWN_OPERATION,
)

if cython.compiled:
    from cython.cimports.headwater.wire.memory import count_run, ends_line, find_byte, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.receive import Receiver
    from cython.cimports.headwater.wire.scan import PublishLine, parse_size, skip_blanks, token_end
else:
    from headwater.wire.memory import count_run, ends_line, find_byte, slice_bytes
    from headwater.wire.message_view import MessageView
    from headwater.wire.receive import Receiver
    from headwater.wire.scan import PublishLine, parse_size, skip_blanks, token_end

_AUTHENTICATING: Spellings = spellings(Sender.CLIENT, Phase.AUTHENTICATING)
_OPEN: Spellings = spellings(Sender.CLIENT, Phase.OPEN)
_PUB: bool = Verb.PUB.value in _OPEN.verbs  # looked up once, for the most frequent ops
_HPUB: bool = Verb.HPUB.value in _OPEN.verbs
# A blank must follow these verbs. CONNECT may be followed by its JSON directly; PING, PONG and +OK take the whole line.
_NEEDS_BLANK: frozenset[Verb] = frozenset({Verb.PUB, Verb.HPUB, Verb.SUB, Verb.UNSUB, Verb.ERR, Verb.INFO})


class ClientOpHandler(Receiver):
    """What a server does with each op. A `MessageView` is valid only during the call.

    A result other than 0 stops the parser; SUSPEND (allowed for CONNECT) stops it until `stopped` and `suspended` are
    reset.
    """

    def on_publish(self, message: MessageView) -> cython.int:
        """PUB or HPUB."""
        return 0

    def on_publish_run(self, message: MessageView, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        """`count` ops with the same control line, `stride` bytes apart; `message` is the first.

        Equivalent to `on_publish` for each of them in order, which is what the default does.
        """
        result: cython.int = self.on_publish(message)
        while count > 1 and result == 0:
            message.advance(stride)
            result = self.on_publish(message)
            count -= 1
        return result

    def on_publishes(self, ops: "ClientOpParser") -> cython.int:
        """The current op of `ops`, and those that follow it until `ops.next_publish` returns False.

        Equivalent to `on_publish` or `on_publish_run` for each of them in order, which is what the default does.
        """
        result: cython.int
        while True:
            if ops.count == 1:
                result = self.on_publish(ops.message)
            else:
                result = self.on_publish_run(ops.message, ops.stride, ops.count)
            if result != 0 or not ops.next_publish():
                return result

    def take_publishes(self, buffer: bytearray, start: int, filled: int) -> int:
        """Interpreted only: handle the publishes at the front of `buffer[start:filled]` as far as the handler has a
        shorter way for them; returns where the first one begins that is left.

        Equivalent to `on_publish` for each of them in order.
        """
        return start

    def on_early_publish(self, subject: bytes) -> cython.int:
        """The control line of a PUB or HPUB has arrived; its payload is incomplete or does not end in CRLF.

        May be called several times for one op; `on_publish` or `on_violation` follows.
        """
        return 0

    def on_subscribe(self, subject: bytes, queue: bytes, sid: bytes) -> cython.int:
        """SUB; `queue` is b"" without a queue group."""
        return 0

    def on_unsubscribe(self, sid: bytes, maximum: cython.Py_ssize_t) -> cython.int:
        """UNSUB; a `maximum` of 0 means now (also if the client's argument is not a positive number)."""
        return 0

    def on_connect(self, json: bytes) -> cython.int:
        """CONNECT with its argument, not decoded."""
        return 0

    def on_info(self, json: bytes) -> cython.int:
        """INFO from a client: it has no effect, but nats-server requires its argument to be JSON."""
        return 0

    def on_ping(self) -> cython.int:
        """PING."""
        return 0

    def on_pong(self) -> cython.int:
        """PONG."""
        return 0

    def on_error(self) -> cython.int:
        """-ERR from a client."""
        return 0

    def on_violation(self, violation: cython.int) -> cython.int:
        """The input breaks the protocol; `violation` is one of the constants of `violations`. This is the last call."""
        return 0


class ClientOpParser:
    """The parser of one connection. `awaiting_connect`: only CONNECT is allowed. `headers`: HPUB is allowed."""

    def __init__(self, handler: ClientOpHandler, max_control_line: int, max_payload: int) -> None:
        self.handler = handler
        self.max_control_line = max_control_line
        self.max_payload = max_payload
        self.awaiting_connect = False
        self.headers = True
        self.stopped = False
        self.suspended = False
        self.message = MessageView()  # the op that is passed to the handler
        self.stride = 0
        self.count = 0
        self.incomplete = 0  # the size of the publish that is left incomplete; 0 while that is not known
        self._line = PublishLine()
        self._position = 0
        self._filled = 0

    def parse(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse `buffer[start:filled]`; returns the position up to which the bytes are consumed.

        The rest is the beginning of an incomplete op: pass it again with more bytes after it. A stopped parser consumes
        everything, unless it is suspended.
        """
        used: cython.Py_ssize_t
        self._position = start
        self._filled = filled
        self.incomplete = 0
        while self._position < filled and not self.stopped:
            if not self.awaiting_connect:
                self.message.buffer = buffer  # a rewritten op has set it to its own buffer
                if not cython.compiled and _PUB:
                    self._position = self.handler.take_publishes(buffer, self._position, filled)
                    self._position = self._parse_plain(buffer, self._position, filled)
                    if self._position >= filled or self.stopped:
                        break
                if self.next_publish():
                    self._stop_if(self.handler.on_publishes(self))
                    continue
            used = self._parse_op(buffer, self._position, filled)
            if used < 0:
                break
            self._position += used
        self.message.release()
        return filled if self.stopped and not self.suspended else self._position

    def _parse_plain(self, buffer: bytearray, position: int, filled: int) -> int:
        """Interpreted only: parse consecutive PUBs in the common form whose control lines differ. Same result as
        `next_publish`, without the calls that are cheap only when compiled, and twice as fast; all other ops are left
        to `next_publish`.
        """
        on_publish, read = self.handler.on_publish, PLAIN_PUBLISH.match
        message = self.message
        message.buffer = buffer
        most, longest = self.max_payload, self.max_control_line + 2
        while position < filled:
            found = read(buffer, position, filled)
            if found is None:
                return position
            subject, subject_end = found.span(1)
            body, size = found.end(), int(found[3])
            tail, end, reply_end = subject_end + 1, body + size, found.end(2)
            following = end + 2
            if (
                following > filled
                or size > most
                or body - subject > longest
                or not buffer.startswith(b"\r\n", end)
                or buffer.startswith(found[0], following)
            ):
                return position
            position = following
            message.subject, message.subject_end = subject, subject_end
            message.tail = message.reply = tail
            message.reply_end = max(reply_end, tail)
            message.headers = message.payload = body
            message.end = end
            if stop := on_publish(message):
                self._stop_if(stop)
                break
        return position

    def _parse_op(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse one op; returns its length in bytes, or -1 if it is incomplete."""
        first: cython.int = buffer[start] | 32  # maps letters to lower case
        if self.awaiting_connect:
            if first not in _AUTHENTICATING.letters:
                return self._violation(NOT_CONNECTED)
            return self._parse_other(buffer, start, find_byte(buffer, 10, start, filled), filled)
        newline: cython.Py_ssize_t = find_byte(buffer, 10, start, filled)
        blank: cython.int
        if newline >= 0:
            if (
                _PUB
                and first == 112
                and newline - start > 4
                and buffer[start + 1] | 32 == 117
                and buffer[start + 2] | 32 == 98
            ):
                blank = buffer[start + 3]
                if blank == 32 or blank == 9:
                    return self._parse_publish(buffer, start, start + 4, newline, filled, False)
            elif (
                _HPUB
                and first == 104
                and newline - start > 5
                and buffer[start + 1] | 32 == 112
                and buffer[start + 2] | 32 == 117
                and buffer[start + 3] | 32 == 98
            ):
                blank = buffer[start + 4]
                if blank == 32 or blank == 9:
                    return self._parse_publish(buffer, start, start + 5, newline, filled, True)
        return self._parse_other(buffer, start, newline, filled)

    def next_publish(self) -> cython.bint:
        """Advance to the next op if it is a complete PUB or HPUB in the common form and within the limits. `message` is
        then that op, and `count` consecutive ops, `stride` bytes apart, have its control line.

        Otherwise False, with no effect; the general parser decides what the op is.
        """
        start: cython.Py_ssize_t = self._position
        filled: cython.Py_ssize_t = self._filled
        line: PublishLine = self._line
        buffer: bytearray = self.message.buffer
        if self.stopped or not line.read(buffer, start, filled):
            return False
        body: cython.Py_ssize_t = line.body
        end: cython.Py_ssize_t = body + line.size
        stride: cython.Py_ssize_t = end + 2 - start
        if start + stride > filled or line.size > self.max_payload or body - 2 - line.subject > self.max_control_line:
            return False
        if line.with_headers and (not self.headers or line.header_size == 0 or line.header_size > line.size):
            return False
        if not (_HPUB if line.with_headers else _PUB) or not ends_line(buffer, end):
            return False
        message: MessageView = self.message
        message.subject = line.subject
        message.subject_end = line.subject_end
        message.tail = message.reply = line.subject_end + 1
        message.reply_end = max(line.reply_end, message.tail)
        message.headers = body
        message.payload = body + line.header_size
        message.end = end
        self.stride = stride
        self.count = 1
        if start + 2 * stride <= filled:  # saves a call if the buffer has no room for a second op
            self.count = count_run(buffer, start, filled, body - start, stride)
        self._position = start + self.count * stride
        return True

    def _parse_publish(
        self,
        buffer: bytearray,
        start: cython.Py_ssize_t,
        argument: cython.Py_ssize_t,
        newline: cython.Py_ssize_t,
        filled: cython.Py_ssize_t,
        with_headers: cython.bint,
    ) -> cython.Py_ssize_t:
        """Parse a PUB or HPUB whose control line is complete; returns its length in bytes, or -1 if its payload is
        incomplete.
        """
        # As in nats-server, a CR anywhere in the line drops the byte before the LF, which is nearly always that CR.
        line_end: cython.Py_ssize_t = newline
        if buffer[newline - 1] == 13 or find_byte(buffer, 13, argument, newline) >= 0:
            line_end = newline - 1
        argument = skip_blanks(buffer, argument, line_end)
        if line_end - argument > self.max_control_line:
            return self._violation(CONTROL_LINE_TOO_LONG)
        if with_headers and not self.headers:
            return self._violation(BAD_ARGUMENTS)
        # Four tokens are the most; `count` is 5 for more. Most lines have two, so the third and fourth are parsed last.
        s1: cython.Py_ssize_t = argument
        e1: cython.Py_ssize_t = token_end(buffer, s1, line_end)
        s2: cython.Py_ssize_t = skip_blanks(buffer, e1, line_end)
        e2: cython.Py_ssize_t = token_end(buffer, s2, line_end)
        s3: cython.Py_ssize_t = line_end
        e3: cython.Py_ssize_t = line_end
        s4: cython.Py_ssize_t = line_end
        e4: cython.Py_ssize_t = line_end
        if e2 < line_end:
            s3 = skip_blanks(buffer, e2, line_end)
            e3 = token_end(buffer, s3, line_end)
            s4 = skip_blanks(buffer, e3, line_end)
            e4 = token_end(buffer, s4, line_end)
        count: cython.int = (e1 > s1) + (e2 > s2) + (e3 > s3) + (e4 > s4)
        if e4 < line_end and skip_blanks(buffer, e4, line_end) < line_end:
            count = 5
        needed: cython.int = 3 if with_headers else 2
        if count != needed and count != needed + 1:
            return self._violation(BAD_ARGUMENTS)
        reply: cython.Py_ssize_t = s2
        reply_end: cython.Py_ssize_t = e2 if count > needed else s2
        header_size: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        last_end: cython.Py_ssize_t  # end of the last argument
        if with_headers:
            header_size = parse_size(buffer, s3, e3) if count == 4 else parse_size(buffer, s2, e2)
            size = parse_size(buffer, s4, e4) if count == 4 else parse_size(buffer, s3, e3)
            last_end = e4 if count == 4 else e3
        else:
            size = parse_size(buffer, s3, e3) if count == 3 else parse_size(buffer, s2, e2)
            last_end = e3 if count == 3 else e2
        if header_size < 0 or size < 0 or header_size > size:
            return self._violation(BAD_ARGUMENTS)
        if size > self.max_payload:
            return self._violation(PAYLOAD_TOO_LARGE)
        body: cython.Py_ssize_t = newline + 1
        end: cython.Py_ssize_t = body + size
        if (filled > end and buffer[end] != 13) or (filled > end + 1 and buffer[end + 1] != 10):
            self.handler.on_early_publish(slice_bytes(buffer, s1, e1))
            return self._violation(UNKNOWN_OPERATION)
        if filled < end + 2:
            self.handler.on_early_publish(slice_bytes(buffer, s1, e1))
            self.incomplete = end + 2 - start
            return -1
        # With one space between arguments and CRLF after the last, the tail can be copied unchanged.
        exact: cython.bint = (
            s2 == e1 + 1
            and buffer[e1] == 32
            and (count == 2 or (s3 == e2 + 1 and buffer[e2] == 32))
            and (count < 4 or (s4 == e3 + 1 and buffer[e3] == 32))
            and last_end == line_end
            and buffer[newline - 1] == 13
        )
        message: MessageView = self.message
        message.buffer = buffer
        message.subject = s1
        message.subject_end = e1
        message.reply = reply
        message.reply_end = reply_end
        message.tail = s2
        message.headers = body
        message.payload = body + header_size
        message.end = end
        if not exact or (with_headers and header_size == 0):
            self._rewrite(last_end)
        self._stop_if(self.handler.on_publish(message))
        return end + 2 - start

    def _rewrite(self, last_end: cython.Py_ssize_t) -> cython.int:
        """Rewrite the op with exact spacing. An HPUB with no header bytes becomes a PUB, as in nats-server."""
        message: MessageView = self.message
        name: bytes = message.subject_bytes()
        answer: bytes = message.reply_bytes()
        # The sizes keep their digits, leading zeros included.
        words: list[bytes] = slice_bytes(message.buffer, message.reply_end, last_end).split()
        sizes: bytes = b" ".join(words) if message.payload > message.headers else words.pop()
        head: bytes = name + b" " + (answer + b" " if answer else b"") + sizes + b"\r\n"
        shift: cython.Py_ssize_t = len(head) - message.headers
        message.buffer = bytearray(head) + message.buffer[message.headers : message.end + 2]
        message.subject = 0
        message.subject_end = len(name)
        message.tail = message.reply = len(name) + 1
        message.reply_end = message.reply + len(answer)
        message.headers += shift
        message.payload += shift
        message.end += shift
        return 0

    def _parse_other(
        self, buffer: bytearray, start: cython.Py_ssize_t, newline: cython.Py_ssize_t, filled: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Parse every op but PUB and HPUB, and judge every line that is incomplete."""
        line_end: cython.Py_ssize_t = newline if newline >= 0 else filled
        known = _AUTHENTICATING if self.awaiting_connect else _OPEN
        longest: cython.Py_ssize_t = known.longest
        letters: bytes = slice_bytes(buffer, start, min(start + longest, line_end)).upper()
        size: cython.Py_ssize_t = len(letters)
        while letters[:size] not in known.prefixes:
            size -= 1
        spelling: bytes = letters[:size]
        verb = known.verbs.get(spelling)
        if verb is None:
            # A letter is wrong, or the line ends within the verb. Otherwise more letters may arrive.
            if newline >= 0 or size < len(letters):
                return self._violation(UNKNOWN_OPERATION)
            return -1
        after: cython.Py_ssize_t = start + size
        if verb in _NEEDS_BLANK and after < filled and buffer[after] != 32 and buffer[after] != 9:
            return self._violation(UNKNOWN_OPERATION)
        if newline < 0:
            after = skip_blanks(buffer, after, filled)
            if find_byte(buffer, 13, after, filled) >= 0:  # as below: the CR does not count
                after += 1
            if filled - after > self.max_control_line:
                return self._violation(CONTROL_LINE_TOO_LONG)
            return -1
        if newline > after and find_byte(buffer, 13, after, newline) >= 0:  # as in _parse_publish
            line_end = newline - 1
        after = skip_blanks(buffer, after, line_end)
        if line_end - after > self.max_control_line:
            return self._violation(CONTROL_LINE_TOO_LONG)
        self._stop_if(self._dispatch(verb, slice_bytes(buffer, after, line_end)))
        return newline + 1 - start

    def _dispatch(self, verb: Verb, argument: bytes) -> cython.int:
        if verb is Verb.PING:
            return self.handler.on_ping()
        if verb is Verb.PONG:
            return self.handler.on_pong()
        if verb is Verb.CONNECT:
            return self.handler.on_connect(argument)
        if verb is Verb.OK:
            return 0
        if verb is Verb.ERR:
            return self.handler.on_error()
        if verb is Verb.INFO:
            return self.handler.on_info(argument)
        words: list[bytes] = argument.translate(_BLANKS).split(b" ")  # a CR separates arguments here, but not in PUB
        words = [word for word in words if word]
        if verb is Verb.SUB and len(words) == 2:
            return self.handler.on_subscribe(words[0], b"", words[1])
        if verb is Verb.SUB and len(words) == 3:
            return self.handler.on_subscribe(words[0], words[1], words[2])
        if verb is Verb.UNSUB and len(words) == 1:
            return self.handler.on_unsubscribe(words[0], 0)
        if verb is Verb.UNSUB and len(words) == 2:
            maximum: cython.Py_ssize_t = parse_size(bytearray(words[1]), 0, len(words[1]))
            return self.handler.on_unsubscribe(words[0], max(maximum, 0))
        self._violation(BAD_ARGUMENTS)
        return 1

    def _stop_if(self, result: cython.int) -> cython.int:
        if result != 0:
            self.stopped = True
            self.suspended = result == SUSPEND
        return result

    def _violation(self, violation: cython.int) -> cython.Py_ssize_t:
        if not self.stopped:
            self.stopped = True
            self.handler.on_violation(violation)
        return 0


_BLANKS: bytes = bytes.maketrans(b"\t\r", b"  ")
