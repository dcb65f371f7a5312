"""The spaces of all accounts that neighbours have joined, or that a hub is dialled for; sends their interest lines."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headwater.leaf.connection import LeafConnection
from headwater.leaf.interest import Line
from headwater.leaf.space import LeafSpace

if TYPE_CHECKING:
    from headwater.exchange.account import Account


class LeafSpaces:
    """`joined()`: the neighbours to which lines may be sent; none while the broker stops."""

    def __init__(self, joined: Callable[[], Iterable[LeafConnection]]) -> None:
        self._joined = joined
        self._by_account: dict[str, LeafSpace] = {}

    def make(self, account: "Account") -> LeafSpace:
        """The space of `account`, made if it has none yet."""
        space = self._by_account.get(account.name)
        if space is None:
            space = self._by_account[account.name] = LeafSpace(account, self._send)
        return space

    def __getitem__(self, account: str) -> LeafSpace:
        """Raises KeyError for an account without one."""
        return self._by_account[account]

    def items(self) -> list[tuple[str, LeafSpace]]:
        """Every space, with the name of its account."""
        return list(self._by_account.items())

    def mappings_changed(self) -> None:
        """A reload has changed mappings or added accounts."""
        for space in self._by_account.values():
            space.mappings_changed()

    def _send(self, space: LeafSpace, lines: Iterable[Line]) -> None:
        """Send interest lines, in the same write as the answer to the client or earlier: once it has its PONG, they
        have been sent.
        """
        outlets = {leaf.neighbour: leaf.outlet for leaf in self._joined()} if lines else {}
        for neighbour, line in lines:
            outlet = outlets.get(neighbour)
            if outlet is not None and not outlet.closed:
                outlet.output.append(line)
                space.account.router.mark_dirty(outlet)
