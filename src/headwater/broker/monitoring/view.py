"""What the pages look at: the broker, the books, and the clock."""

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.broker.monitoring.ledger import Ledger

if TYPE_CHECKING:
    from headwater.broker.broker import Broker
    from headwater.broker.config.draft import MonitoringOptions
    from headwater.broker.session import Session

PAGE_SIZE = 4096  # bytes; the unit of /proc/self/statm on what we run on


@dataclass(slots=True)
class View:
    """One broker as monitoring sees it. Times in ns since 1970."""

    broker: "Broker"
    ledger: Ledger
    options: "MonitoringOptions"
    port: int
    digest: str
    started: int = field(default_factory=time.time_ns)
    requests: dict[str, int] = field(default_factory=dict)
    _cpu: tuple[float, float] = (0.0, 0.0)  # processor and wall seconds when it was last asked for

    def sessions(self) -> "list[Session]":
        """The clients that are connected now, the oldest first."""
        return self.broker.sessions.all() if self.broker.sessions is not None else []

    def subscriptions(self) -> int:
        """The subscriptions of all accounts, the broker's own among them."""
        accounts = self.broker.accounts
        return sum(account.router.sublist.count for account in accounts) if accounts is not None else 0

    def cpu_percent(self) -> float:
        """Of one processor, since the last time somebody asked."""
        used, now = time.process_time(), time.monotonic()
        used_before, before = self._cpu
        self._cpu = (used, now)
        if not before or now <= before:
            return 0.0
        return round(100 * (used - used_before) / (now - before), 1)


def resident_bytes() -> int:
    """Memory of this process; 0 where nobody knows."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_SIZE
    except OSError:
        return 0


def processors() -> int:
    """How many there are."""
    return os.cpu_count() or 1


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
