"""The history of a pipeline run by batch: rows, seconds, and unread messages in the source. Pure; time is passed in.

a step of the run ─▶ RunHistory.show ─▶ a Batch once its last table is written
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from headwater.spark_tables.run import Progress

LAST_TABLE = "rejects"  # of each batch
MOST_BATCHES = 2_000  # so that a run of months keeps only the most recent ones


class Batch(NamedTuple):
    """A micro-batch. `at`: seconds since the run began. `seconds`: its duration. `behind`: unread messages in the source
    after it, None when unknown. `rules`: rejected rows by the rule they break."""

    number: int
    at: float
    seconds: float
    bronze: int
    silver: int
    rejects: int
    behind: int | None
    rules: dict[str, int]

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.bronze / self.seconds if self.seconds > 0 else 0.0


class RunHistory:
    """Collects batches. `behind(through)`: unread messages in the source once this run has read `through` messages.
    `rules(number)`: the rejects of a batch by rule; called only when it has some. `clock`: seconds. `took`: the duration of
    the last batch in seconds; without it, the time since the previous batch."""

    def __init__(
        self,
        clock: Callable[[], float],
        behind: Callable[[int], int | None],
        rules: Callable[[int], dict[str, int]] = lambda number: {},
        took: Callable[[], float] | None = None,
    ) -> None:
        self.batches: list[Batch] = []
        self._clock = clock
        self._behind = behind
        self._rules = rules
        self._took = took
        self._began = self._last = clock()
        self._rows: dict[str, int] = {}
        self._through = 0

    def begin(self) -> None:
        """Start the clock of the run, so that its first batch excludes earlier work such as the start of Spark."""
        self._began = self._last = self._clock()

    def show(self, step: "Progress") -> Batch | None:
        """Record a step; returns the batch if this step completes it."""
        if step.batch_id < 0:
            return None
        self._rows[step.table] = step.rows
        if step.table != LAST_TABLE:
            return None
        now = self._clock()
        rows, self._rows = self._rows, {}
        self._through += rows.get("bronze", 0)
        rejects = rows.get("rejects", 0)
        batch = Batch(
            step.batch_id,
            now - self._began,
            now - self._last if self._took is None else self._took(),
            rows.get("bronze", 0),
            rows.get("silver", 0),
            rejects,
            self._behind(self._through),
            self._rules(step.batch_id) if rejects else {},
        )
        self._last = now
        self.batches.append(batch)
        del self.batches[:-MOST_BATCHES]
        return batch


def batch_line(batch: Batch) -> str:
    """One batch as a line of text."""
    rules = ", ".join(f"{rule} {count}" for rule, count in sorted(batch.rules.items(), key=lambda each: -each[1]))
    rejects = f"rejects {batch.rejects}" + (f" ({rules})" if rules else "")
    behind = "" if batch.behind is None else f"; {batch.behind} behind"
    counted = f"bronze {batch.bronze}, silver {batch.silver}, {rejects}"
    return f"batch {batch.number}: {counted}; {batch.seconds:.1f} s, {batch.rate:,.0f} messages/s{behind}"
