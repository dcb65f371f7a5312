"""Ten minutes of figures, a sample every two seconds, so that a newly opened page has data.

    the listener, once a second ── look at a part of the clients ── every second time ─▶ `note` ─▶ ring ─▶ /historyz

A sample is a list of numbers in the order of FIELDS; counters are totals since the start, and the page takes the
differences. It costs some 50 us, whatever the number of clients and streams: sums over clients come from a pass that is
made anyway. Of several workers the first one keeps it, and adds to each sample what the others have written on the board.
Beside the samples, /historyz shows the present and lost brokers of the cluster (peers.py) and the figures of each worker
(workers.py). Nothing is written to disk; the history starts empty with the broker.
"""

import time
from collections import deque

from headwater.monitoring.ledger import Document, Totals
from headwater.monitoring.peers import Peers
from headwater.monitoring.stream_figures import stream_figures
from headwater.monitoring.view import View, resident_bytes

EVERY = 2.0  # seconds between two samples
KEPT = 300  # samples
SHORTEST = 10.0  # shortest time in seconds over which a rate is computed

FIELDS = (
    "time_ms", "in_msgs", "in_bytes", "out_msgs", "out_bytes", "connections", "subscriptions", "slow_consumers",
    "cpu_percent", "mem", "api_requests", "api_errors", "sync_p50_ns", "sync_p99_ns", "ack_p50_ns", "ack_p99_ns",
    "disk_free", "stored_bytes", "stored_messages", "refused_writes",
)  # fmt: skip


COUNTERS = {
    "in_msgs", "in_bytes", "out_msgs", "out_bytes", "slow_consumers", "api_requests", "api_errors", "refused_writes",
}  # fmt: skip
LARGEST = {"sync_p50_ns", "sync_p99_ns", "ack_p50_ns", "ack_p99_ns"}
"""Of several workers these are not added up, as in /varz."""


class History:
    """The ring of samples, taken from `view`."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.peers = Peers()
        self._samples: deque[list[float]] = deque(maxlen=KEPT)
        self._cpu = (time.process_time(), time.monotonic())

    def note(self, clients: Totals, now_ns: int) -> None:
        """Take a sample. `clients`: the sums over all clients, including disconnected ones."""
        view = self._view
        broker = view.broker
        if broker.cluster is not None and broker.cluster.mesh is not None:
            self.peers.note(broker.cluster.mesh, now_ns // 1_000_000)
        slow = (broker.accounts.slow_consumers if broker.accounts else 0) + (
            broker.sessions.watch.slow_consumers if broker.sessions is not None else 0
        )
        own = [
            now_ns // 1_000_000,
            clients.in_messages,
            clients.in_bytes,
            clients.out_messages,
            clients.out_bytes,
            len(broker.sessions) if broker.sessions is not None else 0,
            view.subscriptions(),
            slow,
            self._cpu_percent(),
            resident_bytes(),
            *stream_figures(view.broker.jetstreams.values()),
        ]
        sample: dict[str, float] = dict(zip(FIELDS, own, strict=True))
        self._add_others(sample)
        self._samples.append(list(sample.values()))

    def _cpu_percent(self) -> float:
        used, now = time.process_time(), time.monotonic()
        before, self._cpu = self._cpu, (used, now)
        return round(100 * (used - before[0]) / max(now - before[1], 1e-3), 1)

    def _add_others(self, sample: dict[str, float]) -> None:
        """Add what the other workers have written last. Of one that has ended only what it had counted is added."""
        if self._view.workers is None or self._view.line is None:
            return
        for line in self._view.workers.others(self._view.line.number):
            for name in sample.keys() & line.keys():
                if name in LARGEST:
                    sample[name] = max(sample[name], line[name])
                elif name in COUNTERS or (line["alive"] and name != "time_ms"):
                    sample[name] += line[name]

    def document(self, since_ms: int = 0) -> Document:
        """/historyz: the samples after `since_ms`."""
        return {
            "server_id": self._view.broker.server_id,
            "started_ms": self._view.started // 1_000_000,
            "every_seconds": EVERY,
            "fields": FIELDS,
            "samples": [sample for sample in self._samples if sample[0] > since_ms],
            "disk_seconds_left": self.seconds_until_full(),
            "peers": self.peers.document(),
            "workers": self._view.workers.read() if self._view.workers is not None else [],
        }

    def seconds_until_full(self) -> float | None:
        """Seconds until the streams' disk is full at the recorded rate; None if it is not filling."""
        at = FIELDS.index("disk_free")
        known = [sample for sample in self._samples if sample[at] >= 0]
        if not known:
            return None
        passed = (known[-1][0] - known[0][0]) / 1000
        gone = known[0][at] - known[-1][at]
        if passed < SHORTEST or gone <= 0:
            return None
        return round(known[-1][at] * passed / gone)
