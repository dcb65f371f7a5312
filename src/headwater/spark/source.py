"""`format("nats")`: options in, readers and writers out."""

import time
from collections.abc import Mapping
from functools import cached_property

from pyspark.sql.types import StructType

from headwater.errors import ConfigError
from headwater.spark.attempts import recorded
from headwater.spark.core_reader import CoreStreamReader
from headwater.spark.options import SourceOptions, parse_options
from headwater.spark.pushdown import chosen_reader
from headwater.spark.reader import JetStreamBatchReader, JetStreamStreamReader
from headwater.spark.schema import source_schema
from headwater.spark.sink import BatchSink, StreamSink, prepared


class JetStreamSource:
    """A JetStream stream as Spark sees it. Raises ConfigError for wrong options, before anything connects.

    Spark makes one of these for reading and for writing alike, and the two have different options: which they are is
    known when the first question comes.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = dict(options)

    @cached_property
    def _options(self) -> SourceOptions:
        return parse_options(self._given)

    def schema(self) -> StructType:
        return source_schema(self._options)

    def reader(self, schema: StructType) -> JetStreamBatchReader:
        if not self._options.streams:
            raise ConfigError("core subjects hold nothing to be read: use readStream, or name a stream")
        return chosen_reader(self._options)(self._options, schema)

    def stream_reader(self, schema: StructType) -> JetStreamStreamReader | CoreStreamReader:
        if not self._options.streams:
            return CoreStreamReader(self._options, schema)
        return JetStreamStreamReader(self._options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        return BatchSink(prepared(self._given, schema, overwrite))

    def stream_writer(self, schema: StructType, overwrite: bool) -> StreamSink:
        options = prepared(self._given, schema, overwrite)
        return StreamSink(options, recorded(self._given, options.exactly_once, time.time()))
