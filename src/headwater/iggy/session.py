"""A TCP or WebSocket connection of an Iggy client: frames out of the buffer, answers in the order of the requests.

The first four bytes decide the framing: zero is generation V or later, anything else a classic length. Requests are
handled one at a time, because a later one may rely on an earlier one's effect, with two exceptions: sends that arrive
together are staged together and share an fdatasync; and a waiting poll (protocol 0.12) does not delay later requests,
because those clients match answers by their numbers. Any other request that has to wait stays in the link's buffer, and
reading pauses.

A malformed frame ends the connection, after an error reply where the framing has one: nothing behind it can be trusted.

Answers are written once the input is handled, and once the last send in flight is answered: in that very turn, for
another turn of asyncio's loop costs as much as half of what else a small send costs in Python.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from headwater.errors import IggyError
from headwater.iggy.clients import TCP
from headwater.iggy.conversation import Conversation, Pieces
from headwater.iggy.service import Service
from headwater.iggy_wire import classic_frames, vsr_frames
from headwater.iggy_wire.command_codec import SEND
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.eras import UNKNOWN, Era
from headwater.net.expected_frame import ExpectedFrame
from headwater.net.limits import DEFAULTS, IGGY, Limits
from headwater.net.link import LARGE_BYTES, Link

logger = logging.getLogger(__name__)

EVICTION_SECONDS: Final = 1.0  # until a connection that was evicted is aborted
MAX_IN_FLIGHT: Final = 256  # sends of one connection that wait for the disk


class _Answer:
    """A place in the order of answers; `pieces` is None until there is one."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: Pieces | None = None


class Session:
    """The owner of a link (`net.link.LinkOwner`). `seed`: the client speaks as crate 0.0.30, without a login."""

    def __init__(
        self,
        service: Service,
        seed: bool = False,
        on_lost: Callable[[Link], None] = lambda link: None,
        limits: Limits = DEFAULTS[IGGY],
        transport: int = TCP,
    ) -> None:
        self._transport = transport
        self._service = service
        self._on_lost = on_lost
        self._seed = seed
        self._link: Link | None = None
        self._talk: Conversation | None = None
        self._answers: deque[_Answer] = deque()
        self._only_sends = True
        self._front = ExpectedFrame()
        self._handling = False  # requests: what is answered meanwhile is written at the end
        self._modern: bool | None = False if seed else None
        self._paused = False
        self._limits = limits
        self._login: asyncio.TimerHandle | None = None  # ends a connection without a login

    def attach(self, link: Link) -> None:
        self._link = link
        client = self._service.connect(self._transport, link.peer, Era.S if self._seed else UNKNOWN)
        client.evict = self._evict
        self._talk = Conversation(self._service, client, ranges=link.takes_ranges)
        if self._limits.login_seconds and not self._seed:
            self._login = asyncio.get_running_loop().call_later(self._limits.login_seconds, self._login_is_late)

    def _login_is_late(self) -> None:
        if self._link is not None and self._is_stranger():
            seconds = self._limits.login_seconds
            self._service.note("login_timeout", face="iggy", address=self._link.peer, seconds=seconds)
            self._link.close()

    def _evict(self) -> None:
        """Tell the client that it is stale. A peer that is not there reads nothing: the link does not wait for it."""
        if self._link is not None and self._talk is not None:
            self._talk.evicted = True
            self._link.send([vsr_frames.eviction(vsr_frames.STALE, self._talk.client.key)])
            self._link.close()
            asyncio.get_running_loop().call_later(EVICTION_SECONDS, self._link.abort)

    def _is_stranger(self) -> bool:
        """Whether a login is required and has not happened yet."""
        return not self._seed and self._talk is not None and self._talk.client.user is None

    def _largest(self, of_framing: int) -> int:
        """The present limit on a frame's size, in bytes. It is checked when the head arrives, because the buffer grows
        to the announced size."""
        most = self._limits.login_bytes
        return min(most, of_framing) if most and self._is_stranger() else of_framing

    def lost(self, error: Exception | None) -> None:
        if self._talk is not None:
            self._talk.close()
        if self._login is not None:
            self._login.cancel()
        if self._link is not None:
            self._on_lost(self._link)
        self._link = None

    def receive(self, buffer: bytearray, filled: int) -> int:
        """Handle every request that is complete and need not wait; returns the end of the last one."""
        if self._front.is_incomplete(self._link, filled):
            return 0
        at = 0
        self._handling = True
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
        finally:
            self._handling = False
        if self._link is not None and self._link.output.size:
            self._write(self._link)
        return at

    def _choose(self, buffer: bytearray) -> None:
        self._modern = buffer[:4] == bytes(4)
        if self._modern and self._talk is not None:
            self._talk.client.era = Era.V

    def _next(self, buffer: bytearray, at: int, filled: int) -> int:
        """Handle the request at `at`; returns its end, or `at` when it is incomplete or has to wait."""
        talk, link = self._talk, self._link
        assert talk is not None and link is not None
        if self._modern:
            most = vsr_frames.MAX_FRAME if talk.client.user is not None else self._largest(vsr_frames.MAX_FRAME)
            modern = vsr_frames.find_request(buffer, at, filled, most)
            if isinstance(modern, int):
                self._front.expect(link, modern, filled - at)
                return at
            is_send = modern.operation == SEND
            if self._must_wait(is_send):
                return at
            if not is_send and talk.is_deferred(modern):
                talk.modern(buffer, modern, self._answer_apart)
                return modern.end
            answer = self._place()
            talk.modern(buffer, modern, lambda pieces: self._answered(answer, pieces))
            return modern.end
        classic = classic_frames.find_request(buffer, at, filled, self._largest(classic_frames.MAX_FRAME))
        if isinstance(classic, int):
            self._front.expect(link, classic, filled - at)
            return at
        if self._must_wait(classic.code == Code.SEND_MESSAGES):
            return at
        answer = self._place()
        talk.classic(buffer, classic, lambda pieces: self._answered(answer, pieces))
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
        """Write the answers that are ready, up to the first that is not."""
        answer.pieces = pieces
        link, answers = self._link, self._answers
        while answers and (ready := answers[0].pieces) is not None:
            answers.popleft()
            if link is None:
                continue
            if len(ready) == 1 and isinstance(ready[0], bytes) and len(ready[0]) < LARGE_BYTES:
                link.output.append(ready[0])
            else:
                link.send(ready)
                self._write(link)
        if link is not None and not self._handling:
            if answers:
                link.flush_soon()  # more are likely to be ready in this turn
            else:
                self._write(link)

    def _write(self, link: Link) -> None:
        """Write what was answered, and see whether the client reads it."""
        link.push()
        if 0 < self._limits.waiting_bytes < link.pending:
            self._service.note("slow_consumer", face="iggy", address=link.peer, reason="does not read its answers")
            link.abort()
        elif self._talk is not None and self._talk.evicted:
            link.close()
        elif self._paused and not self._answers:
            self._paused = False
            link.resume_reading()
            link.read_on()

    def _answer_apart(self, pieces: Pieces) -> None:
        """Write the answer to a waiting poll, out of order."""
        if pieces and self._link is not None:
            self._link.send(pieces)
            if not self._handling:
                self._write(self._link)

    def _refuse(self, error: IggyError) -> None:
        assert self._link is not None
        logger.info("iggy_frame_refused peer=%s reason=%s", self._link.peer, error)
        if not self._modern:
            self._link.send([classic_frames.response(error.number)])
        self._link.close()
