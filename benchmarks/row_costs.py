"""How the CPU time of a row is spent on its way from a stream into Spark: microseconds per row.

    broker        the server's process, while the range is read
    socket        this process reads the bytes from the socket and finds the messages in them
    decode        ... and puts their fields into columns
    hand-over     ... and makes record batches of the columns, by its own clock: the difference of two reads was below zero
    Spark         all processes of Spark while it reads the same range into noop, minus the three above: the pipe from the
                  Python worker, the JVM, and the cost of planning a query, spread over its rows

Decoding and Spark's share are differences.
CPU time rather than elapsed time, because it does not depend on other load. It includes the fixed cost of a query, so few
rows look expensive.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import psutil
from contestants import read_cpu_time

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.columns.range_answer import ANSWER_HEAD, decode_head
from headwater.net.blocking import deadline_after
from headwater.spark.options import SourceOptions, parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.spark.record_batches import record_batches
from headwater.spark.schema import source_schema
from headwater.spark.stored_replay import ANSWER_BYTES
from headwater.wire.message_view import MessageView
from headwater.wire.server_ops import ServerOpHandler, ServerOpParser

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class RowCosts(NamedTuple):
    """Microseconds of CPU per row."""

    broker: float
    socket: float
    decode: float
    arrow: float
    spark: float

    def __str__(self) -> str:
        parts = zip(("broker", "socket", "decode", "Arrow hand-over", "Spark"), self, strict=True)
        return ", ".join(f"{name} {value:.2f}" for name, value in parts)


class _Dropping(ServerOpHandler):
    """Counts messages and keeps the head of the last answer with stored batches; it reads nothing else."""

    def __init__(self) -> None:
        self.messages = 0
        self.head = b""

    def on_message(self, message: MessageView) -> int:
        self.messages += 1
        self.head = bytes(message.buffer[message.payload : min(message.end, message.payload + ANSWER_HEAD.size)])
        return 0


def costs(url: str, stream: str, server: int, spark_reads: Callable[[], object], *, as_stored: bool) -> RowCosts:
    """The costs of one read of the whole stream. `server`: the process id of the broker. `spark_reads` makes Spark read the
    stream. `as_stored`: it comes as stored batches; through a consumer, `decode` includes the socket's share."""
    options = parse_options({"servers": url, "stream": stream})
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    state = stream_state(client, stream)
    client.close()
    whole = Range(state.place, state.created, state.first, state.end)
    rows = len(whole)
    schema = source_schema(options)

    def decode() -> None:
        for _ in read_range(whole, options):
            pass

    socket = cpu_of(lambda: drop(url, whole), server)[0] if as_stored else 0.0
    decoded, broker = cpu_of(decode, server)
    handed_over = min(hand_over(whole, options, schema) for _ in range(2))
    before = cpu_of_children(server)
    spark_reads()
    all_of_spark = cpu_of_children(server) - before
    seconds = (broker, socket, decoded - socket, handed_over, all_of_spark - decoded - handed_over)
    return RowCosts(*(each / rows * 1e6 for each in seconds))


def hand_over(whole: Range[str], options: SourceOptions, schema: "StructType") -> float:
    """CPU seconds of this process that go into making record batches of a range's columns."""
    seconds = 0.0
    for columns in read_range(whole, options):
        before = time.process_time()
        for _ in record_batches([columns], whole.place, options, schema):
            pass
        seconds += time.process_time() - before
    return seconds


def cpu_of(work: Callable[[], None], server: int) -> tuple[float, float]:
    """CPU seconds of this process and of the server; the better of two runs, the first of which also warms caches."""
    found = []
    for _ in range(2):
        mine, theirs = time.process_time(), read_cpu_time(server)
        work()
        found.append((time.process_time() - mine, read_cpu_time(server).since(theirs).scheduled))
    return min(each[0] for each in found), min(each[1] for each in found)


def cpu_of_children(server: int) -> float:
    """CPU seconds used by Spark's processes so far: the JVM below this process, and its descendants."""
    total = 0.0
    for child in psutil.Process().children():
        if child.pid == server or "java" not in child.name():
            continue
        for process in (child, *child.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total


def drop(url: str, whole: Range[str]) -> None:
    """Read a whole range as stored batches, one answer at a time, looking only at the heads."""
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    client.expect(2 * ANSWER_BYTES)
    _, inbox = client.subscribe()
    handler = _Dropping()
    parser = ServerOpParser(handler)
    following = whole.start
    while following < whole.end:
        client.ask_range(whole.place, following, whole.end, ANSWER_BYTES, inbox)
        expected = handler.messages + 1
        while handler.messages < expected:
            if not client.feed(parser, deadline_after(30)):
                raise SystemExit("stored batches did not come")
        head = decode_head(handler.head)
        if head is None or head.next <= following:
            raise SystemExit(f"an answer that is none: {handler.head!r}")
        following = head.next
    client.close()
