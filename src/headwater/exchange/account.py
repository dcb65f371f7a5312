"""One account: a subject space with its own router, its limits, and the reply subjects lent to other accounts."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.exchange.router import Router
from headwater.options.access import AccountOptions
from headwater.options.store_folders import folder_of

if TYPE_CHECKING:
    from headwater.exchange.replies import Replies
    from headwater.options.mappings import Mappings


class Account:
    """One subject space, its limits, and the number of its clients."""

    def __init__(self, name: str, router: Router, options: AccountOptions | None, system: bool) -> None:
        self.name = name
        self.router = router
        self.use(options)
        self.is_system = system
        self.connections = 0
        self.leafnodes = 0
        self.elsewhere: Callable[[str], int] | None = None  # its clients in other processes that share this port
        self.mappings: Mappings | None = None  # None without mappings
        self.server_name = ""
        self.system_account = ""  # the name of the server's system account
        self.describe_server: Callable[[], dict[str, object]] = dict  # the description of this server in trace reports
        self.cluster_name: Callable[[], str] = str  # it may change: an unnamed cluster adopts the name of a peer
        self._replies: Replies | None = None

    def use(self, options: AccountOptions | None) -> None:
        """Apply options; a reload calls this again."""
        self.options = options
        self.router.samples_traces = options is not None and bool(options.trace_dest)

    @property
    def replies(self) -> "Replies":
        """The reply subjects of requests from and to other accounts."""
        if self._replies is None:
            from headwater.exchange.replies import Replies  # here: most accounts share nothing

            self._replies = Replies(self.router, time.monotonic)
        return self._replies

    @property
    def full(self) -> bool:
        """Whether the account accepts no more clients."""
        return (
            self.options is not None
            and 0 <= self.options.max_connections <= self.connections + self.connections_elsewhere
        )

    @property
    def connections_elsewhere(self) -> int:
        """Clients in other processes that share this port."""
        return self.elsewhere(self.name) if self.elsewhere is not None else 0

    @property
    def directory(self) -> str:
        """The name of the account's folder in a store."""
        return folder_of(self.name)

    def __repr__(self) -> str:
        return f"<Account {self.name} connections={self.connections}>"
