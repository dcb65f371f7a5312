"""Core subjects as a streaming source: each message is read at most once, while a query runs. `delivery=at-most-once`.

    server ─▶ thread of the planner process ─▶ buffer ─▶ input partitions, messages inside ─▶ executors: decode

Core NATS stores nothing, so no range can be read again. A message is lost when it arrives while no query runs, when the
buffer is full (`bufferBytes`; counted and logged), when the planner's process dies, or when a query restarts whose last
micro-batch was not committed. This is why the option is mandatory: only a stream avoids losses.

Offsets count messages from 1 within one life of the query, and continue from the checkpoint in the next. The messages
travel in the input partition, in the form of deliveries of a pull consumer, so one decoder reads both, and a retried task
still has them.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from headwater.client.blocking import BlockingClient
from headwater.client_connection.server_errors import server_error
from headwater.errors import AuthorizationError, ConfigError, HeadwaterError, TransportError
from headwater.net.blocking import deadline_after
from headwater.spark import connections
from headwater.spark.options import SourceOptions
from headwater.spark.progress import measured, source_name
from headwater.spark.record_batches import record_batches
from headwater.spark.rows_ahead import MOST_BYTES, MOST_ROWS
from headwater.spark_runtime.persistence import PASSING, Persistence
from headwater.spark_runtime.quiet_end import end_quietly
from headwater.wire.columns import ColumnDecoder
from headwater.wire.message_view import MessageView
from headwater.wire.receive import ReceiveBuffer
from headwater.wire.server_ops import RecordingHandler, ServerOpParser

logger = logging.getLogger(__name__)

FORMAT = "core"
WAIT_SECONDS = 0.25  # that the engine is made to wait when no message has come
HELD_SECONDS = 1.0  # after which a connection that is lost was one; others are refused
READ_SECONDS = 0.5  # after which the thread checks whether it has to stop
OVERHEAD = 64  # bytes of memory per buffered message besides its own


class Listener(RecordingHandler):
    """Buffers messages up to `limit` bytes; beyond that they are counted as `dropped` and discarded."""

    def __init__(self, limit: int) -> None:
        RecordingHandler.__init__(self)
        self.limit = limit
        self.size = 0
        self.dropped = 0
        self.waiting: deque[tuple[bytes, int, bytes, bytes]] = deque()  # subject, ns, header block, payload
        self.changed = threading.Condition()

    def on_message(self, message: MessageView) -> int:
        cost = message.end - message.subject + OVERHEAD
        with self.changed:
            if self.size + cost > self.limit:
                self.dropped += 1
                return 0
            self.size += cost
            buffer = message.buffer
            block, data = buffer[message.headers : message.payload], buffer[message.payload : message.end]
            self.waiting.append((message.subject_bytes(), time.time_ns(), bytes(block), bytes(data)))
            self.changed.notify()
        return 0

    def on_violation(self, error: Exception) -> int:
        self.errors.append(str(error))
        return 0

    def count(self) -> int:
        with self.changed:
            return len(self.waiting)

    def wait(self, seconds: float) -> None:
        """Wait until a message is buffered, for at most `seconds`."""
        with self.changed:
            self.changed.wait_for(lambda: bool(self.waiting), seconds)

    def take(self, count: int) -> list[tuple[bytes, int, bytes, bytes]]:
        """Remove and return the oldest `count` messages."""
        with self.changed:
            taken = [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
            self.size -= sum(len(name) + len(block) + len(data) + OVERHEAD for name, _, block, data in taken)
        return taken


class Subscriber:
    """A thread that keeps a subscription to the subjects open and feeds a listener. It ends when it sets `failure`."""

    def __init__(self, options: SourceOptions, listener: Listener) -> None:
        self._options = options
        self._listener = listener
        self._stop = threading.Event()
        self.failure: HeadwaterError | None = None
        self._client = self._subscribed()
        self._thread = threading.Thread(target=self._run, name="headwater-core-source", daemon=True)
        self._thread.start()

    def _subscribed(self) -> BlockingClient:
        client = connections.take(self._options.server, self._options.read_timeout, fresh=True)
        for number, subject in enumerate(self._options.subjects):
            client.output.append(b"SUB %s %d\r\n" % (subject.encode(), number + 100))
        client.ping()
        return client

    def _run(self) -> None:
        persistence = Persistence(self._options.read_timeout, "core_source_reconnects")
        connected, since = True, time.monotonic()
        while not self._stop.is_set():
            try:
                if not connected:
                    self._client = self._subscribed()
                    connected, since = True, time.monotonic()
                    logger.warning("core_source_listens_again: what was published meanwhile is lost")
                self._listen(ServerOpParser(self._listener))
            except PASSING as error:
                self._client.close()
                if connected and time.monotonic() - since > HELD_SECONDS:
                    persistence.progressed()  # patience begins with the loss
                connected = False
                try:
                    persistence.wait_after(error)
                except HeadwaterError as final:
                    self.failure = final
                    return
            except HeadwaterError as error:
                self.failure = error
                return

    def _listen(self, parser: ServerOpParser) -> None:
        listener = self._listener
        while not self._stop.is_set():
            self._client.feed(parser, deadline_after(READ_SECONDS))
            if listener.errors:
                failure = server_error(listener.errors.pop())
                # Others than permissions are about this connection: a stale one, a slow consumer, a shutdown.
                raise failure if isinstance(failure, AuthorizationError) else TransportError(str(failure))
            self._client.pong(listener.take_pings())

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2 * READ_SECONDS)
        self._client.close()


class CorePartition(InputPartition):
    """Messages, and the number of the first of them."""

    def __init__(self, start: int, end: int, ops: bytes) -> None:
        super().__init__((start, end, ops))


class CoreStreamReader(DataSourceStreamReader):
    """`spark.readStream` over core subjects. `lost` counts messages for which the buffer had no room."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._listener: Listener | None = None
        self._subscriber: Subscriber | None = None
        self._next = 1  # the number of the oldest buffered message
        self._known = False  # whether `_next` follows the checkpoint
        self._planned = 0  # rows of the batch planned last
        self.lost = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_listener": None, "_subscriber": None}

    def _listening(self) -> Listener:
        if self._listener is None or self._subscriber is None:
            self._listener = Listener(self._options.buffer_bytes)
            self._subscriber = Subscriber(self._options, self._listener)
        if self._subscriber.failure is not None:
            raise self._subscriber.failure
        if self._listener.dropped > self.lost:
            logger.warning(
                "core_messages_lost count=%d: the buffer of bufferBytes=%d is full",
                self._listener.dropped - self.lost,
                self._listener.limit,
            )
            self.lost = self._listener.dropped
        return self._listener

    def initialOffset(self) -> dict[str, Any]:
        self._listening()
        return offset(1)

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        listener = self._listening()
        begin = next_of(start)
        self._follow(begin)
        if not listener.count():
            listener.wait(WAIT_SECONDS)
        there = listener.count()
        self._planned = min(there, limit.max_rows) if isinstance(limit, ReadMaxRows) else there
        return offset(begin + self._planned)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if not self._known or self._listener is None:
            return None
        there = self._listener.count()
        behind = max(0, there - self._planned)
        document = offset(self._next + there)
        document[FORMAT] |= {"behind": behind, "rows": self._planned, "lost": self._listener.dropped}
        server = self._options.server
        return document | measured(source_name(self._options.subjects, server.servers, server.context), [behind])

    def _follow(self, begin: int) -> None:
        """Continue counting from the checkpoint, once it is known."""
        if not self._known:
            self._known = True
            self._next = begin

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        begin, stop = next_of(start), next_of(end)
        if not self._known:  # a micro-batch of an earlier planner process, whose buffer is lost
            logger.warning(
                "core_messages_lost count=%d: the query was started again before they were written", stop - begin
            )
            self._follow(stop)
            return []
        taken = self._listening().take(stop - self._next)
        self._next = stop
        if not taken:
            return []
        pieces = min(self._options.min_partitions or 1, len(taken))
        edges = [len(taken) * piece // pieces for piece in range(pieces + 1)]
        return [
            CorePartition(begin + a, begin + b, b"".join(as_delivered(taken[a:b], begin + a)))
            for a, b in pairwise(edges)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        start, end, ops = partition.value
        options = self._options
        with_raw = options.wants_raw or options.decode == "cloudevents"
        decoder = ColumnDecoder(1, start, end, with_map=options.wants_map, with_raw=with_raw)
        received = ReceiveBuffer(len(ops))
        received.writable(len(ops))[: len(ops)] = ops
        received.received(len(ops))
        ServerOpParser(decoder).parse(received.data, 0, received.filled)
        assert decoder.violation is None, decoder.violation
        yield from record_batches(iter([decoder.take()]), "", options, self._schema)

    def carried(self, partition: InputPartition) -> Iterator[pa.RecordBatch] | None:
        start, end, ops = partition.value
        return self.read(partition) if end - start <= MOST_ROWS and len(ops) <= MOST_BYTES else None

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: messages are removed from the buffer when they are planned."""

    def stop(self) -> None:
        if self._subscriber is not None:
            self._subscriber.close()
        end_quietly()


def as_delivered(messages: list[tuple[bytes, int, bytes, bytes]], start: int) -> Iterator[bytes]:
    """The messages in the form of deliveries of a pull consumer, the first with stream sequence `start`."""
    for place, (subject, moment, block, data) in enumerate(messages):
        ack = b"$JS.ACK.core.core.1.%d.%d.%d.0" % (start + place, place + 1, moment)
        if block:
            yield b"HMSG %s 1 %s %d %d\r\n%s%s\r\n" % (subject, ack, len(block), len(block) + len(data), block, data)
        else:
            yield b"MSG %s 1 %s %d\r\n%s\r\n" % (subject, ack, len(data), data)


def offset(following: int) -> dict[str, Any]:
    return {"v": 1, FORMAT: {"next": following}}


def next_of(document: dict[str, Any]) -> int:
    """The next message number in an offset. Raises ConfigError for the checkpoint of another source."""
    if not isinstance(document.get(FORMAT), dict):
        raise ConfigError(
            "the checkpoint belongs to a stream, not to core subjects",
            value=document,
            hint="use a new checkpoint location",
        )
    return int(document[FORMAT]["next"])
