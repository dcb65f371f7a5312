"""The rows of a small micro-batch, read by the planner while the JVM writes the offsets of it.

    latestOffset ─▶ a thread reads [start, end) ──────────┐
         └─▶ JVM: offsets into the checkpoint ─▶ partitions: the range, and its rows (`spark_runtime.carried_rows`)

They are read as a worker reads them, only with little patience. Whatever fails is left to workers, which find it once more;
so is what is not small, and a plan that is made again after a restart.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import InputPartition

from headwater.spark.micro_batches import RangePartition
from headwater.spark.offsets import PlaceT
from headwater.spark.ranges import Range
from headwater.spark.read_options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

    Read = Callable[[Range[PlaceT]], Iterator[pa.RecordBatch]]

OptionsT = TypeVar("OptionsT", bound=ReadOptions)

logger = logging.getLogger(__name__)

# Up to here rows are cheaper with the plan: 1,000 take 60 ms in place of 90, 3,000 rows 105 in place of 75, because the JVM
# stores them as a block (on a busy machine; messages of 128 bytes with two headers).
MOST_ROWS = 1_000
MOST_BYTES = 1 << 20
PATIENCE = 1.0  # seconds without progress; a worker has all of `readTimeout`


class RowsAhead:
    """The rows of the plan that is expected next. Picklable, without them."""

    def __init__(self) -> None:
        self._offsets: tuple[dict[str, Any], dict[str, Any]] | None = None
        self._partition: InputPartition | None = None
        self._rows: list[pa.RecordBatch] | None = None
        # A thread that lives as long as the planner: a new one would run first, and delay the answer to the JVM.
        self._requests: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._answers: SimpleQueue[list[pa.RecordBatch] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._reading = False

    def __reduce__(self) -> "tuple[type[RowsAhead], tuple[()]]":
        return RowsAhead, ()

    def start(
        self, start: dict[str, Any], end: dict[str, Any], plan: "list[Range[PlaceT]]", read: "Read[PlaceT]"
    ) -> None:
        """Read the rows of `plan`, which is the one for these offsets, if it is one small range. `read` gives up early
        (`hasty`)."""
        self._wait()
        self._offsets = self._partition = self._rows = None
        if len(plan) == 1 and len(plan[0]) <= MOST_ROWS and len(plan[0]) * plan[0].mean <= MOST_BYTES:
            self._offsets, self._partition = (start, end), RangePartition(plan[0])
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="headwater-rows-ahead", daemon=True)
                self._thread.start()
            self._reading = True
            self._requests.put(lambda: self._answers.put(rows_of(plan[0], read)))

    def plan(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition] | None:
        """The plan for these offsets if its rows are there. They were all read just now, so nothing of it is lost."""
        self._wait()
        there = self._rows is not None and self._offsets == (start, end)
        return [self._partition] if there and self._partition is not None else None

    def rows(self, partition: InputPartition) -> "Iterator[pa.RecordBatch] | None":
        """The rows of a partition that `plan` returned; None for another."""
        self._wait()
        return iter(self._rows) if self._rows is not None and partition is self._partition else None

    def _run(self) -> None:
        while True:
            self._requests.get()()

    def _wait(self) -> None:
        if self._reading:
            self._rows = self._answers.get()
            self._reading = False


def hasty(options: OptionsT) -> OptionsT:
    """The options of a reader that leaves what takes long to a worker."""
    return replace(options, read_timeout=min(PATIENCE, options.read_timeout))


def rows_of(wanted: "Range[PlaceT]", read: "Read[PlaceT]") -> "list[pa.RecordBatch] | None":
    """All rows of a small range, or None."""
    taken, size = [], 0
    try:
        for batch in read(wanted):
            taken.append(batch)
            size += batch.nbytes
            if size > MOST_BYTES:
                return None  # messages much larger than the mean of the log
    except BaseException as error:  # noqa: BLE001 - a worker meets it again, and its task fails with it
        logger.warning("micro_batch_left_to_workers place=%s: %s", wanted.place, error)
        return None
    return taken
