"""Keeps the garbage collections of Spark's Python workers short.

Spark's daemon collects all garbage after each task. With pyspark, pyarrow and this package imported that traverses hundreds
of thousands of objects which live as long as the worker: 40 ms of CPU between two micro-batches (measured), while the task
itself needed 6. So, once per worker, all objects that are alive after our first task are hidden from the collector. They
are still freed with their last reference; only cycles among just these objects would stay.
"""

import gc
import os

from pyspark import TaskContext

_settled: set[int] = set()  # process ids, because a worker may be forked from one that is in this set


def settle() -> bool:
    """At the end of a worker's first task, hide all live objects from the collector; returns whether it did."""
    if os.getpid() in _settled or TaskContext.get() is None:
        return False
    _settled.add(os.getpid())
    gc.collect()
    gc.freeze()
    return True
