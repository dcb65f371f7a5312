"""All that one worker of `serve --workers --spread_streams` has beside a broker with streams: made once for each process.

Shares ─┬─ Line          to the other workers
        ├─ Gate          one creation after the other, at the first worker
        ├─ Usage         memory shared by all, for limits of bytes
        └─ AccountShare  for each account with streams
"""

import asyncio

from headwater.errors import EnvironmentProblem
from headwater.exchange.account import Account
from headwater.jetstream.service import JetStream
from headwater.jetstream_documents.account import AccountLimits
from headwater.jetstream_workers.account_share import AccountShare
from headwater.jetstream_workers.claims import STORAGES, Gate
from headwater.jetstream_workers.folders import check_owner, folder_of
from headwater.jetstream_workers.line import Line
from headwater.jetstream_workers.usage import Usage
from headwater.model.short_hash import short_hash

LOOK = 1.0  # seconds between two looks at what the streams hold


class Shares:
    """`usage`: None where limits of bytes hold for each worker alone."""

    def __init__(self, line: Line, usage: Usage | None) -> None:
        self.line = line
        self._usage = usage
        self._gate = Gate(self.line)
        self._accounts: list[AccountShare] = []
        self._services: list[JetStream] = []
        self._looking: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Keep the figures of this worker in the shared memory."""
        self._look()

    def stop(self) -> None:
        """Write no more."""
        if self._looking is not None:
            self._looking.cancel()

    def share(self, account: Account, limits: AccountLimits) -> AccountShare:
        """The part of one account. Raises EnvironmentProblem for a limit that could not be kept: too many accounts."""
        usage = None
        if self._usage is not None:
            try:
                usage = self._usage.account(self.line.number, account.name)
            except OverflowError as error:
                if limits.max_memory >= 0 or limits.max_storage >= 0:
                    reason = f"the limits of account {account.name} cannot be shared by the workers: {error}"
                    raise EnvironmentProblem(reason, value=account.name) from error
        return AccountShare(self.line, short_hash(account.name), folder_of(account), self._gate, usage)

    def serve(self, account: Account, share: AccountShare, service: JetStream) -> None:
        """Answer for a service that was started. Raises EnvironmentProblem when it has a stream of another worker."""
        for name in service.streams:
            check_owner(folder_of(account), name, self.line.number, self.line.count)
        share.serve(service)
        self._accounts.append(share)
        self._services.append(service)

    def elsewhere(self, storage: str) -> int:
        """The bytes in streams of this storage at the other workers, of all accounts."""
        return self._usage.elsewhere(self.line.number, storage) if self._usage is not None else 0

    def _look(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK, self._look)
        if self._usage is None:
            return
        for share in self._accounts:
            share.refresh()
        for storage in STORAGES:
            streams = [stream for service in self._services for stream in service.streams.values()]
            held = sum(stream.weight for stream in streams if stream.config.storage == storage)
            self._usage.write(self.line.number, storage, held)
