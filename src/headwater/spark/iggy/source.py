"""`format("iggy")`: creates readers and writers from options."""

from collections.abc import Mapping
from functools import cached_property

from pyspark.sql.types import StructType

from headwater.spark.iggy.options import IggySourceOptions, parse_source_options
from headwater.spark.iggy.reader import IggyBatchReader, IggyStreamReader
from headwater.spark.iggy.schema import iggy_schema
from headwater.spark.iggy.sink import IggyBatchSink, IggyStreamSink, prepared


class IggySource:
    """Topics of an Iggy stream as a data source. Raises ConfigError for invalid options, before anything connects."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = dict(options)

    @cached_property
    def _options(self) -> IggySourceOptions:
        return parse_source_options(self._given)

    def schema(self) -> StructType:
        return iggy_schema(self._options)

    def reader(self, schema: StructType) -> IggyBatchReader:
        return IggyBatchReader(self._options, schema)

    def stream_reader(self, schema: StructType) -> IggyStreamReader:
        return IggyStreamReader(self._options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> IggyBatchSink:
        return IggyBatchSink(prepared(self._given, schema, overwrite))

    def stream_writer(self, schema: StructType, overwrite: bool) -> IggyStreamSink:
        return IggyStreamSink(prepared(self._given, schema, overwrite))
