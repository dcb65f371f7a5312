"""Memory shared by the processes of `serve --workers`: one line of numbers for each worker, written by it.

    parent ── makes the Board, then forks ─┬─ worker 1 ── writes line 0 every two seconds; /workersz, /historyz, /metrics
                                           └─ worker n ── writes line n-1                                  (workers.py)

A number is eight bytes, written at once; a reader may see a line half updated, but never half a number. A worker that
has ended leaves its last line; `alive` is 0 once its parent has noticed the end, or the line is SILENT_MS old.

Beside its line each worker has the number of its clients, which it writes whenever one comes or goes: the limit of
connections is one for all, and so are those of accounts (`accounts`, account_seats.py). Clients that come to different
workers at the same moment may all find the last place free, so a limit may be exceeded by the number of other workers.
"""

import mmap
import time

from headwater.monitoring.account_seats import shared_seats

SILENT_MS = 15_000

FIELDS = (
    "pid", "time_ms", "alive", "connections", "subscriptions", "in_msgs", "in_bytes", "out_msgs", "out_bytes",
    "slow_consumers", "cpu_percent", "mem",
)  # fmt: skip
GAUGES = FIELDS[2:]
STREAM_FIELDS = (
    "api_requests", "api_errors", "sync_p50_ns", "sync_p99_ns", "ack_p50_ns", "ack_p99_ns", "stored_bytes",
    "stored_messages", "refused_writes",
)  # fmt: skip
"""Behind FIELDS in a line, for /historyz alone."""
WIDTH = len(FIELDS) + len(STREAM_FIELDS)
ALIVE = FIELDS.index("alive")


class Board:
    """Lines for `count` workers, which are numbered from 1."""

    def __init__(self, count: int) -> None:
        self._memory = mmap.mmap(-1, count * (WIDTH + 1) * 8)
        self._numbers = memoryview(self._memory).cast("d")
        self._count = count
        self.accounts = shared_seats(count)

    def write(self, number: int, figures: list[float]) -> None:
        """Set the line of a worker: a number for each of FIELDS, then of STREAM_FIELDS if it has streams."""
        at = (number - 1) * WIDTH
        for place, value in enumerate(figures):
            self._numbers[at + place] = value

    def ended(self, number: int) -> None:
        """The worker has ended."""
        self._numbers[(number - 1) * WIDTH + ALIVE] = 0.0
        self.seat(number, 0)
        self.accounts.clear(number)

    def seat(self, number: int, clients: int) -> None:
        """The worker has so many clients now."""
        self._numbers[self._count * WIDTH + number - 1] = clients

    def seated_elsewhere(self, number: int) -> int:
        """The clients of all workers but this one."""
        seats = self._numbers[self._count * WIDTH :]
        return int(sum(seats) - seats[number - 1])

    def read(self, now_ms: int | None = None) -> list[dict[str, float]]:
        """A document for each worker that has written, with its number as `worker`."""
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        found: list[dict[str, float]] = []
        for number in range(1, self._count + 1):
            at = (number - 1) * WIDTH
            line = dict(zip(FIELDS, self._numbers[at : at + len(FIELDS)], strict=True))
            if not line["pid"]:
                continue
            if now - line["time_ms"] > SILENT_MS:
                line["alive"] = 0.0
            shown = {name: value if name == "cpu_percent" else int(value) for name, value in line.items()}
            found.append({"worker": number, **shown})
        return found

    def beats(self) -> dict[int, float]:
        """When each worker that runs has written its line, by its own clock."""
        lines = {number: self._line(number) for number in range(1, self._count + 1)}
        return {number: line["time_ms"] for number, line in lines.items() if line["alive"]}

    def others(self, number: int) -> list[dict[str, float]]:
        """All numbers of the other workers that have ever written, those that have ended included: what they had counted
        belongs to the sums."""
        lines = [self._line(other) for other in range(1, self._count + 1) if other != number]
        return [line for line in lines if line["pid"]]

    def _line(self, number: int) -> dict[str, float]:
        at = (number - 1) * WIDTH
        return dict(zip(FIELDS + STREAM_FIELDS, self._numbers[at : at + WIDTH], strict=True))

    def close(self) -> None:
        """Release the memory."""
        self._numbers.release()
        self._memory.close()
        self.accounts.close()
