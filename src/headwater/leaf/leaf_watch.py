"""The timers of leaf node connections (`net/peer_timers.py`): which connections are paused or closed when time is up."""

import asyncio
from typing import Protocol

from headwater.exchange.backpressure import Backpressure
from headwater.leaf.connection import LeafConnection
from headwater.net.peer_timers import PeerTimers


class LeafTimes(Protocol):
    """What a watch calls; `service.LeafNodes` implements it."""

    def swept(self) -> None: ...
    def not_joined_in_time(self, leaf: LeafConnection, text: str) -> None: ...
    def expired(self, leaf: LeafConnection) -> str: ...


class LeafWatch(PeerTimers[LeafConnection]):
    """A connection joins when it has an account; only then it gets PINGs."""

    def __init__(
        self,
        nodes: LeafTimes,
        *,
        ping_interval: float,
        ping_max: int,
        write_deadline: float,
        max_pending: int,
    ) -> None:
        receivers = Backpressure(asyncio.get_running_loop().time, max_pending)
        super().__init__(receivers, ping_interval=ping_interval, ping_max=ping_max, write_deadline=write_deadline)
        self._nodes = nodes

    def _swept(self, now: float) -> None:
        self._nodes.swept()

    def _missed(self, peer: LeafConnection, text: str) -> None:
        self._nodes.not_joined_in_time(peer, text)

    def _may_ping(self, peer: LeafConnection) -> bool:
        if not peer.joined:
            return False
        expired = self._nodes.expired(peer)
        if expired:
            peer.close(expired)
        return not expired

    def _stuck(self, peer: LeafConnection) -> None:
        peer.end_reason = f"took nothing for {self._write_deadline:g} s"
