"""Spark's daemon of Python workers, without tracebacks of workers that are no longer needed (`spark_runtime.quiet_end`).

A session on one machine starts it as `python -m headwater.spark.daemon` (`spark.python.daemon.module`); executors elsewhere
use Spark's own, because Headwater may not be installed there.

Under `headwater pipeline run` (`headwater.cli.pipeline.deaf_children`) it is started with SIGTERM ignored, and keeps it so
for itself and its workers: they end when the JVM closes their input.
"""

import signal
from types import SimpleNamespace
from typing import Any

from pyspark import daemon

from headwater.spark_runtime.quiet_end import hush


def main() -> None:
    hush(daemon)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        daemon.signal = SimpleNamespace(**(vars(signal) | {"signal": _all_but_termination}))  # type: ignore[assignment,attr-defined]
    daemon.manager()


def _all_but_termination(number: int, handler: Any) -> None:
    """A replacement for `signal.signal` in the daemon only."""
    if number != signal.SIGTERM:
        signal.signal(number, handler)


if __name__ == "__main__":
    main()
