"""A TCP connection of an Iggy client: frames out of the buffer, answers in the order of the requests.

The first four bytes decide the framing: zero is generation V, anything else a classic length. Requests are handled one
at a time, because a later one may rely on an earlier one's effect, with one exception: sends that come in one breath are
staged together and share an fdatasync. What cannot be handled yet stays in the link's buffer, and reading pauses.

A frame that is none ends the connection, after an error where one can be said: nothing behind it can be trusted.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from headwater.errors import IggyError
from headwater.iggy import classic_frames, vsr_frames
from headwater.iggy.command_codec import SEND
from headwater.iggy.commands import Code
from headwater.iggy.conversation import Conversation, Pieces
from headwater.iggy.eras import UNKNOWN, Era
from headwater.iggy.service import TCP, Service
from headwater.net.link import Link

logger = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 256  # sends of one connection that wait for the disk
MAX_PENDING: Final = 256 << 20  # bytes of answers that a client does not fetch: it is ended


class _Answer:
    """A place in the order of answers; `pieces` is None until there is one."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: Pieces | None = None


class Session:
    """The owner of a link (`net.link.LinkOwner`). `seed`: the client speaks as crate 0.0.30, without a login."""

    def __init__(
        self, service: Service, seed: bool = False, on_lost: Callable[[Link], None] = lambda link: None
    ) -> None:
        self._service = service
        self._on_lost = on_lost
        self._seed = seed
        self._link: Link | None = None
        self._talk: Conversation | None = None
        self._answers: deque[_Answer] = deque()
        self._only_sends = True
        self._modern: bool | None = False if seed else None
        self._paused = False

    def attach(self, link: Link) -> None:
        self._link = link
        client = self._service.connect(TCP, link.peer, Era.S if self._seed else UNKNOWN)
        self._talk = Conversation(self._service, client, ranges=link.takes_ranges)

    def lost(self, error: Exception | None) -> None:
        if self._talk is not None:
            self._talk.close()
        if self._link is not None:
            self._on_lost(self._link)
        self._link = None

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Handle what is complete and may be handled now; returns how far."""
        at = 0
        try:
            if self._modern is None:
                if filled < 4:
                    return 0
                self._choose(buffer)
            while at < filled:
                end = self._next(buffer, at, filled)
                if end == at:
                    break
                at = end
        except IggyError as error:
            self._refuse(error)
            return filled
        return at

    def _choose(self, buffer: bytearray) -> None:
        self._modern = buffer[:4] == bytes(4)
        if self._modern and self._talk is not None:
            self._talk.client.era = Era.V

    def _next(self, buffer: bytearray, at: int, filled: int) -> int:
        """Handle the request at `at`; returns its end, or `at` when it is not whole or has to wait."""
        assert self._talk is not None and self._link is not None
        if self._modern:
            modern = vsr_frames.find_request(buffer, at, filled)
            if isinstance(modern, int):
                self._link.expect(modern)
                return at
            if self._must_wait(modern.operation == SEND):
                return at
            answer = self._place()
            self._talk.modern(buffer, modern, lambda pieces: self._answered(answer, pieces))
            return modern.end
        classic = classic_frames.find_request(buffer, at, filled)
        if isinstance(classic, int):
            self._link.expect(classic)
            return at
        if self._must_wait(classic.code == Code.SEND_MESSAGES):
            return at
        answer = self._place()
        self._talk.classic(buffer, classic, lambda pieces: self._answered(answer, pieces))
        return classic.end

    def _must_wait(self, is_send: bool) -> bool:
        """Whether this request has to wait for the answers before it; reading pauses then, until they are written."""
        if self._answers and not (is_send and self._only_sends and len(self._answers) < MAX_IN_FLIGHT):
            if not self._paused and self._link is not None:
                self._paused = True
                self._link.pause_reading()
            return True
        self._only_sends = is_send
        return False

    def _place(self) -> _Answer:
        answer = _Answer()
        self._answers.append(answer)
        return answer

    def _answered(self, answer: _Answer, pieces: Pieces) -> None:
        """Write what is now first in order."""
        answer.pieces = pieces
        link, answers = self._link, self._answers
        while answers and answers[0].pieces is not None:
            ready = answers.popleft().pieces
            if link is not None and ready is not None:
                link.send(ready)
        if link is None or self._talk is None:
            return
        if link.pending > MAX_PENDING:
            logger.warning("iggy_client_does_not_read peer=%s", link.peer)
            link.abort()
        elif self._talk.evicted:
            link.close()
        else:
            link.flush_soon()
            if not answers and self._paused:
                self._paused = False
                link.resume_reading()
                link.read_on()

    def _refuse(self, error: IggyError) -> None:
        assert self._link is not None
        logger.info("iggy_frame_refused peer=%s reason=%s", self._link.peer, error)
        if not self._modern:
            self._link.send([classic_frames.response(error.number)])
        self._link.close()
