"""Counts PINGs to a peer broker, to know whether it is alive and whether it has read all output.

A peer answers PINGs in order, so it has read everything before a PING once *that* PING's PONG arrives, not that of an
older one. This class counts them; the connection writes the PING.
"""

import asyncio

from headwater.exchange.client_state import Heartbeat


class PeerPulse:
    """Times are seconds on one monotonic clock."""

    def __init__(self) -> None:
        self.heartbeat = Heartbeat()
        self._pongs_due = 0  # PONGs still expected; `heartbeat.unanswered` is reset by any PONG
        self._settled: asyncio.Future[None] | None = None

    def beat(self, most: int, now: float) -> bool:
        """Count a PING that the caller then sends; False, and no PING may be sent, if `most` of them are unanswered."""
        if self.heartbeat.unanswered >= most:
            return False
        self.heartbeat.sent(now)
        self._pongs_due += 1
        return True

    def settle(self, now: float) -> "asyncio.Future[None]":
        """Count a PING that the caller sends after all other output. The future completes when its PONG arrives, or at
        the end of the connection. It does not count as unanswered: a peer that answers it slowly is not stale.
        """
        self._pongs_due += 1
        self.heartbeat.sent_at = now
        if self._settled is None or self._settled.done():
            self._settled = asyncio.get_running_loop().create_future()
        return self._settled

    def answered(self, now: float) -> None:
        """A PONG has arrived."""
        self.heartbeat.answered(now)
        self._pongs_due = max(self._pongs_due - 1, 0)
        if not self._pongs_due:
            self.end()

    def end(self) -> None:
        """Complete the future: the peer has read everything, or the connection is gone."""
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)
