"""An answer to a direct get that asks for several messages: how much of it is left, and when others have their turn."""

from headwater.jetstream_documents.requests import DirectGetRequest
from headwater.jetstream_ranges.direct_answer import DirectAnswer
from headwater.jetstream_state.sequence import sequence_of
from headwater.streams.log import StoredRecord

TURN_MESSAGES = 64  # some 60 us each
TURN_BYTES = 1 << 20
DEFAULT_MAX_BYTES = 64 << 20  # of a batch without a limit


class SeveralAnswers:
    """An answer of several messages, up to the requested limits, and its final status."""

    def __init__(
        self, answers: DirectAnswer, stream: str, reply: bytes, request: DirectGetRequest, pending: int
    ) -> None:
        self._answers = answers
        self._stream = stream.encode()
        self._reply = reply
        self._bare = request.no_hdr
        self._left = request.batch if request.batch > 0 else 1 << 62
        self._room = request.max_bytes if request.max_bytes > 0 else DEFAULT_MAX_BYTES
        self._pending = pending
        self._last = self._sent = 0
        self._turn_room = TURN_BYTES

    def ends_turn(self) -> bool:
        """Whether to yield to other clients before the next message."""
        if self._sent % TURN_MESSAGES and self._turn_room > 0:
            return False
        self._turn_room = TURN_BYTES
        return True

    def send(self, record: StoredRecord) -> bool:
        """Send one more message; False when it is the last that may be sent."""
        if not self._bare:
            self._pending -= 1
        more = b"\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d" % (self._pending, self._last)
        self._answers.send(self._reply, self._stream, record, more, self._bare)
        self._last = sequence_of(record.offset)
        self._sent += 1
        self._left -= 1
        size = len(record.subject) + len(record.header_block) + len(record.payload)
        self._room -= size
        self._turn_room -= size
        return self._left > 0 and self._room > 0

    def end(self, closing: bytes) -> bytes:
        """The status after the last message."""
        end = b"NATS/1.0 204 EOB\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d%b\r\n\r\n"
        return end % (self._pending, self._last, closing)
