"""`df.write.format("iggy")` and `writeStream.format("iggy")`: send record batches as batches of messages.

    column        type                                  meaning
    topic         string                                the destination; the option `topic` if null or missing
    partition     int                                   the partition
    key           string or binary                      rows with the same key go to one partition, as in Iggy's clients
    data          binary or string                      the payload
    headers       map<string, string> (or of arrays)    strings, converted by the table of header mapping
    id            string, hexadecimal                   the message id; without one the server assigns it
    event         struct                                a CloudEvent, in place of `data` and `headers`

Rows without partition and key go to the partitions in turn, beginning with the task's own number. Delivery is at least
once: a send whose answer is lost is repeated. Iggy's acknowledgement does not mark a duplicate; a topic that drops known
ids (`message_deduplication`) stores each row with an id once.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headwater.cloudevents import to_structured
from headwater.cloudevents.typed_mapping import event_to_typed
from headwater.errors import ConfigError, HeaderError
from headwater.iggy_client.blocking import BlockingIggy
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import position_of_key
from headwater.model.header_mapping import MARKER, nats_to_typed
from headwater.model.headers import Headers
from headwater.model.typed_header import HeaderKey, HeaderKind, HeaderValue
from headwater.model.typed_headers import TypedHeaders
from headwater.spark.iggy.links import persistently
from headwater.spark.iggy.options import IggySinkOptions, parse_sink_options
from headwater.spark.sink import SPARKS_OWN
from headwater.spark.sink_rows import event_of
from headwater.spark_runtime.garbage import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)

COLUMNS = {
    "topic": ("string",),
    "partition": ("int", "bigint"),
    "key": ("string", "binary"),
    "data": ("binary", "string"),
    "headers": ("map<string,string>", "map<string,array<string>>"),
    "id": ("string",),
    "event": (),
}
BATCH_BYTES = 8 << 20  # of payloads in one send
PLAIN_NAME = re.compile(r"[!-9;-~]{1,255}").fullmatch
PLAIN_VALUE = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?").fullmatch


def prepared(given: Mapping[str, str], schema: "StructType", overwrite: bool) -> IggySinkOptions:
    """The options, checked against the columns. Raises ConfigError."""
    options = parse_sink_options({name: value for name, value in given.items() if name.lower() not in SPARKS_OWN})
    if overwrite:
        raise ConfigError("a topic is appended to, never overwritten", hint='.mode("append")')
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, kind in kinds.items():
        if name not in COLUMNS:
            raise ConfigError(f"column {name!r} is none of {', '.join(COLUMNS)}", value=name)
        if COLUMNS[name] and kind not in COLUMNS[name]:
            raise ConfigError(f"column {name} is {kind}, not {' or '.join(COLUMNS[name])}", value=kind)
    if "topic" not in kinds and not options.topic:
        raise ConfigError("there is neither a column nor an option topic", hint='.option("topic", "orders")')
    if ("event" in kinds) == ("data" in kinds) or ("event" in kinds and "headers" in kinds):
        raise ConfigError("there must be either a column event, or a column data and perhaps headers")
    return options


class Sent(WriterCommitMessage):
    """The result of one task."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


class TaskWriter:
    """Groups the rows of one task by topic and partition, and sends a group when it is large enough."""

    def __init__(self, options: IggySinkOptions, task: int) -> None:
        self._options = options
        self._partitions: dict[str, int] = {}
        self._groups: dict[tuple[str, int], list[Message]] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._turn = task
        self.rows = 0

    def add(self, batch: "pa.RecordBatch") -> None:
        for number, row in enumerate(rows_of(batch)):
            try:
                message = message_of(row, self._options)
            except (HeaderError, ValueError) as error:
                raise ConfigError(f"row {number} of the batch: {error}", value=number) from error
            topic = row.get("topic") or self._options.topic
            place = topic, self._place(topic, row)
            self._groups.setdefault(place, []).append(message)
            self._sizes[place] = self._sizes.get(place, 0) + len(message.payload)
            if len(self._groups[place]) >= self._options.batch_rows or self._sizes[place] >= BATCH_BYTES:
                self._send(place)

    def finish(self) -> int:
        """Send all remaining groups; returns the number of rows."""
        for place in list(self._groups):
            self._send(place)
        return self.rows

    def _place(self, topic: str, row: dict[str, Any]) -> int:
        if row.get("partition") is not None:
            return int(row["partition"])
        count = self._partitions.get(topic)
        if count is None:
            count = self._partitions[topic] = self._ask(topic, lambda client: self._count(client, topic))
        key = row.get("key")
        if key is not None:
            return position_of_key(key.encode() if isinstance(key, str) else key, count)
        return self._turn % count

    def _count(self, client: BlockingIggy, topic: str) -> int:
        view = client.topic(self._options.stream, topic)
        if view is None or not view.partitions:
            raise ConfigError(f"there is no topic {topic} in the stream {self._options.stream}", value=topic)
        return view.partitions

    def _send(self, place: tuple[str, int]) -> None:
        topic, partition = place
        messages = self._groups.pop(place)
        self._sizes.pop(place)
        self._ask(topic, lambda client: client.send(self._options.stream, topic, partition, messages))
        self.rows += len(messages)
        self._turn += 1

    def _ask(self, topic: str, ask: Any) -> Any:
        return persistently(self._options.server, self._options.write_timeout, f"topic={topic}", ask)


def message_of(row: dict[str, Any], options: IggySinkOptions) -> Message:
    """Convert one row to a message. Raises HeaderError, CloudEventError, ValueError."""
    event = row.get("event")
    if event is not None:
        made = event_of(event)
        if options.content_mode == "structured":
            message = to_structured(made)
            typed = nats_to_typed(Headers({"content-type": "application/cloudevents+json"}))[0]
            return Message(message.data, typed, id=message_id(row))
        typed, payload, losses = event_to_typed(made)
        if losses:
            raise HeaderError(f"attribute {losses[0].name}: {losses[0].reason}", key=losses[0].name, rule="length")
        return Message(payload, typed, id=message_id(row))
    data = row.get("data") or b""
    return Message(data.encode() if isinstance(data, str) else data, headers_of(row.get("headers")), id=message_id(row))


def rows_of(batch: "pa.RecordBatch") -> list[dict[str, Any]]:
    """The rows, with maps as dicts. Conversion is by column, because pyarrow's conversion by row makes a scalar of each
    map."""
    columns: list[list[Any]] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "headers":
            columns.append([None if pairs is None else dict(pairs) for pairs in column.to_pylist()])
        else:
            columns.append(column.to_pylist(maps_as_pydicts="lossy"))
    return [dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def headers_of(given: dict[str, Any] | None) -> TypedHeaders | None:
    """Typed headers from a row's map. Raises HeaderError for a value that Iggy cannot hold."""
    return (plain_headers(given) or mapped_headers(given)) if given else None


def plain_headers(given: dict[str, Any]) -> TypedHeaders | None:
    """A fast path of `mapped_headers` for names with one short value of printable ASCII each; None for anything else."""
    made = TypedHeaders()
    for name, values in given.items():
        value = values[0] if isinstance(values, list) and len(values) == 1 else values
        if not isinstance(value, str) or name == MARKER or not (PLAIN_NAME(name) and PLAIN_VALUE(value)):
            return None
        made[key_of(name)] = HeaderValue(HeaderKind.STRING, value.encode())
    return made


@lru_cache(1024)
def key_of(name: str) -> HeaderKey:
    """Cached, because rows repeat the same names."""
    return HeaderKey(name)


def mapped_headers(given: dict[str, Any]) -> TypedHeaders:
    """Convert headers by the table of docs/header-mapping.md. Raises HeaderError."""
    headers = Headers()
    for name, values in given.items():
        for value in values if isinstance(values, list) else [values]:
            headers.append(name, value or "")
    typed, losses = nats_to_typed(headers)
    if losses:
        raise HeaderError(f"header {losses[0].name}: {losses[0].reason}", key=losses[0].name, rule="length")
    return typed


def message_id(row: dict[str, Any]) -> int:
    """The u128 in the column `id`: hexadecimal digits, with or without the dashes of a UUID; 0 without an id."""
    text = (row.get("id") or "").replace("-", "")
    return int(text, 16) if text else 0


def write_partition(batches: "Iterator[pa.RecordBatch]", options: IggySinkOptions) -> Sent:
    from pyspark import TaskContext

    context = TaskContext.get()
    writer = TaskWriter(options, context.partitionId() if context is not None else 0)
    for batch in batches:
        writer.add(batch)
    sent = Sent(writer.finish())
    settle()
    return sent


class IggyBatchSink(DataSourceArrowWriter):
    """`df.write`."""

    def __init__(self, options: IggySinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        return write_partition(iterator, self._options)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _report("rows_sent", messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _report("rows_sent_by_a_failed_job", messages)


class IggyStreamSink(DataSourceStreamArrowWriter):
    """`df.writeStream`."""

    def __init__(self, options: IggySinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        return write_partition(iterator, self._options)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _report(f"batch_sent batch={batchId}", messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _report(f"batch_failed batch={batchId}", messages)


def _report(event: str, messages: list[WriterCommitMessage | None]) -> None:
    logger.info("%s rows=%d", event, sum(message.rows for message in messages if isinstance(message, Sent)))
