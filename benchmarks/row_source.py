"""The peers of bench_spark.py: a Spark data source over nats-py that yields a tuple per message, as one would write it
today, and a sink that awaits the acknowledgement of each row.

They are fair peers: a pull consumer without acknowledgements, 1,000 messages per fetch, the same ranges and partitions as
ours, one connection per partition. nats-py keeps only the last value of a repeated header; no header repeats here.
"""

import asyncio
from collections.abc import Iterator, MutableMapping
from itertools import pairwise

import nats
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from pyspark.sql import Row as SparkRow
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

FETCH = 1000
TIMEOUT = 30.0  # seconds

SCHEMA = "stream string, subject string, seq long, timestamp timestamp, headers map<string, array<string>>, data binary"

Row = tuple[str, str, int, object, dict[str, list[str]], bytes]


class RowSource(DataSource):
    """Options: servers, stream, count (messages 1..count are read), partitions."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = dict(options)

    @classmethod
    def name(cls) -> str:
        return "nats_py_rows"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return RowReader(self._options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return RowWriter(self._options)


class RowReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        count, pieces = int(self._options["count"]), int(self._options["partitions"])
        edges = [count * piece // pieces + 1 for piece in range(pieces + 1)]
        return [InputPartition(edge) for edge in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        start, end = partition.value
        loop = asyncio.new_event_loop()
        client = Client()
        try:
            client = loop.run_until_complete(nats.connect(self._options["servers"]))
            yield from self._rows(loop, client, start, end)
        finally:
            loop.run_until_complete(client.close())
            loop.close()

    def _rows(self, loop: asyncio.AbstractEventLoop, client: Client, start: int, end: int) -> Iterator[Row]:
        stream = self._options["stream"]
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start, ack_policy=AckPolicy.NONE
        )
        pulled = loop.run_until_complete(client.jetstream().pull_subscribe("", stream=stream, config=config))
        position = start
        while position < end:
            for message in loop.run_until_complete(pulled.fetch(min(FETCH, end - position), timeout=TIMEOUT)):
                metadata = message.metadata
                position = metadata.sequence.stream + 1
                headers = {name: [value] for name, value in (message.headers or {}).items()}
                yield stream, message.subject, position - 1, metadata.timestamp, headers, message.data


class RowWriter(DataSourceWriter):
    """Publishes `data` to `subject` with `headers` and a message id, and waits for the stream's acknowledgement."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def write(self, iterator: Iterator[SparkRow]) -> WriterCommitMessage:
        asyncio.run(self._write(iterator))
        return WriterCommitMessage()

    async def _write(self, rows: Iterator[SparkRow]) -> None:
        client = await nats.connect(self._options["servers"])
        jetstream = client.jetstream()
        for row in rows:
            headers = {"Nats-Msg-Id": row["msg_id"], "ce-type": row["headers"]["ce-type"]}
            await jetstream.publish(row["subject"], row["data"], headers=headers, timeout=TIMEOUT)
        await client.close()
