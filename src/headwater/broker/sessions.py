"""The register of connected clients: who is in, what they are greeted with, and the timers that watch over them.

One timer for all, not one per client: a sweep each `SWEEP_SECONDS` sends pings that are due and ends clients that take
no bytes for `write_deadline`. Holding a publisher back is bounded (`STALL_SECONDS` per read), and is not done for the
sake of a receiver that took nothing since the last time: one stuck client must not slow those who publish to others.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, cast

import msgspec

from headwater.broker.options import BrokerOptions
from headwater.broker.router import STALL_AT, Router
from headwater.broker.session import Session
from headwater.net.link import Link
from headwater.wire.handshake import ServerInfo, encode_info

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
STALL_SECONDS = 0.005  # nats-server holds a producer back for 2 to 5 ms


class Progress(NamedTuple):
    """How many bytes a receiver had taken at a moment of the loop's clock, in seconds."""

    sent: int
    since: float


class Sessions:
    """All clients of one broker. `clock` is monotonic, in seconds."""

    def __init__(self, options: BrokerOptions, router: Router, info: ServerInfo, clock: Callable[[], float]) -> None:
        self.options = options
        self.info = info
        self.total = 0
        self._router = router
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[int, Session] = {}
        self._last_ping: dict[int, float] = {}
        self._progress: dict[Link, Progress] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def make(self) -> Session:
        """A session for a connection that is about to be made."""
        return Session(self, self._router)

    def admit(self, session: Session) -> bool:
        """Register a new client; False when the broker is full or closing."""
        if len(self._sessions) >= self.options.max_connections:
            return False
        self.total += 1
        session.client_id = self.total
        self._sessions[session.client_id] = session
        self._last_ping[session.client_id] = self._clock()
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        return True

    def forget(self, session: Session) -> None:
        """A client is gone."""
        self._sessions.pop(session.client_id, None)
        self._last_ping.pop(session.client_id, None)
        if session.link is not None:
            self._progress.pop(session.link, None)

    def greeting(self, session: Session) -> bytes:
        """The INFO that opens the conversation with this client."""
        return encode_info(self._info_for(session))

    def introduction(self, session: Session) -> bytes:
        """The INFO behind a client's first PONG: under which account it runs."""
        return encode_info(msgspec.structs.replace(self._info_for(session), connect_info=True, remote_account="$G"))

    def hold_back(self, publisher: Session) -> None:
        """Take no input from `publisher` for a moment, for the sake of receivers that read, but slower."""
        now = self._clock()
        for outlet in list(self._router.congested):
            link = cast("Link", outlet.link)
            if outlet.closed or link.pending <= STALL_AT:
                self._router.congested.discard(outlet)
                continue
            before = self._progress.get(link)
            if link is publisher.link or (before is not None and link.sent <= before.sent):
                continue
            self._progress[link] = Progress(link.sent, now)
            if publisher.link is not None:
                publisher.link.pause_reading()
                self._loop.call_later(STALL_SECONDS, publisher.link.resume_reading)
            return

    def close_all(self) -> None:
        """End every connection, without -ERR, as nats-server does on a signal."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for session in list(self._sessions.values()):
            if session.link is not None:
                session.link.close()

    def __len__(self) -> int:
        return len(self._sessions)

    def _info_for(self, session: Session) -> ServerInfo:
        address = session.link.peer if session.link is not None else ""
        host = address.rpartition(":")[0].strip("[]")
        return msgspec.structs.replace(self.info, client_id=session.client_id, client_ip=host)

    def _sweep(self) -> None:
        now = self._clock()
        self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep) if self._sessions else None
        for session in list(self._sessions.values()):
            if session.link is None:
                continue
            if now - self._last_ping[session.client_id] >= self.options.ping_interval:
                self._last_ping[session.client_id] = now
                session.ping(self.options.ping_max)
            self._check_write_deadline(session, now)

    def _check_write_deadline(self, session: Session, now: float) -> None:
        link = session.link
        if link is None:
            return
        if link.pending == 0:
            self._progress.pop(link, None)
            return
        before = self._progress.get(link)
        if before is None or link.sent > before.sent:
            self._progress[link] = Progress(link.sent, now)
        elif now - before.since > self.options.write_deadline:
            logger.warning("slow_consumer client=%d deadline=%g", session.client_id, self.options.write_deadline)
            self._router.slow_consumers += 1
            link.abort()
