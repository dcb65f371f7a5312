"""A QUIC connection of an Iggy client: the frames of TCP, each request on a stream of its own.

The framing of the first request decides for the connection, as over TCP. Requests on different streams are handled as
they arrive; each is answered on its stream, so their answers need no order. A request that says it is too large is refused
before it has come, with the number that a frame which is none gets; `net.quic` bounds what all of a connection's requests
hold together.
"""

import logging
from typing import Final

from headwater.errors import IggyError
from headwater.iggy import classic_frames, vsr_frames
from headwater.iggy.conversation import Conversation, Pieces
from headwater.iggy.eras import UNKNOWN, Era
from headwater.iggy.service import QUIC, Service
from headwater.net.piece_queue import as_bytes
from headwater.net.quic import QuicLink

logger = logging.getLogger(__name__)

MAX_CLASSIC: Final = 10 << 20  # bytes of a request; upstream's bound over QUIC until 0.8, then that of every frame


class QuicSession:
    """The owner of a QUIC link (`net.quic.StreamOwner`)."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._link: QuicLink | None = None
        self._talk: Conversation | None = None
        self._modern: bool | None = None

    def attach(self, link: QuicLink, peer: str) -> None:
        self._link = link
        self._talk = Conversation(self._service, self._service.connect(QUIC, peer, UNKNOWN))

    def lost(self) -> None:
        if self._talk is not None:
            self._talk.close()
        self._link = None

    def receive(self, stream: int, buffer: bytearray) -> int:
        """Handle what is complete; returns how far."""
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
                    modern = vsr_frames.find_request(buffer, at, len(buffer))
                    if isinstance(modern, int):
                        break
                    self._talk.modern(buffer, modern, lambda pieces: self._answer(stream, pieces))
                    at = modern.end
                else:
                    classic = classic_frames.find_request(buffer, at, len(buffer), MAX_CLASSIC)
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
