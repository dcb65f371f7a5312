"""The present and lost brokers of the cluster, checked every two seconds (history.py).

    joined ──▶ lost        its route has ended; `since_ms` says when we saw it
           └─▶ left        so it has, after announcing that it goes (lame duck): no fault
    absent                 a configured route that has led to no broker since the start

A lost peer is shown until it returns; one known only by gossip for ten minutes, the time that it is redialled, and so
is one that has left.
"""

from typing import TYPE_CHECKING, Literal

from headwater.model.record import Record
from headwater.monitoring.ledger import Document

if TYPE_CHECKING:
    from headwater.cluster.mesh import Mesh

FORGOTTEN_MS = 600_000  # after which a lost peer that is not configured is removed
MOST = 1000  # peers; a cluster is some tens


class Seen(Record, frozen=False):
    """A peer. `key`: its name, or its id; `address`: the configured one, else the one that it announces."""

    key: str
    server_id: str
    address: str
    configured: bool
    state: Literal["joined", "lost", "left", "absent"]
    since_ms: int
    leaving: bool = False


class Peers:
    """See the head of this module."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}

    def note(self, mesh: "Mesh", now_ms: int) -> None:
        """Update the peers. A broker that restarts has another id and the same name: it counts as one peer."""
        from headwater.cluster.mesh import shown_address

        there = {}
        for peer in mesh.peers.values():
            key, address = peer.name or peer.server_id, shown_address(peer.configured or peer.url)
            there[key] = seen = Seen(
                key=key,
                server_id=peer.server_id,
                address=address,
                configured=bool(peer.configured),
                state="joined",
                since_ms=now_ms,
                leaving=peer.leaving,
            )
            before = self._seen.get(key)
            if before is not None and before.state == "joined" and before.server_id == seen.server_id:
                seen.since_ms = before.since_ms
        unreached = set(mesh.unreached())
        reached = {seen.address for seen in there.values()}
        for key, seen in list(self._seen.items()):
            if key in there or seen.address in reached or (seen.state == "absent" and seen.address not in unreached):
                del self._seen[key]
            elif seen.state == "joined":
                seen.state, seen.since_ms = "left" if seen.leaving else "lost", now_ms
            elif seen.state != "absent" and not seen.configured and now_ms - seen.since_ms > FORGOTTEN_MS:
                del self._seen[key]
        if len(self._seen) < MOST:
            self._seen |= there
        known = {seen.address for seen in self._seen.values()}
        for address in unreached - known:
            self._seen[address] = Seen(
                key=address, server_id="", address=address, configured=True, state="absent", since_ms=now_ms
            )

    def lost(self) -> int:
        """The number of lost peers, without those that have left."""
        return sum(seen.state in ("lost", "absent") for seen in self._seen.values())

    def document(self) -> list[Document]:
        """All peers, by name."""
        return [
            {
                "name": seen.key,
                "server_id": seen.server_id,
                "address": seen.address,
                "configured": seen.configured,
                "state": seen.state,
                "since_ms": seen.since_ms,
            }
            for seen in sorted(self._seen.values(), key=lambda seen: seen.key)
        ]
