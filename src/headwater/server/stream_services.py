"""The JetStream services of one broker, one for each account that may have streams; the others are answered with errors.

    an account with streams      ─▶ a JetStream service on its folder of the store
    a store without any          ─▶ the same, loaded after the greeting where `greets_first` is set (late_streams.py)
    an account without any       ─▶ refusals (without_streams.py)
    a broker without any         ─▶ requests under the domain go to the peers that have streams
    one of several workers       ─▶ `shares`: what it and the others ask each other (headwater.jetstream_workers)

The broker's shell starts and stops them; who may have streams is decided here.
"""

import asyncio
import logging
import os
import time
from collections.abc import Container, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from headwater.exchange.account import Account
from headwater.exchange.accounts import Accounts
from headwater.net.journal import Journal
from headwater.options.access import GLOBAL_ACCOUNT
from headwater.options.broker import BrokerOptions
from headwater.options.store_folders import ACCOUNT_FOLDERS, WORKERS, store_directory

if TYPE_CHECKING:
    from headwater.durable_files.files import File
    from headwater.errors import JetStreamError
    from headwater.jetstream.service import JetStream
    from headwater.jetstream_documents.account import AccountLimits
    from headwater.jetstream_workers.account_share import AccountShare
    from headwater.jetstream_workers.line import Line
    from headwater.jetstream_workers.shares import Shares
    from headwater.jetstream_workers.usage import Usage
    from headwater.server.late_streams import LateStreams
    from headwater.server.without_streams import NotEnabled
    from headwater.streams.finding import Finding

logger = logging.getLogger("headwater.server.broker")


class StreamServices:
    """`options` are the broker's, and change with a reload. `usage`: the memory that a worker shares with the others.
    `greets_first`: where no stream is on disk, `load_late` is called after the greeting and loads JetStream."""

    def __init__(self, options: BrokerOptions, journal: Journal) -> None:
        self.options = options
        self.greets_first = False
        self.usage: Usage | None = None
        self.line: Line | None = None
        self.shares: Shares | None = None
        self._services: dict[str, JetStream] = {}
        self._late: LateStreams | None = None
        self._journal = journal
        self._refusing: list[NotEnabled] = []
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}  # by the account that may have no streams any more

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
        storing = {account.name: account for account in accounts if self.has_streams(account, accounts)}
        if self.greets_first and storing:
            self._wait_to_load([*storing.values()], accounts[system_account])
        if self._late is None:
            for account in storing.values():
                await self._start(account, accounts[system_account])
        for account in accounts:
            if account.name not in storing:
                self._refuse(account)
        if self.options.operator is None:
            self._report_unserved(storing)

    def load_late(self) -> Iterator[None]:
        """Load what was left for after the greeting, a part for each step; a step takes a few milliseconds."""
        return iter(()) if self._late is None else self._late.load()

    @property
    def services(self) -> "dict[str, JetStream]":
        """The services by account, from when they can be used. What is left of loading them is done now; raises what that
        raises."""
        if self._late is not None:
            self._late.finish()
            self._late = None
        return self._services

    def serves(self, account: str) -> bool:
        """Whether the account has streams here, or waits to be able to."""
        return account in self._services or (self._late is not None and account in self._late)

    def cancel_starts(self) -> None:
        """Start nothing further."""
        for task in [*self._starting.values()]:
            task.cancel()

    async def stop(self) -> None:
        """Write staged messages. Safe to call again."""
        if self._late is not None:
            self._late.stop()
            self._late = None
        if self._ending:
            await asyncio.wait(self._ending.values())
        await asyncio.gather(*(service.stop() for service in self._services.values()))
        self._services.clear()
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
        """The account's options or JWT may have changed: its limits, or whether it may have streams."""
        if not self.options.jetstream:
            return
        if not self.has_streams(account, accounts):
            if account.options is not None:
                self._end(account)
            return
        service = self.services.get(account.name)
        if service is not None and account.options is not None and account.options.jetstream is not None:
            service.limits = self._limits(account)
        elif service is None and account.name not in self._starting:  # it was just allowed to store
            self._start_later(account, accounts[system_account])

    def pass_on_domain(self, accounts: Iterable[Account]) -> None:
        """Let clients use the domain of streams on other brokers of the cluster."""
        domain = self.options.jetstream_domain
        if not domain:
            return
        from headwater.server.without_streams import pass_on_domain  # here: most brokers have no domain

        for account in accounts:
            if not account.is_system:
                pass_on_domain(account.router, domain)

    def note_finding(self, account: str, finding: "Finding") -> None:
        """Record damage in a store; it is logged already."""
        self._journal.note("damage_found", account=account, log=False, **finding.as_document())

    # ── inside ──

    def _check_store(self) -> None:
        from headwater.durable_files.files import OsFiles
        from headwater.jetstream_state.foreign_store import refuse_foreign_store

        directory, worker = str(self.options.store_dir), self.options.worker
        refuse_foreign_store(OsFiles(), directory)
        if self.options.is_spread or os.path.isdir(f"{directory}/{WORKERS}"):
            from headwater.jetstream_workers.folders import check_store

            check_store(OsFiles(), directory, worker.count if worker is not None and worker.spread else 1)

    def _wait_to_load(self, accounts: list[Account], system_account: Account) -> None:
        """Take requests for accounts whose stores are empty until JetStream is loaded; not if one has a stream. Raises
        EnvironmentProblem when a store cannot be used."""
        from headwater.durable_files.files import OsFiles
        from headwater.jetstream_state.store_lock import has_no_streams, take_store
        from headwater.net.lean_imports import import_msgspec

        if not all(has_no_streams(OsFiles(), self._directory(account)) for account in accounts):
            import_msgspec()
            return
        from headwater.server.late_streams import LateStreams

        self._late = LateStreams(partial(self._start_empty, system_account))
        for account in accounts:
            lock = take_store(OsFiles(), self._directory(account))
            self._late.add(account, lock, self.options.jetstream_domain)

    def _directory(self, account: Account) -> str:
        return store_directory(self.options.streams_dir, account.name)

    def _start_empty(self, system_account: Account, account: Account, lock: "File") -> "JetStream":
        service = self._make(account, system_account)
        service.start_empty(lock)
        self._serve(account, service)
        return service

    async def _start(self, account: Account, system_account: Account) -> None:
        if (ending := self._ending.get(account.name)) is not None:
            await asyncio.wait([ending])
        shares = self.shares
        share = shares.share(account, self._limits(account)) if shares is not None else None
        service = self._make(account, system_account, share)
        await service.start()
        if shares is not None and share is not None:
            try:
                shares.serve(account, share, service)
            except BaseException:
                await service.stop()
                raise
        self._serve(account, service)

    def _limits(self, account: Account) -> "AccountLimits":
        from headwater.jetstream_room.account_limits import storage_limits

        own = account.options.jetstream if account.options is not None else None
        return storage_limits(own or self.options.jetstream_limits)

    def _make(self, account: Account, system_account: Account, share: "AccountShare | None" = None) -> "JetStream":
        from headwater.jetstream.domain import Domain
        from headwater.jetstream.service import JetStream
        from headwater.jetstream_room.server_caps import ServerCaps, caps_of

        options, services, shares = self.options, self._services, self.shares
        system = None if account.is_system else system_account.router
        caps = next((each.caps for each in services.values()), None) or ServerCaps(
            caps_of(options.jetstream_limits, str(options.store_dir)),
            lambda: [one for each in services.values() for one in each.streams.values()],
            shares.elsewhere if shares is not None else lambda storage: 0,
        )
        return JetStream(
            account.router,
            self._directory(account),
            clock_ns=time.time_ns,
            ticks_ns=time.monotonic_ns,
            sync=options.sync,
            limits=self._limits(account),
            server_name=account.server_name,
            domain=Domain(options.jetstream_domain, account.name, options.scoped_acks, system),
            default_max_consumers=options.default_max_consumers,
            server_limits=options.stream_limits,
            caps=caps,
            others=share,
        )

    def _serve(self, account: Account, service: "JetStream") -> None:
        """The service can be used."""
        if service.caps is not None:
            service.caps.start()
        for finding in service.findings():
            self.note_finding(account.name, finding)
        service.report_to(partial(self.note_finding, account.name), partial(self._note_refused_write, account.name))
        self._services[account.name] = service
        for refusing in [one for one in self._refusing if one.router is account.router]:
            self._refusing.remove(refusing)
            refusing.stop()

    def _report_unserved(self, served: Container[str]) -> None:
        store = self.options.streams_dir
        if GLOBAL_ACCOUNT in served and not os.path.isdir(f"{store}/{ACCOUNT_FOLDERS}"):
            return  # as nearly always; what follows imports two modules
        from headwater.server.unserved_streams import unserved_streams

        for account, streams, folder in unserved_streams(store, served):
            self._journal.note("streams_unserved", account=account, streams=streams, folder=folder)

    def _end(self, account: Account) -> None:
        """The account may have no streams any more: they stay on disk, and its clients are refused."""
        starting = self._starting.get(account.name)
        if starting is not None:
            starting.cancel()
            self._ending[account.name] = starting
        if not self.serves(account.name):
            return
        from headwater.jetstream_documents.api_errors import api_error

        service = self.services.pop(account.name)
        stop = service.stop(api_error("not_enabled_for_account"))
        ending = self._ending[account.name] = asyncio.get_running_loop().create_task(stop)
        ending.add_done_callback(partial(self._ended, account.name))
        self._journal.note(
            "streams_unserved", account=account.name, streams=len(service.streams), folder=self._directory(account)
        )
        self._refuse(account)

    def _ended(self, name: str, ending: "asyncio.Task[None]") -> None:
        if self._ending.get(name) is ending:
            del self._ending[name]
        if not ending.cancelled() and ending.exception() is not None:
            logger.error("the streams of an account were not ended: %s", ending.exception())
        caps = next((each.caps for each in self._services.values()), None)
        if caps is not None:
            caps.start()  # all services have the same, and one that stops stops it

    def _start_later(self, account: Account, system_account: Account) -> None:
        starting = asyncio.get_running_loop().create_task(self._start(account, system_account))
        self._starting[account.name] = starting
        starting.add_done_callback(partial(self._started, account.name))

    def _started(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._starting.get(name) is task:
            del self._starting[name]
        if not task.cancelled() and task.exception() is not None:
            logger.error("the streams of a new account cannot be used: %s", task.exception())

    def _note_refused_write(self, account: str, stream: str, error: "JetStreamError") -> None:
        from headwater.jetstream_publishing.publish_answers import lacks_room  # here: a start without streams has none

        kind = "write_refused" if lacks_room(error) else "refusal_unanswered"
        self._journal.note(kind, account=account, stream=stream, error=error.err_code, reason=error.description)

    def _refuse(self, account: Account) -> None:
        """Answer JetStream requests in this account with an error: it has no streams."""
        from headwater.jetstream.domain import Domain
        from headwater.server.without_streams import NotEnabled

        imports = account.options.imports if account.options is not None else ()
        imported = [one.to or one.subject for one in imports if one.kind == "service"]
        refusing = NotEnabled(account.router, Domain(self.options.jetstream_domain, account.name), imported)
        refusing.start()
        self._refusing.append(refusing)
