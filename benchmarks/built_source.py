"""The limit of a Python data source: record batches built beforehand, passed to Spark repeatedly.

Each task reads one batch of the stream like our source, and yields it until its share of `count` rows is reached. The
remaining cost per row is Spark's: the pipe from the Python worker, and the JVM.
"""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.spark.options import parse_options
from headwater.spark.range_reader import BATCH_ROWS, stream_state
from headwater.spark.ranges import Range
from headwater.spark.reader import read_batches
from headwater.spark.schema import source_schema


class BuiltSource(DataSource):
    """Options: servers, stream, count (total rows), partitions."""

    @classmethod
    def name(cls) -> str:
        return "built_batches"

    def schema(self) -> StructType:
        return source_schema(parse_options({"stream": self.options["stream"]}))

    def reader(self, schema: StructType) -> DataSourceReader:
        return BuiltReader(dict(self.options), schema)


class BuiltReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        count, pieces = int(self._options["count"]), int(self._options["partitions"])
        return [InputPartition(count // pieces) for _ in range(pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        options = parse_options({name: self._options[name] for name in ("servers", "stream")})
        client = BlockingClient.connect(ClientOptions(servers=[self._options["servers"]]))
        state = stream_state(client, options.stream)
        client.close()
        whole = Range(state.place, state.created, state.first, state.end)
        first = replace(whole, end=min(whole.end, whole.start + BATCH_ROWS))
        table = pa.Table.from_batches(read_batches(first, options, self._schema)).combine_chunks()
        (batch,) = table.to_batches()
        left: int = partition.value
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows
