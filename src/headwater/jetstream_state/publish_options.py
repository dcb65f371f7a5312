# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""What the headers of a publish demand, where that needs no other judgement: an id, a TTL, a roll-up, an addition.

    Nats-Msg-Id    Nats-TTL    Nats-Rollup    Nats-Incr

`read` takes a block in which each mention of `Nats-` begins a line with one of these names, each of them once, and whose
values are valid and allowed by the stream's configuration. No check of `publish_checks.py` can refuse such a publish; what
it does to the stream depends on the duplicate window and, for a counter, on the last sum. Everything else is left to
`jetstream_publishing/publish_rules.py`, which judges it or finds nats-server's words to refuse it.

Hot and compiled: `read` runs for each message with options. One walk over the bytes takes the place of a dozen searches.
"""

import cython

if cython.compiled:
    from cython.cimports.headwater.jetstream_state.counters import Sums
    from cython.cimports.headwater.jetstream_state.publish_checks import has_status, mention, stands, value_at
else:
    from headwater.jetstream_state.counters import Sums
    from headwater.jetstream_state.publish_checks import has_status, mention, stands, value_at

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.publish_checks import valid_ttl

MOST_DIGITS: cython.Py_ssize_t = 15  # of an addition that is read here
_MESSAGE_ID: cython.int = 1
_TTL: cython.int = 2
_ROLLUP: cython.int = 4
_INCREMENT: cython.int = 8


class PublishOptions:
    """The options that `config` allows, and those of the block that was read last: `message_id` and `rollup` (b"sub" or
    b"all") are b"" where absent, `ttl_ns` is 0 for none and for `never`. `counts`: every message is an addition to one of
    `sums`. `republishes`: every message leaves work to do."""

    def __init__(self, config: StreamConfig, sums: Sums) -> None:
        self.sums = sums
        self.message_id = self.rollup = b""
        self.ttl_ns = self.increment = 0
        self.counts = config.allow_msg_counter
        self.republishes = config.republish is not None
        self._rolls_up = config.allow_rollup_hdrs
        self._expires = config.allow_msg_ttl
        self._ttl_text = b""  # of the last TTL: most publishers have one
        self._ttl = 0

    def read(self, block: bytes, payload: bytes) -> cython.bint:
        """Read the options of a message; False where another judgement is needed."""
        size: cython.Py_ssize_t = len(block)
        at: cython.Py_ssize_t = mention(block, size, 0)
        seen: cython.int = 0
        name: cython.int
        self.message_id = self.rollup = b""
        self.ttl_ns = self.increment = 0
        if has_status(block):
            return False
        while at >= 0:
            name = _named(block, size, at)
            if name == 0 or seen & name:
                return False
            seen |= name
            at += 12 if name == _MESSAGE_ID or name == _ROLLUP else 9 if name == _TTL else 10
            value: bytes = value_at(block, size, at)
            if not value:
                return False
            if name == _MESSAGE_ID:
                self.message_id = value
            elif name == _TTL:
                if not self._read_ttl(value):
                    return False
            elif name == _ROLLUP:
                if not self._read_rollup(value):
                    return False
            elif not self._read_increment(value):
                return False
            at = mention(block, size, at)
        if self.counts:
            return seen & (_INCREMENT | _ROLLUP) == _INCREMENT and len(payload) == 0
        return seen & _INCREMENT == 0

    def _read_ttl(self, text: bytes) -> cython.bint:
        if text != self._ttl_text:
            ttl = valid_ttl(text)
            if ttl is None:
                return False
            self._ttl_text, self._ttl = text, ttl
        self.ttl_ns = self._ttl
        return self._expires

    def _read_rollup(self, text: bytes) -> cython.bint:
        if text != b"sub" and text != b"all":
            text = text.lower()
        self.rollup = text
        return self._rolls_up and (text == b"sub" or text == b"all")

    def _read_increment(self, text: bytes) -> cython.bint:
        size: cython.Py_ssize_t = len(text)
        at: cython.Py_ssize_t = 1 if text[0] == 43 or text[0] == 45 else 0  # + and -
        number: cython.longlong = 0
        if size == at or size - at > MOST_DIGITS:
            return False
        digit: cython.int
        for index in range(at, size):
            digit = text[index]
            if not 48 <= digit <= 57:
                return False
            number = 10 * number + digit - 48
        self.increment = -number if text[0] == 45 else number
        return True


def _named(block: bytes, size: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.int:
    """Which of the names begins a line at `at`; 0 for none."""
    if at < 2 or block[at - 1] != 10 or block[at - 2] != 13:
        return 0
    if stands(block, size, at, b"Nats-TTL:"):
        return _TTL
    if stands(block, size, at, b"Nats-Rollup:"):
        return _ROLLUP
    if stands(block, size, at, b"Nats-Incr:"):
        return _INCREMENT
    return _MESSAGE_ID if stands(block, size, at, b"Nats-Msg-Id:") else 0
