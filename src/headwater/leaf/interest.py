"""Which interest of one account is announced to which of its leaf nodes and hubs. Pure: protocol lines come out.

    to a spoke   local interest, and that of our hubs and of the other spokes
    to a hub     local interest, and that of our spokes; not that of another hub
    never        a neighbour's own interest; subjects that its permissions deny; interest of a spoke of the same cluster

A subject counts once, a queue group with its members: each line has the whole weight, never a difference. An isolated
spoke gets no interest of other spokes.

Every account has a subject of its own below `$LDS.`, which is announced like any other interest. A server that gets its
own subject back is part of a loop.
"""

from collections.abc import Iterator

from headwater.leaf.permissions import Crossing
from headwater.wire.leaf_lines import leaf_interest

Key = tuple[bytes, bytes]
"""Subject and queue group, which is empty for plain interest."""
MOST = 1 << 20  # subjects in one neighbour's interest; nats-server has no limit
HEAVIEST = 1 << 16  # members of a queue group that count for one neighbour


class Neighbour:
    """The other end of one connection. `is_hub`: we are its spoke. `cluster`: its cluster, or "".

    `hears`: the part of our interest that is announced to it.
    """

    def __init__(self, *, is_hub: bool, cluster: str = "", isolated: bool = False, hears: Crossing) -> None:
        self.is_hub = is_hub
        self.cluster = cluster
        self.isolated = isolated
        self.hears = hears
        self.wants: dict[Key, int] = {}
        self.told: dict[Key, int] = {}


Line = tuple[Neighbour, bytes]


class Interest:
    """The interest of one account. `loop_subject`: the account's own, below `$LDS.`."""

    def __init__(self, loop_subject: bytes) -> None:
        self.loop_subject = loop_subject
        self._here: dict[Key, int] = {(loop_subject, b""): 1}
        self._spokes: dict[Key, int] = {}
        self._hubs: dict[Key, int] = {}
        self._neighbours: list[Neighbour] = []

    # ── here ──

    def add(self, subject: bytes, queue: bytes) -> list[Line]:
        """Add a local subscription; returns the lines to send."""
        key = (subject, queue)
        self._here[key] = self._here.get(key, 0) + 1
        return self._tell(key)

    def remove(self, subject: bytes, queue: bytes) -> list[Line]:
        """Remove a local subscription; an unknown one is ignored. Returns the lines to send."""
        key = (subject, queue)
        if key not in self._here:
            return []
        _change(self._here, key, -1)
        return self._tell(key)

    # ── at neighbours ──

    def join(self, neighbour: Neighbour) -> bytes:
        """Add a neighbour; returns the lines that announce all interest to it."""
        self._neighbours.append(neighbour)
        return self.repeat(neighbour)

    def repeat(self, neighbour: Neighbour) -> bytes:
        """The lines that announce all interest to a neighbour, including what was announced before."""
        neighbour.told.clear()
        keys = dict.fromkeys((*self._here, *self._spokes, *self._hubs))
        return b"".join(line for key in keys for line in self._news(neighbour, key))

    def renew(self, neighbour: Neighbour) -> bytes:
        """The permissions of a neighbour have changed: the lines for the difference."""
        keys = dict.fromkeys((*self._here, *self._spokes, *self._hubs, *neighbour.told))
        return b"".join(line for key in keys for line in self._news(neighbour, key))

    def leave(self, neighbour: Neighbour) -> list[Line]:
        """Remove a neighbour and its interest; an unknown one is ignored. Returns the lines for the others."""
        if neighbour not in self._neighbours:
            return []
        self._neighbours.remove(neighbour)
        wanted, neighbour.wants = neighbour.wants, {}
        total = self._hubs if neighbour.is_hub else self._spokes
        for key, weight in wanted.items():
            _change(total, key, -weight)
        return [line for key in wanted for line in self._tell(key)]

    def want(self, neighbour: Neighbour, subject: bytes, queue: bytes, weight: int) -> list[Line]:
        """LS+ or, with a `weight` of 0, LS-. Returns the lines for the others."""
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
        return self._tell(key)

    # ── announcements ──

    def _tell(self, key: Key) -> list[Line]:
        return [(neighbour, line) for neighbour in self._neighbours for line in self._news(neighbour, key)]

    def _news(self, neighbour: Neighbour, key: Key) -> Iterator[bytes]:
        """The line to send to `neighbour` about `key`, if any."""
        subject, queue = key
        weight = self._weight(neighbour, key)
        if not queue:
            weight = min(weight, 1)
        if weight and not neighbour.hears.lets(subject):
            weight = 0
        if weight == neighbour.told.get(key, 0):
            return
        if weight:
            neighbour.told[key] = weight
        else:
            del neighbour.told[key]
        yield leaf_interest(subject, queue, weight)

    def _weight(self, neighbour: Neighbour, key: Key) -> int:
        here = self._here.get(key, 0)
        if neighbour.is_hub:
            return here + self._spokes.get(key, 0)
        here += self._hubs.get(key, 0)
        if neighbour.isolated:
            return here
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
