"""The JetStream services of one broker, one for each account that may have streams; the others are answered with errors.

    an account with streams      ─▶ a JetStream service on its folder of the store
    an account without any       ─▶ refusals (without_streams.py)
    a broker without any         ─▶ requests under the domain go to the peers that have streams
    one of several workers       ─▶ `shares`: what it and the others ask each other (headwater.jetstream_workers)

The broker's shell starts and stops them; who may have streams is decided here.
"""

import asyncio
import logging
import os
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from headwater.exchange.access_options import GLOBAL_ACCOUNT
from headwater.exchange.account import ACCOUNT_FOLDERS, WORKERS, Account, store_directory
from headwater.exchange.accounts import Accounts
from headwater.exchange.options import BrokerOptions
from headwater.net.journal import Journal

if TYPE_CHECKING:
    from headwater.errors import JetStreamError
    from headwater.jetstream.service import JetStream
    from headwater.jetstream_workers.line import Line
    from headwater.jetstream_workers.shares import Shares
    from headwater.jetstream_workers.usage import Usage
    from headwater.server.without_streams import NotEnabled
    from headwater.streams.finding import Finding

logger = logging.getLogger("headwater.server.broker")


class StreamServices:
    """`services`: by account, from when they can be used. `options` are the broker's, and change with a reload. `usage`: the
    memory that a worker shares with the others."""

    def __init__(self, options: BrokerOptions, journal: Journal) -> None:
        self.options = options
        self.services: dict[str, JetStream] = {}
        self.usage: Usage | None = None
        self.line: Line | None = None
        self.shares: Shares | None = None
        self._journal = journal
        self._refusing: list[NotEnabled] = []
        self._starting: set[asyncio.Task[None]] = set()

    async def start_all(self, accounts: Accounts, system_account: str) -> None:
        """Recover the streams of every account. Raises EnvironmentProblem when the store cannot be used."""
        worker = self.options.worker
        if worker is not None:
            from headwater.jetstream_workers.line import Line

            self.line = Line(accounts[system_account].router, worker.number, worker.count)
            self.line.start()
        if not self.options.jetstream:
            return
        self._check_store()
        if self.line is not None and self.options.is_spread:
            from headwater.jetstream_workers.shares import Shares

            self.shares = Shares(self.line, self.usage)
            self.shares.start()
        for account in accounts:
            if self.has_streams(account, accounts):
                await self._start(account, accounts[system_account])
            else:
                self._refuse(account)
        if self.options.operator is None:
            self._report_unserved()

    def cancel_starts(self) -> None:
        """Start nothing further."""
        for task in [*self._starting]:
            task.cancel()

    async def stop(self) -> None:
        """Write staged messages. Safe to call again."""
        await asyncio.gather(*(service.stop() for service in self.services.values()))
        self.services.clear()
        for refusing in self._refusing:
            refusing.stop()
        self._refusing.clear()
        if self.shares is not None:
            self.shares.stop()
            self.shares = None
        if self.line is not None:
            self.line.stop()
            self.line = None

    def has_streams(self, account: Account, accounts: Accounts) -> bool:
        """As in nats-server: the global account while it is the only one, else the accounts that configure JetStream."""
        if account.options is not None:
            return account.options.jetstream is not None
        return account.name == GLOBAL_ACCOUNT and all(other.options is None or other.is_system for other in accounts)

    def add(self, account: Account, accounts: Accounts, system_account: str) -> bool:
        """Serve a new account, a moment later where it has streams; False where this broker has none for anyone."""
        if not self.options.jetstream:
            return False
        if self.has_streams(account, accounts):
            self._start_later(account, accounts[system_account])
        else:
            self._refuse(account)
        return True

    def limits_changed(self, account: Account, accounts: Accounts, system_account: str) -> None:
        """The account's JWT was changed: its limits, or whether it may have streams."""
        if not self.options.jetstream or not self.has_streams(account, accounts):
            return
        service = self.services.get(account.name)
        refusing = [one for one in self._refusing if one.router is account.router]
        if service is not None and account.options is not None and account.options.jetstream is not None:
            from headwater.jetstream_room.account_limits import storage_limits

            service.limits = storage_limits(account.options.jetstream)
        elif refusing:  # it was just allowed to store
            self._refusing.remove(refusing[0])
            refusing[0].stop()
            self._start_later(account, accounts[system_account])

    def pass_on_domain(self, accounts: Iterable[Account]) -> None:
        """Let clients use the domain of streams on other brokers of the cluster."""
        domain = self.options.jetstream_domain
        if not domain:
            return
        from headwater.server.without_streams import pass_on_domain  # it imports JetStream: other nodes start without

        for account in accounts:
            if not account.is_system:
                pass_on_domain(account.router, domain)

    def note_finding(self, account: str, finding: "Finding") -> None:
        """Record damage in a store; it is logged already."""
        self._journal.note("damage_found", account=account, log=False, **finding.as_document())

    # ── inside ──

    def _check_store(self) -> None:
        from headwater.jetstream_state.foreign_store import refuse_foreign_store
        from headwater.streams.files import OsFiles

        directory, worker = str(self.options.store_dir), self.options.worker
        refuse_foreign_store(OsFiles(), directory)
        if self.options.is_spread or os.path.isdir(f"{directory}/{WORKERS}"):
            from headwater.jetstream_workers.folders import check_store

            check_store(OsFiles(), directory, worker.count if worker is not None and worker.spread else 1)

    async def _start(self, account: Account, system_account: Account) -> None:
        from headwater.jetstream.domain import Domain
        from headwater.jetstream.service import JetStream
        from headwater.jetstream_room.account_limits import storage_limits
        from headwater.jetstream_room.server_caps import ServerCaps, caps_of

        options, services, shares = self.options, self.services, self.shares
        system = None if account.is_system else system_account.router
        caps = next((each.caps for each in services.values()), None) or ServerCaps(
            caps_of(options.jetstream_limits, str(options.store_dir)),
            lambda: [one for each in services.values() for one in each.streams.values()],
            shares.elsewhere if shares is not None else lambda storage: 0,
        )
        own = account.options.jetstream if account.options is not None else None
        limits = storage_limits(own or options.jetstream_limits)
        share = shares.share(account, limits) if shares is not None else None
        service = JetStream(
            account.router,
            store_directory(options.streams_dir, account.name),
            clock_ns=time.time_ns,
            ticks_ns=time.monotonic_ns,
            sync=options.sync,
            limits=limits,
            server_name=account.server_name,
            domain=Domain(options.jetstream_domain, account.name, options.scoped_acks, system),
            default_max_consumers=options.default_max_consumers,
            server_limits=options.stream_limits,
            caps=caps,
            others=share,
        )
        await service.start()
        if shares is not None and share is not None:
            try:
                shares.serve(account, share, service)
            except BaseException:
                await service.stop()
                raise
        caps.start()
        for finding in service.findings():
            self.note_finding(account.name, finding)
        service.report_to(partial(self.note_finding, account.name), partial(self._note_refused_write, account.name))
        services[account.name] = service

    def _report_unserved(self) -> None:
        store = self.options.streams_dir
        if GLOBAL_ACCOUNT in self.services and not os.path.isdir(f"{store}/{ACCOUNT_FOLDERS}"):
            return  # as nearly always; what follows imports two modules
        from headwater.server.unserved_streams import unserved_streams

        for account, streams, folder in unserved_streams(store, self.services):
            self._journal.note("streams_unserved", account=account, streams=streams, folder=folder)

    def _start_later(self, account: Account, system_account: Account) -> None:
        starting = asyncio.get_running_loop().create_task(self._start(account, system_account))
        self._starting.add(starting)
        starting.add_done_callback(self._started)

    def _started(self, task: "asyncio.Task[None]") -> None:
        self._starting.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("the streams of a new account cannot be used: %s", task.exception())

    def _note_refused_write(self, account: str, stream: str, error: "JetStreamError") -> None:
        self._journal.note(
            "write_refused", account=account, stream=stream, error=error.err_code, reason=error.description
        )

    def _refuse(self, account: Account) -> None:
        """Answer JetStream requests in this account with an error: it has no streams."""
        from headwater.jetstream.domain import Domain
        from headwater.server.without_streams import NotEnabled

        imports = account.options.imports if account.options is not None else ()
        imported = [one.to or one.subject for one in imports if one.kind == "service"]
        refusing = NotEnabled(account.router, Domain(self.options.jetstream_domain, account.name), imported)
        refusing.start()
        self._refusing.append(refusing)
