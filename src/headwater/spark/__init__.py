"""Spark over NATS: a session that starts, `format("nats")`, and the pipeline from events to tables.

The pipeline is loaded on first use, because finding a Java must also work without pyspark.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from headwater.spark.session import session as session
from headwater.spark_runtime.java import java_home as java_home

if TYPE_CHECKING:
    from headwater.spark.pipeline import bronze as bronze
    from headwater.spark.pipeline import gold as gold
    from headwater.spark.pipeline import rejects as rejects
    from headwater.spark.pipeline import silver as silver
    from headwater.spark.run import PipelineCounts as PipelineCounts
    from headwater.spark.run import Progress as Progress
    from headwater.spark.run import run_available_now as run_available_now

_HOMES = {
    "PipelineCounts": "headwater.spark.run",
    "Progress": "headwater.spark.run",
    "bronze": "headwater.spark.pipeline",
    "gold": "headwater.spark.pipeline",
    "rejects": "headwater.spark.pipeline",
    "run_available_now": "headwater.spark.run",
    "silver": "headwater.spark.pipeline",
}

__all__ = ["java_home", "session", *sorted(_HOMES)]


if not TYPE_CHECKING:  # otherwise a type checker would accept any name as one of ours

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'headwater.spark' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
