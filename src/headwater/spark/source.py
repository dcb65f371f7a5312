"""`format("nats")`: options in, readers out."""

from collections.abc import Mapping

from pyspark.sql.types import StructType

from headwater.spark.options import parse_options
from headwater.spark.reader import JetStreamBatchReader, JetStreamStreamReader
from headwater.spark.schema import source_schema


class JetStreamSource:
    """A JetStream stream as Spark sees it. Raises ConfigError for wrong options, before anything connects."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = parse_options(options)

    def schema(self) -> StructType:
        return source_schema(self._options)

    def reader(self, schema: StructType) -> JetStreamBatchReader:
        return JetStreamBatchReader(self._options, schema)

    def stream_reader(self, schema: StructType) -> JetStreamStreamReader:
        return JetStreamStreamReader(self._options, schema)
