"""Small micro-batches: the planner reads them, and their rows travel with the plan.

A range that a Python worker reads costs a micro-batch 12 ms more than the same rows made in the JVM: the task waits for the
worker, which loads the reader and its range and gives back rows through a socket of its own. Spark has a way around it, for
its `SimpleDataSourceStreamReader` only: the planner sends rows with the partitions, which the JVM keeps as
a block until the next micro-batch. So in the planner's process Spark's function for `partitions` is called with a stand-in
for the reader, which has the rows, too, of a reader that offers them (`Carrying`).

The partition goes along. A worker reads it where the reader offers no rows, or the JVM has lost them. The protocol with the
JVM is Spark's own code; where that looks otherwise than we know it, nothing is replaced.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # the planner's main module
PARAMETERS = ("reader", "data_source", "schema", "max_arrow_batch_size", "infile", "outfile")


@runtime_checkable
class Carrying(Protocol):
    """A stream reader that may have the rows of a plan."""

    def carried(self, partition: "InputPartition") -> "Iterator[pa.RecordBatch] | None":
        """All rows of the only partition of a plan, or None if a worker is to read it. What fails is left to a worker."""


def carry_rows() -> bool:
    """Called in a planner that makes its reader. Returns whether its plans can have rows."""
    main: Any = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is None or spec.name != RUNNER:
        return False
    theirs = getattr(main, "partitions_func", None)
    if getattr(theirs, "carries_rows", False):
        return True  # it was forked from a planner of ours
    code = getattr(theirs, "__code__", None)
    if theirs is None or code is None or code.co_varnames[: code.co_argcount] != PARAMETERS:
        logger.warning("micro_batches_left_to_workers: this Spark's planner has another partitions_func")
        return False
    try:
        main.partitions_func = with_rows(theirs)
    except ImportError as error:
        logger.warning("micro_batches_left_to_workers: %s", error)
        return False
    return True


def with_rows(theirs: Callable[..., None]) -> Callable[..., None]:
    """Spark's function for `partitions`, with rows for readers that carry them. Raises ImportError for a Spark that has
    other names for what it needs."""
    from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper as Wrapper
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    class StandIn(Wrapper):
        """In place of a reader for one call of `theirs`."""

        def __init__(self, reader: Any) -> None:
            self._reader = reader
            self._made: Sequence[InputPartition] = ()

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> "Sequence[InputPartition]":
            self._made = self._reader.partitions(start, end)
            return self._made

        def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Any:
            # The JVM accepts rows for one partition only.
            return self._reader.carried(self._made[0]) if len(self._made) == 1 else None

    known: tuple[Any, bool] = (None, False)

    def is_plain(schema: "StructType") -> bool:
        """Whether the JVM, which reads the schema of rows back from Arrow, will find the declared one. A user's schema may
        have collations, which Arrow has not; the JVM accepts workers' rows for it, but not these."""
        nonlocal known
        if known[0] is not schema:  # a planner has one
            known = schema, from_arrow_schema(to_arrow_schema(schema, timezone="UTC")) == schema
        return known[1]

    def ours(reader: Any, source: Any, schema: "StructType", *rest: Any) -> None:
        carries = isinstance(reader, Carrying) and is_plain(schema)
        theirs(StandIn(reader) if carries else reader, source, schema, *rest)

    ours.carries_rows = True  # type: ignore[attr-defined]
    return ours
