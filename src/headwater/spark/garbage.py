"""Keeps the garbage collections of Spark's Python workers short.

Spark's daemon collects all garbage after each task. With pyspark, pyarrow and us imported that visits some hundred
thousand objects which live as long as the worker: 40 ms of CPU between two micro-batches (measured), while the task
itself needed 6. So, once per worker, whatever is alive after our first task is taken out of the collector's sight. It
is still freed with the last reference to it; only cycles among just these objects would stay.
"""

import gc
import os

from pyspark import TaskContext

_settled: set[int] = set()  # process ids, for a worker may be forked from one that is settled


def settle() -> bool:
    """At the end of a task: the first time in a worker, and only there, leave what is alive to the collector no more."""
    if os.getpid() in _settled or TaskContext.get() is None:
        return False
    _settled.add(os.getpid())
    gc.collect()
    gc.freeze()
    return True
