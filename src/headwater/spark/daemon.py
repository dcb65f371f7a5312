"""Spark's daemon of Python workers, without its word on workers that nobody needs any more.

Spark forks workers from a daemon and ends one that was idle for a minute by closing its connection and then by a signal. A
worker that runs between the two fails to report the end of its input to the side that has gone. Over a Unix socket
(`headwater.spark.session` says why we use those) that failure reaches the daemon's own code, which prints a traceback
that means nothing and ends the worker, as was wished. Here it only ends. What a worker has to say of a task goes to the
JVM over its connection and is not touched.

A session on one machine starts it as `python -m headwater.spark.daemon` (`spark.python.daemon.module`); executors elsewhere
keep Spark's, for they may know nothing of us.
"""

import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon


def show_unless_the_jvm_is_gone() -> None:
    """In place of `traceback.print_exc`, for the daemon alone."""
    if not isinstance(sys.exc_info()[1], ConnectionError):
        traceback.print_exc()


def main() -> None:
    said = SimpleNamespace(print_exc=show_unless_the_jvm_is_gone, format_exc=traceback.format_exc)
    daemon.traceback = said  # type: ignore[assignment, attr-defined]
    daemon.manager()


if __name__ == "__main__":
    main()
