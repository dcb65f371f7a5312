"""Spark over NATS: a session that starts, `format("nats")`, and the pipeline from events to tables.

The pipeline is loaded on first use, because finding a Java must also work without pyspark.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from headwater.spark.session import session as session
from headwater.spark_runtime.java import java_home as java_home

if TYPE_CHECKING:
    from headwater.spark_tables.pipeline import bronze as bronze
    from headwater.spark_tables.pipeline import gold as gold
    from headwater.spark_tables.pipeline import rejects as rejects
    from headwater.spark_tables.pipeline import silver as silver
    from headwater.spark_tables.pipeline import with_payload as with_payload
    from headwater.spark_tables.pipeline import with_variant as with_variant
    from headwater.spark_tables.run import PipelineCounts as PipelineCounts
    from headwater.spark_tables.run import Progress as Progress
    from headwater.spark_tables.run import run_available_now as run_available_now

_HOMES = {
    "PipelineCounts": "headwater.spark_tables.run",
    "Progress": "headwater.spark_tables.run",
    "bronze": "headwater.spark_tables.pipeline",
    "gold": "headwater.spark_tables.pipeline",
    "rejects": "headwater.spark_tables.pipeline",
    "run_available_now": "headwater.spark_tables.run",
    "silver": "headwater.spark_tables.pipeline",
    "with_payload": "headwater.spark_tables.pipeline",
    "with_variant": "headwater.spark_tables.pipeline",
}

__all__ = ["java_home", "session", *sorted(_HOMES)]


if not TYPE_CHECKING:  # otherwise a type checker would accept any name as one of ours

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'headwater.spark' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
