"""The data behind the pages: the broker, the record of its clients, and the clock."""

import os
import time
from typing import TYPE_CHECKING, Protocol

from headwater.monitoring.ledger import Ledger

if TYPE_CHECKING:
    from headwater.cluster.service import Cluster
    from headwater.exchange.accounts import Accounts
    from headwater.exchange.session import Session
    from headwater.exchange.sessions import Sessions
    from headwater.iggy.service import Service as IggyService
    from headwater.jetstream.service import JetStream
    from headwater.jetstream_workers.line import Line
    from headwater.leaf.service import LeafNodes
    from headwater.monitoring.board import Board
    from headwater.monitoring.history import History
    from headwater.net.journal import Journal
    from headwater.net.listener_options import MonitoringOptions
    from headwater.options.broker import BrokerOptions
    from headwater.streams.finding import Finding

PAGE_SIZE = 4096  # bytes; the unit of /proc/self/statm


class ObservedBroker(Protocol):
    """The parts of a broker that the pages show; None or empty for a part that it does not have (yet)."""

    options: "BrokerOptions"

    @property
    def server_id(self) -> str: ...

    accounts: "Accounts | None"
    sessions: "Sessions | None"
    cluster: "Cluster | None"
    leafnodes: "LeafNodes | None"
    journal: "Journal"
    host: str
    port: int
    websocket_port: int

    @property
    def system_account(self) -> str: ...

    @property
    def jetstreams(self) -> "dict[str, JetStream]":
        """The JetStream services by account."""
        ...

    @property
    def iggy_service(self) -> "IggyService | None":
        """Topics and clients of the Iggy face."""
        ...

    def findings(self) -> "list[Finding]":
        """Of stores that belong to no JetStream service."""
        ...


class ObservableBroker(ObservedBroker, Protocol):
    """A broker as seen by its own system account and by the monitoring listener."""

    view: "View | None"

    def observe(self) -> "View": ...

    def note_turned_away(self, port: int, address: str, reason: str) -> None: ...


class View:
    """One broker as monitoring sees it. Times in ns since 1970; `digest`: of the configuration."""

    def __init__(
        self,
        broker: ObservedBroker,
        ledger: Ledger,
        options: "MonitoringOptions",
        port: int,
        digest: str,
        started: int | None = None,
    ) -> None:
        self.broker = broker
        self.ledger = ledger
        self.options = options
        self.port = port
        self.digest = digest
        self.started = time.time_ns() if started is None else started
        self.requests: dict[str, int] = {}  # by path
        self.history: History | None = None  # kept by the listener
        self.workers: Board | None = None  # of `serve --workers`
        self.line: Line | None = None  # to the other workers
        self._cpu = (0.0, 0.0)  # processor and wall seconds at the last request for them

    def sessions(self) -> "list[Session]":
        """The clients that are connected now, the oldest first."""
        return self.broker.sessions.all() if self.broker.sessions is not None else []

    def subscriptions(self) -> int:
        """The subscriptions of all accounts, the broker's own among them."""
        accounts = self.broker.accounts
        return sum(account.router.sublist.count for account in accounts) if accounts is not None else 0

    def cpu_percent(self) -> float:
        """Of one processor, since the last call."""
        used, now = time.process_time(), time.monotonic()
        used_before, before = self._cpu
        self._cpu = (used, now)
        if not before or now <= before:
            return 0.0
        return round(100 * (used - used_before) / (now - before), 1)


def resident_bytes() -> int:
    """Memory of this process; 0 where it is unknown."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_SIZE
    except OSError:
        return 0


def processors() -> int:
    """The number of processors."""
    return os.cpu_count() or 1


def usable_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else processors()


def uptime(ns: int) -> str:
    """A span as nats-server shows it: `1d2h3m4s`."""
    seconds = max(0, ns) // 1_000_000_000
    years, rest = divmod(seconds, 365 * 86_400)
    days, rest = divmod(rest, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(years, "y"), (days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return "".join(f"{amount}{unit}" for amount, unit in parts)
