"""Let any Python thread write to our sinks.

Spark looks for a Python data source in the active session of the calling thread. Each Python thread has its own JVM thread,
and one that has not created a DataFrame has no active session, so that a write fails with DATA_SOURCE_NOT_FOUND. Reading is
not affected. Therefore a session made by `headwater.spark.session` becomes active in each thread that writes.
"""

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql.readwriter import DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamWriter

MARK = "_activates_its_session"
WRITES: tuple[tuple[type, str], ...] = (
    (DataFrameWriter, "save"),
    (DataStreamWriter, "start"),
    (DataStreamWriter, "toTable"),
)


def write_from_any_thread() -> None:
    """Make pyspark's writers activate their session in the calling thread, in this process. Repeated calls have no
    effect."""
    for kind, name in WRITES:
        method = getattr(kind, name)
        if not hasattr(method, MARK):  # `__wrapped__` says nothing: `headwater.spark.progress_names` wraps some, too
            setattr(kind, name, _in_its_session(method))


def _in_its_session(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def within(writer: Any, *arguments: Any, **named: Any) -> Any:
        session = writer._spark
        session._jvm.SparkSession.setActiveSession(session._jsparkSession)
        return method(writer, *arguments, **named)

    setattr(within, MARK, True)
    return within
