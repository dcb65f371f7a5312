"""A QUIC connection of an Iggy client: the frames of TCP, each request on a stream of its own.

The framing of the first request decides for the connection, as over TCP. Requests on different streams are handled as
they arrive; each is answered on its stream, so answers need no order. A request whose announced size is too large is
refused at once, with the error of a malformed frame; `net.quic` limits the total size of a connection's requests.
"""

import asyncio
import logging
from typing import Final

from headwater.errors import IggyError
from headwater.iggy.clients import QUIC
from headwater.iggy.conversation import Conversation, Pieces
from headwater.iggy.service import Service
from headwater.iggy_wire import classic_frames, vsr_frames
from headwater.iggy_wire.eras import UNKNOWN, Era
from headwater.net.limits import DEFAULTS, IGGY_QUIC, Limits
from headwater.net.piece_queue import as_bytes
from headwater.net.quic import QuicLink

logger = logging.getLogger(__name__)

MAX_CLASSIC: Final = 10 << 20  # bytes of a request; upstream's bound over QUIC until 0.8, then that of every frame


class QuicSession:
    """The owner of a QUIC link (`net.quic.StreamOwner`)."""

    def __init__(self, service: Service, limits: Limits = DEFAULTS[IGGY_QUIC]) -> None:
        self._service = service
        self._limits = limits
        self._login: asyncio.TimerHandle | None = None  # ends a connection without a login
        self._link: QuicLink | None = None
        self._talk: Conversation | None = None
        self._modern: bool | None = None

    def attach(self, link: QuicLink, peer: str) -> None:
        self._link = link
        client = self._service.connect(QUIC, peer, UNKNOWN)
        client.evict = lambda: link.close()
        self._talk = Conversation(self._service, client)
        if self._limits.login_seconds:
            self._login = asyncio.get_running_loop().call_later(self._limits.login_seconds, self._login_is_late)

    def _login_is_late(self) -> None:
        if self._link is not None and self._talk is not None and self._talk.client.user is None:
            seconds, address = self._limits.login_seconds, self._talk.client.address
            self._service.note("login_timeout", face="iggy", address=address, seconds=seconds)
            self._link.close()

    def _largest(self, of_framing: int) -> int:
        """The present limit on a request's size, in bytes."""
        most = self._limits.login_bytes
        stranger = self._talk is not None and self._talk.client.user is None
        return min(most, of_framing) if most and stranger else of_framing

    def lost(self) -> None:
        if self._talk is not None:
            self._talk.close()
        if self._login is not None:
            self._login.cancel()
        self._link = None

    def receive(self, stream: int, buffer: bytearray) -> int:
        """Handle every complete request; returns the end of the last one."""
        assert self._talk is not None
        if self._modern is None:
            if len(buffer) < 4:
                return 0
            self._modern = buffer[:4] == bytes(4)
            if self._modern:
                self._talk.client.era = Era.V
        at = 0
        try:
            while at < len(buffer) and not self._talk.evicted:
                if self._modern:
                    modern = vsr_frames.find_request(buffer, at, len(buffer), self._largest(vsr_frames.MAX_FRAME))
                    if isinstance(modern, int):
                        break
                    self._talk.modern(buffer, modern, lambda pieces: self._answer(stream, pieces))
                    at = modern.end
                else:
                    classic = classic_frames.find_request(buffer, at, len(buffer), self._largest(MAX_CLASSIC))
                    if isinstance(classic, int):
                        break
                    self._talk.classic(buffer, classic, lambda pieces: self._answer(stream, pieces))
                    at = classic.end
        except IggyError as error:
            logger.info("iggy_frame_refused peer=%s reason=%s", self._talk.client.address, error)
            self._answer(stream, [classic_frames.response(error.number)])
            return len(buffer)
        return at

    def _answer(self, stream: int, pieces: Pieces) -> None:
        if self._link is not None:
            self._link.send(stream, [as_bytes(piece) for piece in pieces])
