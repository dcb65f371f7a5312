"""Who is told what is wanted: the interest of one account, here and at its leaf nodes and hubs. Pure: lines come out.

    to a spoke   what is wanted here, at our hubs and at the other spokes
    to a hub     what is wanted here and at our spokes; not what another hub wants
    to nobody    what it wants itself; what its permissions do not let through; what another spoke of its own cluster wants

A subject counts once, a queue group with its members: each line has the whole weight, never a difference. A spoke that is
isolated hears nothing of other spokes.

Every account has a subject of its own below `$LDS.`, which is announced like any other interest. Whoever gets back what it
announced is part of a loop.
"""

from collections.abc import Iterator

from headwater.leaf.permissions import Crossing
from headwater.wire.leaf_lines import leaf_interest

Key = tuple[bytes, bytes]
"""Subject and queue group, which is empty for plain interest."""
MOST = 1 << 20  # subjects that one neighbour may want; nats-server knows no bound
HEAVIEST = 1 << 16  # members of a queue group that count for one neighbour


class Neighbour:
    """The other end of one connection. `is_hub`: we are its spoke. `cluster`: the one that it is part of, or "".

    `hears`: what of our interest it is told.
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
    """One account's. `loop_subject`: its own, below `$LDS.`."""

    def __init__(self, loop_subject: bytes) -> None:
        self.loop_subject = loop_subject
        self._here: dict[Key, int] = {(loop_subject, b""): 1}
        self._spokes: dict[Key, int] = {}
        self._hubs: dict[Key, int] = {}
        self._neighbours: list[Neighbour] = []

    # ── here ──

    def add(self, subject: bytes, queue: bytes) -> list[Line]:
        """Somebody here subscribed."""
        key = (subject, queue)
        self._here[key] = self._here.get(key, 0) + 1
        return self._tell(key)

    def remove(self, subject: bytes, queue: bytes) -> list[Line]:
        """And went again; what was never added is ignored."""
        key = (subject, queue)
        if key not in self._here:
            return []
        _change(self._here, key, -1)
        return self._tell(key)

    # ── at neighbours ──

    def join(self, neighbour: Neighbour) -> bytes:
        """A neighbour is there: all that it is to hear."""
        self._neighbours.append(neighbour)
        return self.repeat(neighbour)

    def repeat(self, neighbour: Neighbour) -> bytes:
        """All that it is to hear, whatever it has heard."""
        neighbour.told.clear()
        keys = dict.fromkeys((*self._here, *self._spokes, *self._hubs))
        return b"".join(line for key in keys for line in self._news(neighbour, key))

    def renew(self, neighbour: Neighbour) -> bytes:
        """What it may hear has changed: what is news to it."""
        keys = dict.fromkeys((*self._here, *self._spokes, *self._hubs, *neighbour.told))
        return b"".join(line for key in keys for line in self._news(neighbour, key))

    def leave(self, neighbour: Neighbour) -> list[Line]:
        """It is gone, and so is all that it wanted; unknown ones are ignored."""
        if neighbour not in self._neighbours:
            return []
        self._neighbours.remove(neighbour)
        wanted, neighbour.wants = neighbour.wants, {}
        total = self._hubs if neighbour.is_hub else self._spokes
        for key, weight in wanted.items():
            _change(total, key, -weight)
        return [line for key in wanted for line in self._tell(key)]

    def want(self, neighbour: Neighbour, subject: bytes, queue: bytes, weight: int) -> list[Line]:
        """LS+ and, with a `weight` of 0, LS-: what the others are to hear of it."""
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

    # ── what they hear ──

    def _tell(self, key: Key) -> list[Line]:
        return [(neighbour, line) for neighbour in self._neighbours for line in self._news(neighbour, key)]

    def _news(self, neighbour: Neighbour, key: Key) -> Iterator[bytes]:
        """The line that `neighbour` has to hear of `key`, if any."""
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
