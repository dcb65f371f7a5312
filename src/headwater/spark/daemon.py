"""Spark's daemon of Python workers, without tracebacks of workers that are no longer needed (`headwater.spark.quiet_end`).

A session on one machine starts it as `python -m headwater.spark.daemon` (`spark.python.daemon.module`); executors elsewhere
keep Spark's, for they may know nothing of us.
"""

from pyspark import daemon

from headwater.spark.quiet_end import hush


def main() -> None:
    hush(daemon)
    daemon.manager()


if __name__ == "__main__":
    main()
