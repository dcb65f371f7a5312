"""Push parser of the ops between brokers on a route, in both generations of the cluster protocol.

    v1, the cluster protocol document (gnatsd up to 1.4)
        SUB <subject> [queue] <token>␍␊        token: RSID:<cid>:<sid>, with a queue QRSID:<cid>:<sid>
        UNSUB <token> [max]␍␊
        MSG <subject> <token> [reply] <size>␍␊<payload>␍␊
        PUB <subject> [reply] <size>␍␊<payload>␍␊            real servers never send it; handled as a plain MSG
    v2, nats-server 2.x
        RS+ <account> <subject> [queue weight]␍␊      RS- <account> <subject> [queue]␍␊
        RMSG <account> <subject> [reply] <size>␍␊<payload>␍␊
        RMSG <account> <subject> | <queue>... <size>␍␊<payload>␍␊
        RMSG <account> <subject> + <reply> <queue>... <size>␍␊<payload>␍␊
        HMSG: RMSG's forms with two sizes, <header size> <total size>
        a route for one account omits the account everywhere
        for leaf nodes of the peer, with the name of their cluster (`origin`), to which the message is not sent back:
        LS+ <origin> <account> <subject> [queue weight]␍␊      LS- <origin> <account> <subject> [queue]␍␊
        LMSG <origin> …                               HMSG's forms: the header size is always present, 0 without headers
    between leaf nodes, each link of one account
        LS+ <subject> [queue weight]␍␊      LS- <subject> [queue]␍␊
        LMSG, HMSG: RMSG's and HMSG's forms, without the account
    all
        CONNECT {json}␍␊   INFO {json}␍␊   PING␍␊   PONG␍␊   +OK␍␊   -ERR '<text>'␍␊

`verbs.LAW` lists the verbs of each dialect. Verbs may be in any case, any run of spaces and tabs separates arguments,
and LF alone may end a control line. Subjects are not checked here: those of RS+ may have wildcards, those of MSG any
bytes, and the router decides what they match. Neither gnatsd 1.4.1 nor nats-server 2.15.1 enforces a payload limit on
routes; `max_payload` only bounds memory.

Most messages have one form, `route_frames.MessageLine`, which has a fast path here; consecutive messages with the same
control line are passed together, as a run, as in `client_ops`.

Any chunking of the input gives the same calls (a run counts as that many messages). Invalid bytes are reported through
one `on_violation`, never raised.
"""

import cython

from headwater.wire.run_announcement import ANNOUNCED
from headwater.wire.verbs import SUSPEND, Phase, Sender, Spellings, spellings
from headwater.wire.violations import BAD_ARGUMENTS, CONTROL_LINE_TOO_LONG, PAYLOAD_TOO_LARGE, UNKNOWN_OPERATION

if cython.compiled:
    from cython.cimports.headwater.wire.memory import count_run, ends_line, equals, find_byte, slice_bytes
    from cython.cimports.headwater.wire.message_view import MessageView
    from cython.cimports.headwater.wire.route_frames import MessageLine
    from cython.cimports.headwater.wire.scan import parse_size, skip_blanks, token_end
else:
    from headwater.wire.memory import count_run, ends_line, equals, find_byte, slice_bytes
    from headwater.wire.message_view import MessageView
    from headwater.wire.route_frames import MessageLine
    from headwater.wire.scan import parse_size, skip_blanks, token_end

# Dialects; UNDECIDED until the peer's ops have shown which one it speaks.
UNDECIDED: int = 0
V1: int = 1
V2: int = 2
LEAF: int = 3  # never detected: set in advance by the listener for leaf nodes, or for a connection to a hub

MAX_CONTROL_LINE: int = 16384  # bytes; nats-server's 4096 binds only lines that arrive in pieces; queue lists are long
MAX_PAYLOAD: int = 64 << 20

# The verbs that a peer may use, by its dialect.
_PHASES = (Phase.UNDECIDED, Phase.V1, Phase.V2, Phase.LEAF)
_LAW: tuple[Spellings, ...] = tuple(spellings(Sender.PEER, phase) for phase in _PHASES)
# For the most frequent verbs the table is looked up once: three bytes per dialect, 0 for a verb without a row.
_MESSAGE_VERBS: bytes = bytes(
    verb in law.verbs
    for law, plain in zip(_LAW, (b"RMSG", b"RMSG", b"RMSG", b"LMSG"), strict=True)
    for verb in (plain, b"HMSG", b"MSG")
)
_WITH_PAYLOAD = frozenset({b"MSG", b"PUB", b"RMSG", b"HMSG", b"LMSG"})
_NONE: list[bytes] = []
_ANNOUNCED: cython.Py_ssize_t = ANNOUNCED
_BLANKS: bytes = bytes.maketrans(b"\t", b" ")


class RouteMessage(MessageView):
    """One routed message. `account` and `token` are b"" if the dialect has none; `queues` are the queue groups that it
    is for. `origin`: on a route, the cluster of the leaf node that sent the message; otherwise b"".
    """

    def __init__(self) -> None:
        MessageView.__init__(self)
        self.account = b""
        self.token = b""
        self.origin = b""
        self.queues: list[bytes] = []


class RouteOpHandler:
    """What a broker does with each op. A result other than 0 stops the parser; SUSPEND (allowed for CONNECT) stops it
    until `stopped` and `suspended` are reset, and keeps the bytes after the op.
    """

    def on_connect(self, json: bytes) -> cython.int:
        """CONNECT: the peer dialled us and sends its credentials."""
        return 0

    def on_info(self, json: bytes) -> cython.int:
        """INFO: the peer describes itself, or gossips about another broker."""
        return 0

    def on_ping(self) -> cython.int:
        return 0

    def on_pong(self) -> cython.int:
        return 0

    def on_error(self, text: bytes) -> cython.int:
        """-ERR, without its quotes."""
        return 0

    def on_subscribe(self, subject: bytes, queue: bytes, token: bytes) -> cython.int:
        """v1: one subscription of one client of the peer."""
        return 0

    def on_unsubscribe(self, token: bytes, maximum: cython.Py_ssize_t) -> cython.int:
        """v1: the end of a subscription, now (`maximum` 0) or after `maximum` messages."""
        return 0

    def on_interest(self, account: bytes, subject: bytes, queue: bytes, weight: cython.Py_ssize_t) -> cython.int:
        """v2: the peer has interest in `subject`; if `queue` is not empty, that of `weight` members of the group."""
        return 0

    def on_no_interest(self, account: bytes, subject: bytes, queue: bytes) -> cython.int:
        """v2: the peer's interest in `subject` has ended."""
        return 0

    def on_leaf_interest(
        self, origin: bytes, account: bytes, subject: bytes, queue: bytes, weight: cython.Py_ssize_t
    ) -> cython.int:
        """v2: the peer's leaf nodes in the cluster `origin` have interest in `subject`; a `weight` of 0 ends it."""
        return 0

    def on_message(self, message: RouteMessage) -> cython.int:
        """A message for local subscribers, and in v2 for one member of each queue group in `queues`."""
        return 0

    def on_message_run(self, message: RouteMessage, stride: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
        """`count` messages with the same control line, `stride` bytes apart; `message` is the first.

        Equivalent to `on_message` for each of them in order, which is what the default does.
        """
        result: cython.int = self.on_message(message)
        while count > 1 and result == 0:
            message.advance(stride)
            result = self.on_message(message)
            count -= 1
        return result

    def takes_runs(self) -> cython.bint:
        """Whether the peer is another worker of this server."""
        return False

    def on_run(self, announced: bytes) -> cython.int:
        """Between workers: the announcement of a run (`run_announcement`), which follows and is not parsed here. The
        result is SUSPEND, for the handler to take it."""
        return 1

    def on_too_large(self, subject: bytes, size: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> cython.int:
        """A message has more bytes than the limit; the violation follows."""
        return 0

    def on_violation(self, violation: cython.int) -> cython.int:
        """The input breaks the protocol; this is the last call."""
        return 0


class RouteOpParser:
    """The parser of one connection. `dialect` is UNDECIDED until the peer's ops have shown it; ops of other dialects
    are violations.

    `account`: the name of the account on a route that carries only one, otherwise b"". `max_line` and `max_payload` are
    in bytes.
    """

    def __init__(
        self,
        handler: RouteOpHandler,
        account: bytes = b"",
        dialect: cython.int = UNDECIDED,
        max_line: cython.Py_ssize_t = MAX_CONTROL_LINE,
        max_payload: cython.Py_ssize_t = MAX_PAYLOAD,
    ) -> None:
        self.handler = handler
        self.account = account
        self.dialect = dialect
        self.stopped = False
        self.suspended = False
        self._message = RouteMessage()
        self._line = MessageLine()
        self._max_payload = max_payload
        self._max_line = max_line
        self._account = b""  # the last values seen: most messages repeat them
        self._token = b""
        self._list = b""
        self._queues: list[bytes] = []
        # While the handler has a message in the common form: where the next op begins, which it may take too, and where
        # the input ends. Otherwise 0.
        self._behind = 0
        self._filled = 0

    def parse(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse `buffer[start:filled]`; returns the position up to which the bytes are consumed, as
        `ClientOpParser.parse`.
        """
        position: cython.Py_ssize_t = start
        used: cython.Py_ssize_t
        while position < filled and not self.stopped:
            used = self._parse_op(buffer, position, filled)
            if used < 0:
                break
            position += used
        self._message.release()
        return filled if self.stopped and not self.suspended else position

    def _parse_op(self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Parse one op or one run; returns its length in bytes, or -1 if it is incomplete."""
        first: cython.int = buffer[start]
        used: cython.Py_ssize_t
        if first == 82 or first == 72 or first == 77 or first == 76:  # R, H, M, L
            used = self._message_exact(buffer, start, filled)
            if used > 0:
                return used
        if first == 33 and self.handler.takes_runs():  # !
            if filled - start < _ANNOUNCED:
                return -1
            self._stop_if(self.handler.on_run(slice_bytes(buffer, start, start + _ANNOUNCED)))
            return _ANNOUNCED
        newline: cython.Py_ssize_t = find_byte(buffer, 10, start, filled)
        line_end: cython.Py_ssize_t = newline if newline >= 0 else filled
        if line_end > start and buffer[line_end - 1] == 13:  # before the LF has arrived, the CR may be the line's end
            line_end -= 1
        if line_end - start > self._max_line:
            return self._violation(CONTROL_LINE_TOO_LONG)
        law = _LAW[self.dialect]
        longest: cython.Py_ssize_t = law.longest
        verb_end: cython.Py_ssize_t = token_end(buffer, start, min(line_end, start + longest + 1))
        verb: bytes = slice_bytes(buffer, start, verb_end).upper()
        if newline < 0:
            if line_end == start:
                return -1
            if verb_end == line_end and len(verb) <= longest:
                return -1 if verb in law.prefixes else self._violation(UNKNOWN_OPERATION)
            return -1 if verb in law.verbs else self._violation(UNKNOWN_OPERATION)
        if verb not in law.verbs:
            return self._violation(UNKNOWN_OPERATION)
        argument: cython.Py_ssize_t = skip_blanks(buffer, verb_end, line_end)
        if verb in _WITH_PAYLOAD:
            return self._parse_message(buffer, start, verb, argument, line_end, newline, filled)
        self._stop_if(self._dispatch(verb, slice_bytes(buffer, argument, line_end)))
        return newline + 1 - start

    def _message_exact(
        self, buffer: bytearray, start: cython.Py_ssize_t, filled: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Parse a complete message in the common form and the following ones with the same line; returns their total
        length in bytes.

        Otherwise 0, with no effect; the general parser decides what the op is.
        """
        line: MessageLine = self._line
        message: RouteMessage = self._message
        if self.account or not (
            line.read_leaf(buffer, start, filled) if self.dialect == 3 else line.read(buffer, start, filled)  # LEAF
        ):
            return 0
        kind: cython.Py_ssize_t = 2 if line.in_v1 else 1 if line.with_headers else 0
        if not _MESSAGE_VERBS[3 * self.dialect + kind]:
            return 0
        end: cython.Py_ssize_t = line.body + line.size
        if line.size > self._max_payload or line.header_size > line.size or line.body - start > self._max_line:
            return 0
        if end + 2 > filled or not ends_line(buffer, end):
            return 0
        if line.in_v1:
            if not equals(buffer, line.second, line.second_end, self._token):
                self._token = slice_bytes(buffer, line.second, line.second_end)
            message.account = b""
            message.token = self._token
            message.subject = line.first
            message.subject_end = line.first_end
        else:
            if not equals(buffer, line.first, line.first_end, self._account):
                self._account = slice_bytes(buffer, line.first, line.first_end)
            message.account = self._account
            message.token = b""
            message.subject = line.second
            message.subject_end = line.second_end
        message.origin = b""
        message.buffer = buffer
        message.headers = line.body
        message.payload = line.body + line.header_size
        message.end = end
        if line.queues == line.queues_end:
            message.queues = _NONE
            message.tail = message.reply = line.reply
            message.reply_end = max(line.reply_end, line.reply)
            return self._hand_over(buffer, start, line.body, filled)
        if not equals(buffer, line.queues, line.queues_end, self._list):
            self._list = slice_bytes(buffer, line.queues, line.queues_end)
            self._queues = self._list.split(b" ")
        message.queues = self._queues
        message.tail = message.reply = message.reply_end = line.queues_end + 1
        if line.reply_end <= line.reply:
            return self._hand_over(buffer, start, line.body, filled)
        # The tail needs the reply directly before the sizes, so move the reply over the end of the list, which is no
        # longer needed.
        message.tail = message.reply = line.queues_end - (line.reply_end - line.reply)
        message.reply_end = line.queues_end
        buffer[message.reply : message.reply_end] = slice_bytes(buffer, line.reply, line.reply_end)
        self._stop_if(self.handler.on_message(message))
        return end + 2 - start

    def _hand_over(
        self,
        buffer: bytearray,
        start: cython.Py_ssize_t,
        body: cython.Py_ssize_t,
        filled: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Pass the message at `start`, and the following ones with the same line, to the handler; returns their total
        length in bytes.
        """
        stride: cython.Py_ssize_t = self._message.end + 2 - start
        count: cython.Py_ssize_t = 1
        if start + 2 * stride <= filled:
            count = count_run(buffer, start, filled, body - start, stride)
        if count > 1:
            self._stop_if(self.handler.on_message_run(self._message, stride, count))
            return stride * count
        self._behind, self._filled = start + stride, filled
        self._stop_if(self.handler.on_message(self._message))
        behind: cython.Py_ssize_t = self._behind
        self._behind = 0
        return behind - start

    def _parse_message(
        self,
        buffer: bytearray,
        start: cython.Py_ssize_t,
        verb: bytes,
        argument: cython.Py_ssize_t,
        line_end: cython.Py_ssize_t,
        newline: cython.Py_ssize_t,
        filled: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Parse a message whose control line is complete; returns its length in bytes, or -1 if its payload is
        incomplete.
        """
        message: RouteMessage = self._message
        in_v2: cython.bint = verb[0] in b"RHL"
        end: cython.Py_ssize_t
        at: cython.Py_ssize_t = self._read_address(buffer, verb, argument, line_end)
        exact: cython.bint = message.subject_end > message.subject and at < line_end
        words: list[bytes] = _words(slice_bytes(buffer, at, line_end))
        sizes: cython.Py_ssize_t = 2 if verb == b"HMSG" or message.origin else 1
        listed: cython.bint = in_v2 and len(words) > sizes + 1 and words[0] in (b"|", b"+")
        if not exact or (len(words) not in (sizes, sizes + 1) and not listed):
            return self._violation(BAD_ARGUMENTS)
        total: cython.Py_ssize_t = _size(words[len(words) - 1])
        header_size: cython.Py_ssize_t = _size(words[len(words) - 2]) if sizes == 2 else 0
        if total < 0 or header_size < 0 or header_size > total:
            return self._violation(BAD_ARGUMENTS)
        if total > self._max_payload:
            subject: bytes = slice_bytes(buffer, message.subject, message.subject_end)
            self.handler.on_too_large(subject, total, self._max_payload)
            return self._violation(PAYLOAD_TOO_LARGE)
        end = newline + 1 + total
        if (filled > end and buffer[end] != 13) or (filled > end + 1 and buffer[end + 1] != 10):
            return self._violation(UNKNOWN_OPERATION)
        if filled < end + 2:
            return -1
        reply: bytes = b""
        if not listed:
            reply = words[0] if len(words) > sizes else b""
        else:
            first: cython.Py_ssize_t = 1
            if words[0] == b"+":
                reply = words[1]
                first = 2
            message.queues = words[first : len(words) - sizes]
        exact = line_end == newline - 1 and _spaced_out(words) == line_end - at and message.subject_end == at - 1
        message.buffer = buffer
        bare: cython.bint = bool(message.origin) and header_size == 0  # clients then receive one size
        if bare:
            sizes = 1
        if exact and not ((listed or bare) and reply):
            message.tail = line_end - _spaced_out(words[len(words) - sizes :]) if listed or bare else at
            message.reply = message.tail
            message.reply_end = message.tail + len(reply)
            message.headers = newline + 1
            message.payload = newline + 1 + header_size
            message.end = end
            return self._hand_over(buffer, start, newline + 1, filled)
        self._hand_over_rewritten(buffer, reply, words[len(words) - sizes :], newline + 1, header_size, end)
        return end + 2 - start

    def _read_address(
        self, buffer: bytearray, verb: bytes, at: cython.Py_ssize_t, line_end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Parse the account, subject and token that the dialect has; returns the position of the rest of the line."""
        message: RouteMessage = self._message
        message.account = self.account
        message.token = b""
        message.origin = b""
        message.queues = []
        end: cython.Py_ssize_t
        if verb == b"LMSG" and self.dialect != LEAF:
            end = token_end(buffer, at, line_end)
            message.origin = slice_bytes(buffer, at, end)
            at = skip_blanks(buffer, end, line_end)
        if verb[0] in b"RHL" and not self.account and self.dialect != LEAF:
            end = token_end(buffer, at, line_end)
            message.account = slice_bytes(buffer, at, end)
            at = skip_blanks(buffer, end, line_end)
        message.subject = at
        message.subject_end = token_end(buffer, at, line_end)
        at = skip_blanks(buffer, message.subject_end, line_end)
        if verb == b"MSG":
            end = token_end(buffer, at, line_end)
            message.token = slice_bytes(buffer, at, end)
            at = skip_blanks(buffer, end, line_end)
        return at

    def _hand_over_rewritten(
        self,
        buffer: bytearray,
        reply: bytes,
        sizes: list[bytes],
        body: cython.Py_ssize_t,
        header_size: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.int:
        """Rewrite the message with the spacing that a delivery copies, `subject [reply ]sizes␍␊...`, and pass it to the
        handler.
        """
        message: RouteMessage = self._message
        subject: bytes = slice_bytes(buffer, message.subject, message.subject_end)
        head: bytes = subject + b" " + (reply + b" " if reply else b"") + b" ".join(sizes) + b"\r\n"
        message.buffer = bytearray(head) + buffer[body : end + 2]
        message.subject = 0
        message.subject_end = len(subject)
        message.tail = len(subject) + 1
        message.reply = message.tail
        message.reply_end = message.tail + len(reply)
        message.headers = len(head)
        message.payload = len(head) + header_size
        message.end = len(head) + end - body
        return self._stop_if(self.handler.on_message(message))

    def _dispatch(self, verb: bytes, argument: bytes) -> cython.int:
        """Call the handler for an op without a payload."""
        if verb == b"PING":
            return self.handler.on_ping()
        if verb == b"PONG":
            return self.handler.on_pong()
        if verb == b"INFO":
            return self.handler.on_info(argument)
        if verb == b"CONNECT":
            return self.handler.on_connect(argument)
        if verb == b"-ERR":
            return self.handler.on_error(argument.strip(b" \t'"))
        if self.dialect == LEAF and verb[0] in b"L":
            return self._leaf_interest_line(verb, _words(argument))
        if verb == b"+OK" or verb[0] in b"A":  # a gateway's account interest does not concern a route
            return 0
        words: list[bytes] = _words(argument)
        if verb[0] in b"L" and words:
            if self.account:
                words.insert(1, self.account)
            if verb == b"LS+" and len(words) == 3:
                return self.handler.on_leaf_interest(words[0], words[1], words[2], b"", 1)
            if verb == b"LS+" and len(words) == 5 and _size(words[4]) >= 0:
                return self.handler.on_leaf_interest(words[0], words[1], words[2], words[3], _size(words[4]))
            if verb == b"LS-" and len(words) in (3, 4):
                return self.handler.on_leaf_interest(words[0], words[1], words[2], b"".join(words[3:]), 0)
        if verb == b"SUB" and len(words) in (2, 3):
            return self.handler.on_subscribe(words[0], words[1] if len(words) == 3 else b"", words[len(words) - 1])
        if verb == b"UNSUB" and len(words) in (1, 2):
            return self.handler.on_unsubscribe(words[0], max(_size(words[1]), 0) if len(words) == 2 else 0)
        if verb in (b"RS+", b"RS-"):
            if self.account:
                words = [self.account, *words]
            if verb == b"RS+" and len(words) == 2:
                return self.handler.on_interest(words[0], words[1], b"", 0)
            if verb == b"RS+" and len(words) == 4 and _size(words[3]) >= 0:
                return self.handler.on_interest(words[0], words[1], words[2], _size(words[3]))
            if verb == b"RS-" and len(words) in (2, 3):
                return self.handler.on_no_interest(words[0], words[1], words[2] if len(words) == 3 else b"")
        self._violation(BAD_ARGUMENTS)
        return 1

    def _leaf_interest_line(self, verb: bytes, words: list[bytes]) -> cython.int:
        """LS+ and LS- between leaf nodes. LS- with a weight is ignored, as in nats-server."""
        if not words:
            self._violation(UNKNOWN_OPERATION)
            return 1
        if verb == b"LS-":
            return self.handler.on_no_interest(b"", words[0], b"".join(words[1:])) if len(words) < 3 else 0
        if len(words) == 1:
            return self.handler.on_interest(b"", words[0], b"", 0)
        if len(words) == 3 and _size(words[2]) >= 0:
            return self.handler.on_interest(b"", words[0], words[1], _size(words[2]))
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


def _words(line: bytes) -> list[bytes]:
    """The words between spaces and tabs; plain `split()` would accept more kinds of white space than the protocol."""
    return [word for word in line.translate(_BLANKS).split(b" ") if word]


def _size(word: bytes) -> cython.Py_ssize_t:
    return parse_size(bytearray(word), 0, len(word))


def _spaced_out(words: list[bytes]) -> cython.Py_ssize_t:
    """The length in bytes of the words joined with single spaces."""
    length: cython.Py_ssize_t = len(words) - 1
    for word in words:
        length += len(word)
    return length
