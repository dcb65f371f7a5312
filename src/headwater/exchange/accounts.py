"""Accounts: isolated subject spaces. Each has its own router, so nothing can cross by accident.

imports.py carries the messages that cross on purpose, and only where the options request it.

$G      the account of all clients, when no accounts are configured
$SYS    the system account: its users may query the server
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.exchange.account import Account
from headwater.exchange.router import Router
from headwater.net.shared_run import SharedRun
from headwater.options.access import GLOBAL_ACCOUNT, AccountOptions, MappingOptions

if TYPE_CHECKING:
    from headwater.exchange.imports import ServiceImport, StreamImports


logger = logging.getLogger(__name__)


class Accounts:
    """All accounts, by name. `schedule` and `together` are passed to the routers (see Router). Invalid imports are logged
    and left out (BrokerOptions refuses those of a configuration).
    """

    def __init__(
        self,
        options: Iterable[AccountOptions],
        system_account: str,
        schedule: Callable[[Callable[[], None]], object],
        max_pending: int,
        together: Callable[[Callable[[], None]], bool] | None = None,
    ) -> None:
        self._accounts: dict[str, Account] = {}
        self._system_account = system_account
        self._schedule = schedule
        self._together = together
        self.shared = SharedRun()
        self._max_pending = max_pending
        self._streams: list[StreamImports] = []
        self._services: list[ServiceImport] = []
        self._requests_jetstream = False
        self._elsewhere: Callable[[str], int] | None = None
        listed = {account.name: account for account in options}
        for name in dict.fromkeys((GLOBAL_ACCOUNT, system_account, *listed)):
            self._add(name, listed.get(name))
        if any(account.imports for account in listed.values()):
            self._import(listed.values())

    def reload(self, options: Iterable[AccountOptions]) -> list[Account]:
        """Apply other options to the accounts, and add new accounts, which are returned; accounts cannot be removed."""
        listed = {account.name: account for account in options}
        added = [self._add(name, found) for name, found in listed.items() if name not in self._accounts]
        for account in self:
            account.use(listed.get(account.name))
            account.router.imports = None
        for service in self._services:
            service.close()
        for streams in self._streams:
            streams.close()
        self._services.clear()
        self._streams.clear()
        if any(account.imports for account in listed.values()):
            self._import(listed.values())
        if self._requests_jetstream:
            self.ask_jetstream()
        return added

    def count_with(self, elsewhere: Callable[[str], int]) -> None:
        """Let limits on connections hold together with the other processes that share the port: `elsewhere(account)` is how
        many clients it has there."""
        self._elsewhere = elsewhere
        for account in self:
            account.elsewhere = elsewhere

    def ask_jetstream(self) -> None:
        """Let every account use the JetStream API of other brokers in the cluster, because this one has no streams."""
        from headwater.exchange.jetstream_import import JetStreamImport, needs_import

        self._requests_jetstream = True
        system = self._accounts[self._system_account]
        self._services += [JetStreamImport(each, system) for each in self if needs_import(each, system)]

    def map_subjects(
        self, own: Iterable[MappingOptions], cluster: str = "", domains: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Apply the accounts' subject mappings; `own`: those of the global account. `domains`: by account, the
        JetStream domain to which its clients' requests to `$JS.API` go.
        """
        for account in self:
            options = account.options.mappings if account.options is not None else ()
            wanted = (*own, *options) if account.name == GLOBAL_ACCOUNT else options
            if account.name in domains:
                there = f"$JS.{domains[account.name]}.API.>"
                wanted = (*wanted, MappingOptions(source="$JS.API.>", destinations=((there, 100, ""),)))
            account.mappings = None
            if wanted:
                import random

                from headwater.options.mappings import Mappings

                account.mappings = Mappings(wanted, random.randrange, cluster)

    def _add(self, name: str, options: AccountOptions | None) -> Account:
        # The choice among queue group members must be even, not unpredictable.
        seed = int.from_bytes(os.urandom(4), "big")
        router = Router(self._schedule, seed, self._max_pending, self._together, self.shared)
        account = self._accounts[name] = Account(name, router, options, name == self._system_account)
        account.system_account = self._system_account
        account.elsewhere = self._elsewhere
        return account

    def _import(self, options: Iterable[AccountOptions]) -> None:
        from headwater.exchange.imports import ServiceImport, StreamImports
        from headwater.options.import_rules import check_imports

        checked, problems = check_imports(options)
        for problem in problems:  # in an account's JWT: the other accounts must not be affected
            logger.warning("import_refused account=%s reason=%s", problem.account, problem.reason)
        for name, imports in checked.items():
            account = self._accounts[name]
            streams = StreamImports(account.router, name)
            for one in imports:
                exporter = self._accounts[one.options.account]
                if one.options.kind == "stream":
                    streams.add(one.rename, exporter.router, allow_trace=one.options.allow_trace)
                else:
                    self._services.append(ServiceImport(account, exporter, one))
            if any(one.options.kind == "stream" for one in imports):
                account.router.imports = streams
                self._streams.append(streams)
                for subscription in account.router.sublist.all():
                    if subscription not in account.router.between:
                        streams.subscribed(subscription)

    def __getitem__(self, name: str) -> Account:
        return self._accounts[name]

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    @property
    def slow_consumers(self) -> int:
        """The number of clients that were cut off because they were too far behind."""
        return sum(account.router.flusher.slow_consumers for account in self)
