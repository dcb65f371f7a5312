"""No traceback on the terminal when a query ends while its planner process is busy.

Spark ends a streaming query by closing the connection to the planner. Spark's runner there tries to report the end of its
input as a failure to the side that has just gone, and over a Unix socket (`headwater.spark.session` says why we use those)
that second failure ends the process with a traceback of thirty lines which means nothing. All other failures are shown.
"""

import sys
from types import TracebackType

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # the planner's main module


def end_quietly() -> bool:
    """In `stop` of a stream reader: from here on nobody listens. True where it mattered: in a planner process."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or spec.name != RUNNER:
        return False
    sys.excepthook = _show_unless_nobody_listens
    return True


def _show_unless_nobody_listens(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, BrokenPipeError):
        sys.__excepthook__(kind, error, trace)
