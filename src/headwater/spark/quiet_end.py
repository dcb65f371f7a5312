"""No tracebacks on the terminal when Spark ends a Python process that it needs no more.

Spark ends one by closing the connection to it and then by a signal. A process that runs between the two tries to report
the end of its input as a failure to the side that has just gone, and over a Unix socket (`headwater.spark.session` says why
we use those) that second failure ends it with a traceback of thirty lines which means nothing. There are three kinds:

    the planner of a streaming query     `end_quietly` in `stop` of its reader sets the hook for uncaught exceptions
    planning workers (find, make, plan)  forked from Spark's daemon; importing our data source calls `leave_quietly`
    workers                              forked from ours (`headwater.spark.daemon`) in a session on one machine

All other failures are shown. Errors of a process's work go over its connection, which this does not touch.
"""

import sys
import traceback
from types import SimpleNamespace, TracebackType
from typing import Any

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # the planner's main module
DAEMON = "pyspark.daemon"


def main_module() -> str:
    """Name of the module that this process was started with (`python -m`), if there is one."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return "" if spec is None else str(spec.name)


def end_quietly() -> bool:
    """In `stop` of a stream reader: from here on the JVM reads no more. True in a planner process, where it matters."""
    if main_module() != RUNNER:
        return False
    sys.excepthook = _show_unless_nobody_listens
    return True


def leave_quietly() -> bool:
    """In a worker: its daemon's code is to print no traceback of a lost connection. True in a worker of Spark's daemon."""
    if main_module() != DAEMON:
        return False
    hush(sys.modules["__main__"])
    return True


def hush(daemon: Any) -> None:
    """Let the module `daemon`, which is Spark's, print tracebacks by us."""
    daemon.traceback = SimpleNamespace(print_exc=show_unless_the_jvm_is_gone, format_exc=traceback.format_exc)


def show_unless_the_jvm_is_gone() -> None:
    """In place of `traceback.print_exc`, for a daemon alone."""
    if not isinstance(sys.exc_info()[1], ConnectionError):
        traceback.print_exc()


def _show_unless_nobody_listens(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, ConnectionError):
        sys.__excepthook__(kind, error, trace)
