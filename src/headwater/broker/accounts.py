"""Accounts: isolated subject spaces. Each has a router of its own, so that nothing can cross by accident.

$G      everybody, when no accounts are configured
$SYS    the system account: its users may ask about the server
"""

import os
from collections.abc import Callable, Iterable, Iterator

from headwater.broker.options import GLOBAL_ACCOUNT, AccountOptions
from headwater.broker.router import Router


class Account:
    """One subject space, its limits, and how many clients are in it."""

    def __init__(self, name: str, router: Router, options: AccountOptions | None, system: bool) -> None:
        self.name = name
        self.router = router
        self.options = options
        self.is_system = system
        self.connections = 0

    @property
    def full(self) -> bool:
        """Whether one more client would be too many."""
        return self.options is not None and 0 <= self.options.max_connections <= self.connections

    @property
    def directory(self) -> str:
        """A name for its files: no account can name another's, or leave the folder."""
        from urllib.parse import quote  # here: a start without accounts does without it

        return "account-" + quote(self.name, safe="")

    def __repr__(self) -> str:
        return f"<Account {self.name} connections={self.connections}>"


class Accounts:
    """All of them, by name. `schedule` is the routers' (see Router)."""

    def __init__(
        self,
        options: Iterable[AccountOptions],
        system_account: str,
        schedule: Callable[[Callable[[], None]], object],
        max_pending: int,
    ) -> None:
        self._accounts: dict[str, Account] = {}
        listed = {account.name: account for account in options}
        for name in dict.fromkeys((GLOBAL_ACCOUNT, system_account, *listed)):
            # Which member of a queue group gets a message need not be unpredictable, only even.
            router = Router(schedule, int.from_bytes(os.urandom(4), "big"), max_pending)
            self._accounts[name] = Account(name, router, listed.get(name), name == system_account)

    def __getitem__(self, name: str) -> Account:
        return self._accounts[name]

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    @property
    def slow_consumers(self) -> int:
        """Clients that were cut off because they were too far behind."""
        return sum(account.router.slow_consumers for account in self)
