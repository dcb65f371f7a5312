"""PINGs to a peer broker: whether it is alive, and whether it has read everything that was sent.

A peer answers PINGs in order, so everything in front of a PING is read once *its* PONG is there, and not with the PONG of an
older one. That is counted here; who writes the PING is the connection.
"""

import asyncio

from headwater.exchange.client_state import Heartbeat


class PeerPulse:
    """Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self.heartbeat = Heartbeat()
        self._pongs_due = 0  # with those for older PINGs, which any PONG strikes off `heartbeat.unanswered`
        self._settled: asyncio.Future[None] | None = None

    def beat(self, most: int, now: float) -> bool:
        """Count a PING that is to go out; False, and none is to go out, when `most` of them are unanswered."""
        if self.heartbeat.unanswered >= most:
            return False
        self.heartbeat.sent(now)
        self._pongs_due += 1
        return True

    def settle(self, now: float) -> "asyncio.Future[None]":
        """Count a PING that is to go out behind all that was sent. The result is done once its PONG came, or at the end of
        the connection. It does not count as unanswered: a peer that is slow with it is not stale."""
        self._pongs_due += 1
        self.heartbeat.sent_at = now
        if self._settled is None or self._settled.done():
            self._settled = asyncio.get_running_loop().create_future()
        return self._settled

    def answered(self, now: float) -> None:
        """A PONG came."""
        self.heartbeat.answered(now)
        self._pongs_due = max(self._pongs_due - 1, 0)
        if not self._pongs_due:
            self.end()

    def end(self) -> None:
        """End all waits: everything was read, or the connection is gone."""
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)
