"""Decides which interest of one account is announced to which of its leaf nodes and hubs. Pure: returns protocol lines.

    to a spoke   local interest, that of our hubs and the other spokes, and that of peers in our cluster and their spokes
    to a hub     local interest, and that of our spokes; not that of another hub, nor of peers: they have their own links
    never        a neighbour's own interest; subjects that its permissions deny; interest of a spoke of the same cluster

A subject counts once, a queue group by its members: each line has the total weight, not the change. An isolated spoke
gets no interest of other spokes.

Every account has its own subject below `$LDS.`, which is announced like any other interest. A server that gets its own
subject back is part of a loop, so these subjects are announced from peers to hubs too.
"""

from collections.abc import Iterator

from headwater.leaf.permissions import Crossing
from headwater.wire.leaf_lines import LOOP_DETECTION, leaf_interest

Key = tuple[bytes, bytes]
"""Subject and queue group; the group is b"" for plain interest."""
HEAVIEST = 1 << 16  # members of a queue group that count for one neighbour


class Neighbour:
    """The other end of one connection. `is_hub`: we are its spoke. `cluster`: the name of its cluster, or "".

    `may_announce`: the permissions that decide which part of our interest is announced to it; `announced`: what has been.
    """

    def __init__(
        self, *, is_hub: bool, cluster: str = "", origin: str = "", isolated: bool = False, may_announce: Crossing
    ) -> None:
        self.is_hub = is_hub
        self.cluster = cluster
        self.origin = (origin or cluster).encode()  # a spoke's name for the peers in our cluster
        self.isolated = isolated
        self.may_announce = may_announce
        self.sends: Crossing | None = None  # permissions for messages to it; None allows all
        self.wants: dict[Key, int] = {}
        self.announced: dict[Key, int] = {}


Line = tuple[Neighbour, bytes]


class Interest:
    """The interest of one account. `loop_subject`: the account's own, below `$LDS.`."""

    def __init__(self, loop_subject: bytes) -> None:
        self.loop_subject = loop_subject
        self._here: dict[Key, int] = {(loop_subject, b""): 1}
        self._spokes: dict[Key, int] = {}
        self._hubs: dict[Key, int] = {}
        self._neighbours: list[Neighbour] = []
        self._by_peer: dict[object, dict[tuple[bytes, Key], int]] = {}
        self._peers: dict[
            Key, dict[bytes, int]
        ] = {}  # totals, by the cluster of the peers' spokes; b"" for peers' clients

    # ── here ──

    def add(self, subject: bytes, queue: bytes) -> list[Line]:
        """Add a local subscription; returns the lines to send."""
        key = (subject, queue)
        self._here[key] = self._here.get(key, 0) + 1
        return self._announce(key)

    def remove(self, subject: bytes, queue: bytes) -> list[Line]:
        """Remove a local subscription; an unknown one is ignored. Returns the lines to send."""
        key = (subject, queue)
        if key not in self._here:
            return []
        _change(self._here, key, -1)
        return self._announce(key)

    # ── at neighbours ──

    def join(self, neighbour: Neighbour) -> bytes:
        """Add a neighbour; returns the lines that announce all interest to it."""
        self._neighbours.append(neighbour)
        return self.repeat(neighbour)

    def repeat(self, neighbour: Neighbour) -> bytes:
        """The lines that announce all interest to a neighbour, including interest that was announced before."""
        neighbour.announced.clear()
        keys = dict.fromkeys((*self._here, *self._spokes, *self._hubs, *self._peers))
        return b"".join(line for key in keys for line in self._line_for(neighbour, key))

    def renew(self, neighbour: Neighbour) -> bytes:
        """The lines for the difference after a neighbour's permissions have changed."""
        keys = dict.fromkeys((*self._here, *self._spokes, *self._hubs, *self._peers, *neighbour.announced))
        return b"".join(line for key in keys for line in self._line_for(neighbour, key))

    def leave(self, neighbour: Neighbour) -> list[Line]:
        """Remove a neighbour and its interest; an unknown one is ignored. Returns the lines for the others."""
        if neighbour not in self._neighbours:
            return []
        self._neighbours.remove(neighbour)
        wanted, neighbour.wants = neighbour.wants, {}
        total = self._hubs if neighbour.is_hub else self._spokes
        for key, weight in wanted.items():
            _change(total, key, -weight)
        return [line for key in wanted for line in self._announce(key)]

    def want(self, neighbour: Neighbour, subject: bytes, queue: bytes, weight: int) -> list[Line]:
        """Apply a neighbour's LS+ or, with a `weight` of 0, LS-. Returns the lines for the others."""
        key = (subject, queue)
        weight = min(weight, HEAVIEST) if queue else min(weight, 1)
        before = neighbour.wants.get(key, 0)
        if weight == before:
            return []
        if weight:
            neighbour.wants[key] = weight
        else:
            del neighbour.wants[key]
        _change(self._hubs if neighbour.is_hub else self._spokes, key, weight - before)
        return self._announce(key)

    # ── at peers in our cluster ──

    def peer_wants(self, peer: object, origin: bytes, subject: bytes, queue: bytes, weight: int) -> list[Line]:
        """Apply a peer's interest, or that of its spokes in the cluster `origin`. Returns the lines to send."""
        known, key = self._by_peer.setdefault(peer, {}), (subject, queue)
        before = known.pop((origin, key), 0)
        weight = min(weight, HEAVIEST) if queue else min(weight, 1)
        if weight:
            known[origin, key] = weight
        if weight == before:
            return []
        by_origin = self._peers.setdefault(key, {})
        total = by_origin.pop(origin, 0) + weight - before
        if total:
            by_origin[origin] = total
        if not by_origin:
            del self._peers[key]
        return self._announce(key)

    def peer_left(self, peer: object) -> list[Line]:
        """Remove a peer's interest. Returns the lines to send."""
        known = self._by_peer.get(peer, {})
        lines = [
            line for origin, (subject, queue) in [*known] for line in self.peer_wants(peer, origin, subject, queue, 0)
        ]
        self._by_peer.pop(peer, None)
        return lines

    def of_spokes(self) -> Iterator[tuple[Neighbour, bytes, bytes, int]]:
        """The interest of each spoke: subject, queue, members."""
        for each in self._neighbours:
            if not each.is_hub:
                for (subject, queue), weight in each.wants.items():
                    yield each, subject, queue, weight

    # ── announcements ──

    def _announce(self, key: Key) -> list[Line]:
        return [(neighbour, line) for neighbour in self._neighbours for line in self._line_for(neighbour, key)]

    def _line_for(self, neighbour: Neighbour, key: Key) -> Iterator[bytes]:
        """The line to send to `neighbour` about `key`, if any."""
        subject, queue = key
        weight = self._weight(neighbour, key)
        if not queue:
            weight = min(weight, 1)
        if weight and not neighbour.may_announce.lets(subject):
            weight = 0
        if weight == neighbour.announced.get(key, 0):
            return
        if weight:
            neighbour.announced[key] = weight
        else:
            del neighbour.announced[key]
        yield leaf_interest(subject, queue, weight)

    def _weight(self, neighbour: Neighbour, key: Key) -> int:
        here = self._here.get(key, 0)
        peers = self._peers.get(key) if self._peers else None
        if neighbour.is_hub:
            if peers and key[0].startswith(LOOP_DETECTION):
                here += sum(peers.values())
            return here + self._spokes.get(key, 0)
        here += self._hubs.get(key, 0)
        if peers:
            here += peers.get(b"", 0)
        if neighbour.isolated:
            return here
        if peers:
            here += sum(weight for origin, weight in peers.items() if origin and origin != neighbour.origin)
        others = self._spokes.get(key, 0) - neighbour.wants.get(key, 0)
        if others and neighbour.cluster:
            others -= sum(
                other.wants.get(key, 0)
                for other in self._neighbours
                if other is not neighbour and not other.is_hub and other.cluster == neighbour.cluster
            )
        return here + others


def _change(counts: dict[Key, int], key: Key, by: int) -> None:
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
