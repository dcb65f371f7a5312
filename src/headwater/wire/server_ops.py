# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Parser of the ops that a NATS server sends: INFO, MSG, HMSG, PING, PONG, +OK, -ERR (client protocol document).

    MSG  <subject> <sid> [reply] <#bytes>␍␊<payload>␍␊
    HMSG <subject> <sid> [reply] <#header bytes> <#total bytes>␍␊<header block><payload>␍␊

The parser walks the receive buffer and fills one `MessageView` with positions in it, so a message makes no Python
object. It stores no bytes: an incomplete op stays in the buffer and is passed again with more bytes after it, so any
chunking of the same bytes gives the same calls.

An op is judged only once its control line is complete: otherwise the verdict on a line, and the bytes quoted in the
error, would depend on where TCP cut it. Leniencies: verbs in any case, any blanks between arguments (scan.py), LF for
CRLF at the end of a control line. A payload must end in exactly CRLF.

The parser does not resynchronise: it reports the first invalid op through `on_violation` and is broken from then on,
because the start of the next op is unknown.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.wire.memory import equals, find_byte, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.scan import parse_size, skip_blanks, token_end
else:
    from headwater.wire.memory import equals, find_byte, slice_bytes
    from headwater.wire.message_view import MessageView
    from headwater.wire.scan import parse_size, skip_blanks, token_end

from headwater.errors import RemoteProtocolError
from headwater.wire.verbs import Phase, Sender, Verb, spellings

_GREETING: dict[bytes, Verb] = spellings(Sender.SERVER, Phase.GREETING).verbs
_OPEN: dict[bytes, Verb] = spellings(Sender.SERVER, Phase.OPEN).verbs
# First letters of the most frequent ops, looked up once; 0, which matches no letter, for a verb without a row.
_MSG: int = ord("m") if Verb.MSG.value in _OPEN else 0
_HMSG: int = ord("h") if Verb.HMSG.value in _OPEN else 0

# nats-server's default max_control_line is 4096, but operators raise it for long subjects; a client only needs a bound.
MAX_CONTROL_LINE: int = 1 << 16
MAX_INFO_LINE: int = 1 << 20  # connect_urls of a large cluster
# nats-server refuses a max_payload above 64 MiB; JetStream adds its own header lines to a published message.
MAX_MESSAGE: int = (1 << 26) + (1 << 16)
QUOTED: int = 64  # bytes of an offending line that an error carries


class ServerOpHandler:
    """What a client does with each op. The defaults ignore it. Every method returns 0.

    Methods must not raise, because an exception would leave the parser in the middle of its buffer: a handler catches
    the exceptions of the code that it calls.
    """

    def on_message(self, message: MessageView) -> cython.int:
        """MSG or HMSG; the view is valid only during the call."""
        return 0

    def on_info(self, json: bytes) -> cython.int:
        """INFO with its argument, not decoded."""
        return 0

    def on_ping(self) -> cython.int:
        return 0

    def on_pong(self) -> cython.int:
        return 0

    def on_ok(self) -> cython.int:
        return 0

    def on_error(self, text: str) -> cython.int:
        """-ERR with its text, without the quotes; bytes that are not UTF-8 are escaped."""
        return 0

    def on_violation(self, error: RemoteProtocolError) -> cython.int:
        """Invalid bytes, quoted in `error.value`. The parser is broken from here on."""
        return 0


class RecordingHandler(ServerOpHandler):
    """Keeps what the server says besides messages: its PINGs, its errors, and the violation that broke the parser."""

    errors: list[str]
    violation: RemoteProtocolError | None

    def __init__(self) -> None:
        self.errors = []
        self.violation = None
        self._pings = 0

    def on_ping(self) -> cython.int:
        self._pings += 1
        return 0

    def on_error(self, text: str) -> cython.int:
        self.errors.append(text)
        return 0

    def on_violation(self, error: RemoteProtocolError) -> cython.int:
        self.violation = error
        return 0

    def take_pings(self) -> int:
        """The number of PINGs since the last call; the caller sends a PONG for each."""
        count: int = self._pings
        self._pings = 0
        return count


class KnownLine:
    """The last control line of a message; see `ServerOpParser.take_known`. Positions count from its first byte."""

    def __init__(self) -> None:
        self.text = b""  # b"" unless the line before it was as long: only such lines are likely to repeat
        self.length = 0
        self.subject = self.subject_end = 0
        self.reply = self.reply_end = 0
        self.sid = 0
        self.header_size = 0
        self.size = 0


class ServerOpParser:
    """The parser of one connection: call `parse` whenever bytes arrive. `broken` turns true with the one call of
    `on_violation`.

    `greeting`: until its INFO the server may send only what `Phase.GREETING` allows. Set it at the start of a
    connection.
    """

    def __init__(
        self,
        handler: ServerOpHandler,
        *,
        max_control_line: int = MAX_CONTROL_LINE,
        max_info_line: int = MAX_INFO_LINE,
        max_message: int = MAX_MESSAGE,
    ) -> None:
        """Limits in bytes: of a control line without its LF, of an INFO line, and of a message with its headers."""
        self.handler = handler
        self.max_control_line = max_control_line
        self.max_info_line = max_info_line
        self.max_message = max_message
        self.greeting = False
        self.broken = False
        self.wanted = 0  # total bytes of the incomplete op at the front; 0 until its control line is complete
        self.token = 0
        self.token_end = 0
        self.message = MessageView()
        self.known = KnownLine()

    def parse(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse the ops in `buffer[start:filled]`; returns the position after the last complete one.

        The rest is the beginning of an incomplete op: pass it again, from its first byte, with more bytes after it. A
        broken parser consumes and ignores everything.
        """
        at: cython.Py_ssize_t
        if filled - start < self.wanted:
            return start
        self.message.buffer = buffer
        at = self.take_greeting(buffer, start, filled) if self.greeting else start
        if not self.greeting:
            at = self.take_ops(buffer, at, filled)
        self.message.release()
        return filled if self.broken else at

    def take_greeting(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse the ops up to and including the first INFO; returns the position after the last complete one."""
        line_end: cython.Py_ssize_t
        while at < filled and self.greeting and not self.broken:
            line_end = find_byte(buffer, 10, at, filled)
            if not self.line_may_grow(buffer, at, filled if line_end < 0 else line_end):
                self.refuse("a control line above the limit", buffer, at, at + self.max_control_line)
            elif line_end < 0:
                return at
            else:
                at = self.take_other(buffer, at, line_end)
        return at

    def take_ops(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """As `parse`, once the greeting is over."""
        after: cython.Py_ssize_t
        line_end: cython.Py_ssize_t
        while at < filled and not self.broken:
            if len(self.known.text) > 0 and filled - at > len(self.known.text):
                after = self.take_known(buffer, at, filled)
                if after == at:
                    return at
                if after > at:
                    at = after
                    continue
            line_end = find_byte(buffer, 10, at, filled)
            if line_end < 0 or line_end - at > self.max_control_line:
                if not self.line_may_grow(buffer, at, filled if line_end < 0 else line_end):
                    # Quote only the bytes within the limit: how many have arrived beyond it depends on the chunking.
                    self.refuse("a control line above the limit", buffer, at, at + self.max_control_line)
                    break
                if line_end < 0:
                    return at
            if (buffer[at] | 32) == _MSG and line_end - at > 4 and self.verb_is_msg(buffer, at):
                after = self.take_message(buffer, at, at + 3, line_end, filled, False)
            elif (buffer[at] | 32) == _HMSG and line_end - at > 5 and self.verb_is_msg(buffer, at + 1):
                after = self.take_message(buffer, at, at + 4, line_end, filled, True)
            else:
                after = self.take_other(buffer, at, line_end)
            if after == at:
                return at
            at = after
        return at

    def take_known(self, buffer: bytearray, at: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse a message whose control line equals the previous one byte for byte, as in a stream of similar messages.

        Returns what `take_message` returns, or -1 if the line differs.
        """
        body: cython.Py_ssize_t = at + len(self.known.text)
        end: cython.Py_ssize_t = body + self.known.size
        if not equals(buffer, at, body, self.known.text):
            return -1
        if filled < end + 2:
            self.wanted = end + 2 - at
            return at
        if buffer[end] != 13 or buffer[end + 1] != 10:
            return -1  # `take_message` then reports the violation
        self.wanted = 0
        return self.hand_over(at, body)

    def hand_over(self, at: cython.Py_ssize_t, body: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Pass the message at `at`, which has the known line, to the handler; returns the position after it."""
        message: MessageView = self.message
        known: KnownLine = self.known
        message.sid = known.sid
        message.subject = at + known.subject
        message.subject_end = at + known.subject_end
        message.reply = at + known.reply
        message.reply_end = at + known.reply_end
        message.headers = body
        message.payload = body + known.header_size
        message.end = body + known.size
        self.handler.on_message(message)
        return body + known.size + 2

    def know(self, buffer: bytearray, at: cython.Py_ssize_t, body: cython.Py_ssize_t) -> cython.int:
        """Remember the control line `buffer[at:body]` if it is as long as the previous one, and so likely to repeat."""
        known: KnownLine = self.known
        if body - at == known.length:
            known.text = slice_bytes(buffer, at, body)
        else:
            known.text = b""
            known.length = body - at
        return 0

    def line_may_grow(self, buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Whether a control line of `end - at` bytes is within the limit, which is larger for INFO."""
        if end - at <= self.max_control_line:
            return True
        return end - at <= self.max_info_line and slice_bytes(buffer, at, at + 4).upper() == b"INFO"

    def verb_is_msg(self, buffer: bytearray, at: cython.Py_ssize_t) -> cython.bint:
        """Whether `MSG` and a blank are at `at`. Needs at + 4 <= len(buffer)."""
        return (
            (buffer[at] | 32) == 109
            and (buffer[at + 1] | 32) == 115
            and (buffer[at + 2] | 32) == 103
            and (buffer[at + 3] == 32 or buffer[at + 3] == 9)
        )

    def take_message(
        self,
        buffer: bytearray,
        at: cython.Py_ssize_t,
        arguments: cython.Py_ssize_t,
        line_end: cython.Py_ssize_t,
        filled: cython.Py_ssize_t,
        with_headers: cython.bint,
    ) -> cython.Py_ssize_t:
        """Parse the MSG or HMSG at `at`; returns the position after it, or `at` if its payload is incomplete."""
        subject: cython.Py_ssize_t
        subject_end: cython.Py_ssize_t
        reply: cython.Py_ssize_t = 0
        reply_end: cython.Py_ssize_t = 0
        sid: cython.Py_ssize_t
        header_size: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        body: cython.Py_ssize_t = line_end + 1
        stop: cython.Py_ssize_t = line_end - 1 if buffer[line_end - 1] == 13 else line_end
        self.next_token(buffer, arguments, stop)
        subject = self.token
        subject_end = self.token_end
        sid = self.next_number(buffer, self.token_end, stop)
        if self.tokens_left(buffer, self.token_end, stop) > (2 if with_headers else 1):
            self.next_token(buffer, self.token_end, stop)
            reply = self.token
            reply_end = self.token_end
        if with_headers:
            header_size = self.next_number(buffer, self.token_end, stop)
        size = self.next_number(buffer, self.token_end, stop)
        if sid < 0 or size < 0 or header_size < 0 or skip_blanks(buffer, self.token_end, stop) != stop:
            return self.refuse("a message with wrong arguments", buffer, at, line_end)
        if header_size > size:
            return self.refuse("a message with more header bytes than bytes", buffer, at, line_end)
        if size > self.max_message:
            return self.refuse("a message above the limit", buffer, at, line_end)
        if filled - body < size + 2:
            self.wanted = body + size + 2 - at
            return at
        self.wanted = 0
        if buffer[body + size] != 13 or buffer[body + size + 1] != 10:
            return self.refuse("a payload that does not end where its control line says", buffer, at, line_end)
        self.know(buffer, at, body)
        known: KnownLine = self.known
        known.subject = subject - at
        known.subject_end = subject_end - at
        known.sid = sid
        known.reply = reply - at
        known.reply_end = reply_end - at
        known.header_size = header_size
        known.size = size
        return self.hand_over(at, body)

    def take_other(self, buffer: bytearray, at: cython.Py_ssize_t, line_end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse an op without a payload; returns the position after it. Arguments of PING and PONG are ignored."""
        line: bytes = slice_bytes(buffer, at, line_end).removesuffix(b"\r")
        parts: list[bytes] = line.replace(b"\t", b" ").split(b" ", 1)
        spelling: bytes = parts[0].upper()
        argument: bytes = line[len(spelling) :].strip(b" \t")
        verb = (_GREETING if self.greeting else _OPEN).get(spelling)
        if verb is None:
            early: cython.bint = self.greeting and spelling in _OPEN
            return self.refuse("an op before its INFO" if early else "an unknown op", buffer, at, line_end)
        if verb is Verb.PING:
            self.handler.on_ping()
        elif verb is Verb.PONG:
            self.handler.on_pong()
        elif verb is Verb.OK:
            self.handler.on_ok()
        elif verb is Verb.INFO:
            self.greeting = False
            self.handler.on_info(argument)
        elif verb is Verb.ERR:
            self.handler.on_error(unquote(argument).decode("utf-8", "backslashreplace"))
        else:
            self.refuse("a message with wrong arguments", buffer, at, line_end)
        return line_end + 1

    def next_token(self, buffer: bytearray, start: cython.Py_ssize_t, line_end: cython.Py_ssize_t) -> cython.int:
        """Set `token` and `token_end` to the first token from `start` on; both to `line_end` if the line has no more."""
        self.token = skip_blanks(buffer, start, line_end)
        self.token_end = token_end(buffer, self.token, line_end)
        return 0

    def next_number(
        self, buffer: bytearray, start: cython.Py_ssize_t, line_end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The next token as a number; -1 if it is not one."""
        self.next_token(buffer, start, line_end)
        return parse_size(buffer, self.token, self.token_end)

    def tokens_left(self, buffer: bytearray, start: cython.Py_ssize_t, line_end: cython.Py_ssize_t) -> cython.int:
        """The number of tokens in `buffer[start:line_end]`, at most 4."""
        count: cython.int = 0
        while count < 4:
            start = skip_blanks(buffer, start, line_end)
            if start == line_end:
                break
            count += 1
            start = token_end(buffer, start, line_end)
        return count

    def refuse(self, what: str, buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Report `buffer[at:end]` as invalid and break the parser; returns a position after `at`."""
        quoted: bytes = slice_bytes(buffer, at, min(end, at + QUOTED))
        self.broken = True
        self.wanted = 0
        self.handler.on_violation(RemoteProtocolError(f"the server sent {what}: {quoted!r}", value=quoted))
        return end + 1


def unquote(text: bytes) -> bytes:
    """`'text'` without its quotes; anything else unchanged."""
    if len(text) >= 2 and text.startswith(b"'") and text.endswith(b"'"):
        return text[1 : len(text) - 1]
    return text
