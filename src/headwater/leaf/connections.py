"""All leaf node connections of a broker, joined or not, by number.

They include open ones that have not joined an account. A number is never used again.
"""

import asyncio
from typing import TYPE_CHECKING

from headwater.leaf.connection import LeafConnection
from headwater.leaf.remote import Remote

if TYPE_CHECKING:
    from headwater.leaf.connection import LeafRegister


class LeafConnections:
    """Numbers new connections for `nodes`, and knows those that are open."""

    def __init__(self, nodes: "LeafRegister") -> None:
        self._nodes = nodes
        self._open: dict[int, LeafConnection] = {}
        self._last_number = 0
        self._changed = asyncio.Event()

    def make(self, max_payload: int, remote: Remote | None = None) -> LeafConnection:
        """A connection that is about to be accepted or, to `remote`, dialled."""
        self._last_number += 1
        return LeafConnection(self._nodes, self._last_number, max_payload, remote)

    def add(self, leaf: LeafConnection) -> None:
        """The connection is established."""
        self._open[leaf.number] = leaf

    def remove(self, leaf: LeafConnection) -> None:
        """The connection is gone."""
        self._open.pop(leaf.number, None)

    def __contains__(self, leaf: LeafConnection) -> bool:
        return leaf.number in self._open

    def all(self) -> list[LeafConnection]:
        """All of them, in the order they were established."""
        return list(self._open.values())

    def joined(self) -> list[LeafConnection]:
        """Those that have joined an account."""
        return [leaf for leaf in self._open.values() if leaf.joined]

    def note_joined(self) -> None:
        """One has joined: look again whether `wait_for` is satisfied."""
        self._changed.set()

    async def wait_for(self, count: int) -> None:
        """Return once at least `count` have joined."""
        while len(self.joined()) < count:
            self._changed.clear()
            await self._changed.wait()
