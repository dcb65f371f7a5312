"""Suppress tracebacks on the terminal when Spark ends a Python process that it no longer needs.

Spark first closes the connection to the process, then sends it a signal. A process that runs between the two tries to
report the end of its input as a failure to the closed connection, and over a Unix socket (`headwater.spark.session`
explains why we use those) this second failure ends it with a meaningless traceback of thirty lines. There are three kinds
of processes:

    the planner of a streaming query     `end_quietly` in `stop` of its reader sets the hook for uncaught exceptions
    planning workers                     forked from Spark's daemon; importing our data source calls `leave_quietly`
    workers                              forked from ours (`headwater.spark.daemon`) in a session on one machine

All other failures are shown. Errors in a process's work are sent over its connection, which this module does not affect.
"""

import sys
import traceback
from types import SimpleNamespace, TracebackType
from typing import Any

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # the planner's main module
DAEMON = "pyspark.daemon"


def main_module() -> str:
    """The name of the module that this process was started with (`python -m`), or ""."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return "" if spec is None else str(spec.name)


def end_quietly() -> bool:
    """Called in `stop` of a stream reader, after which the JVM reads no more. Returns True in a planner process."""
    if main_module() != RUNNER:
        return False
    sys.excepthook = _show_unless_output_is_closed
    return True


def leave_quietly() -> bool:
    """Make the daemon that forked this worker print no traceback of a lost connection. Returns True in a worker of Spark's
    daemon."""
    if main_module() != DAEMON:
        return False
    hush(sys.modules["__main__"])
    return True


def hush(daemon: Any) -> None:
    """Make `daemon`, a module of Spark's, print tracebacks through this module."""
    daemon.traceback = SimpleNamespace(print_exc=show_unless_the_jvm_is_gone, format_exc=traceback.format_exc)


def show_unless_the_jvm_is_gone() -> None:
    """A replacement for `traceback.print_exc` in a daemon."""
    if not isinstance(sys.exc_info()[1], ConnectionError):
        traceback.print_exc()


def _show_unless_output_is_closed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, ConnectionError):
        sys.__excepthook__(kind, error, trace)
