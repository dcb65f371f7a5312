"""Sinks of ours from any Python thread.

Spark looks for a Python data source in the session that is active in the calling thread. Each Python thread has a JVM
thread of its own, and in one that has made no DataFrame itself no session is active: a write then fails with
DATA_SOURCE_NOT_FOUND. Reading is not concerned. So a session of `headwater.spark.session` makes itself active in the thread
that writes.
"""

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql.readwriter import DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamWriter

WRITES: tuple[tuple[type, str], ...] = (
    (DataFrameWriter, "save"),
    (DataStreamWriter, "start"),
    (DataStreamWriter, "toTable"),
)


def write_from_any_thread() -> None:
    """Have pyspark's writers make their session that of the thread, in this process. Calling it again is free."""
    for kind, name in WRITES:
        method = getattr(kind, name)
        if not hasattr(method, "__wrapped__"):
            setattr(kind, name, _in_its_session(method))


def _in_its_session(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def within(writer: Any, *arguments: Any, **named: Any) -> Any:
        session = writer._spark
        session._jvm.SparkSession.setActiveSession(session._jsparkSession)
        return method(writer, *arguments, **named)

    return within
