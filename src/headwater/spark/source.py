"""`format("nats")`: creates readers and writers from options.

A sink does not import the modules of readers, nor a reader those of sinks: Spark starts a Python process for each streaming
query, and imports are a good part of the cost of a small one.
"""

import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from headwater.errors import ConfigError
from headwater.spark.options import SourceOptions, parse_options
from headwater.spark.schema import source_schema

if TYPE_CHECKING:
    from headwater.spark.core_reader import CoreStreamReader
    from headwater.spark.reader import JetStreamBatchReader, JetStreamStreamReader
    from headwater.spark.sink import BatchSink, StreamSink


class JetStreamSource:
    """A JetStream stream as a data source. Raises ConfigError for invalid options, before anything connects.

    Spark makes one of these both for reading and for writing, which have different options; the first method called
    determines how the options are parsed.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = dict(options)

    @cached_property
    def _options(self) -> SourceOptions:
        return parse_options(self._given)

    def schema(self) -> StructType:
        return source_schema(self._options)

    def reader(self, schema: StructType) -> "JetStreamBatchReader":
        from headwater.spark.pushdown import chosen_reader

        if not self._options.streams:
            raise ConfigError("core subjects hold nothing to be read: use readStream, or name a stream")
        return chosen_reader(self._options)(self._options, schema)

    def stream_reader(self, schema: StructType) -> "JetStreamStreamReader | CoreStreamReader":
        if not self._options.streams:
            from headwater.spark.core_reader import CoreStreamReader

            return CoreStreamReader(self._options, schema)
        from headwater.spark.reader import JetStreamStreamReader

        return JetStreamStreamReader(self._options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> "BatchSink":
        from headwater.spark.sink import BatchSink, prepared
        from headwater.spark.sink_options import has_ids

        return BatchSink(prepared(self._given, schema, overwrite), has_ids(schema))

    def stream_writer(self, schema: StructType, overwrite: bool) -> "StreamSink":
        from headwater.spark.attempts import recorded
        from headwater.spark.sink import StreamSink, prepared

        options = prepared(self._given, schema, overwrite)
        return StreamSink(options, recorded(self._given, options.exactly_once, time.time()))
