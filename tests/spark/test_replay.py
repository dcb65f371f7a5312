"""Another attempt at a batch, on real servers: what is stored stays, the rest is published, however late it comes."""

import time

import pyarrow as pa
import pytest
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.stream_filling import fill, stored

from headwater.errors import ConfigError
from headwater.spark.replay import Replay
from headwater.spark.row_publisher import RowPublisher
from headwater.spark.sink_options import SinkOptions, parse_sink_options
from headwater.spark.sink_rows import rows_of

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer

JOB = "query/3"


def batch(*numbers: int, **columns: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"data": pa.array([b"%d" % number for number in numbers], pa.binary()), **columns}
    )


def publish(options: SinkOptions, rows: pa.RecordBatch, job: str = JOB, partition: int = 0) -> None:
    publisher = RowPublisher(options)
    publisher.publish(rows_of(rows, options, f"{job}/{partition}/".encode(), 0))
    publisher.finish()


def forget_ids(options: SinkOptions, stream: str) -> None:
    """Wait until the stream takes an id again that it had: its duplicate window, of 100 ms, is over."""
    deadline = time.monotonic() + 20
    publisher = RowPublisher(options)
    for attempt in range(10_000):
        publisher.publish(rows_of(batch(-1), options, b"forgotten/", 0))
        if attempt and publisher.done.duplicates < attempt:
            break
        assert time.monotonic() < deadline
    publisher.finish()


def again(options: SinkOptions, rows: pa.RecordBatch, since: float, partition: int = 0, job: str = JOB) -> int:
    """Publish what is left of `rows`; how many those are."""
    publisher = RowPublisher(options)
    replay = Replay(publisher, options, job, partition, since)
    try:
        left = replay.left(rows, 0)
        if left is not None:
            publisher.publish(left)
        replay.check_end(rows.num_rows)
        return publisher.finish().rows
    finally:
        publisher.close()


def payloads(server: Server, stream: str) -> list[int]:
    return sorted(int(data) for _, _, data in stored(server.url, stream) if data != b"-1")


@pytest.mark.parametrize("named", [True, False])
def test_a_late_attempt_publishes_what_is_left_whoever_wrote_last(server: Server, named: bool) -> None:
    stream = f"AGAIN{named:d}"
    fill(server.url, stream, [f"again{named:d}"], [], duplicate_window=0.1)
    naming = {"stream": stream} if named else {}
    options = parse_sink_options({"servers": server.url, "subject": f"again{named:d}", **naming})
    since = time.time()
    publish(options, batch(0, 1, 2))
    publish(options, batch(100), job="another")
    forget_ids(options, stream)
    assert again(options, batch(0, 1, 2, 3, 4), since) == 2
    forget_ids(options, stream)
    assert again(options, batch(0, 1, 2, 3, 4), since) == 0
    assert payloads(server, stream) == [0, 1, 2, 3, 4, 100]


def test_rows_with_ids_of_their_own_may_come_in_any_order_and_number_of_partitions(nats_server: NatsServer) -> None:
    fill(nats_server.url, "OWNIDS", ["ownids"], [], duplicate_window=0.1)
    options = parse_sink_options({"servers": nats_server.url, "subject": "ownids"})
    since = time.time()
    publish(options, batch(0, 1, 2, msg_id=["a", "b", "c"]))
    forget_ids(options, "OWNIDS")
    assert again(options, batch(2, 0, 3, msg_id=["c", "a", "d"]), since, partition=1) == 1
    assert payloads(nats_server, "OWNIDS") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("rows", "partition", "words"),
    [
        (batch(0, 2, 3), 0, "another one than the first time"),
        (batch(0, 1), 0, "rows have vanished"),
        (batch(1, 2), 1, "another partition"),
    ],
)
def test_rows_that_are_not_the_same_again_stop_the_query(
    nats_server: NatsServer, rows: pa.RecordBatch, partition: int, words: str
) -> None:
    stream = f"OTHER{partition}{rows.num_rows}"
    fill(nats_server.url, stream, [stream], [], duplicate_window=0.1)
    options = parse_sink_options({"servers": nats_server.url, "subject": stream})
    since = time.time()
    publish(options, batch(0, 1, 2))
    with pytest.raises(ConfigError, match=words):
        again(options, rows, since, partition)
    assert payloads(nats_server, stream) == [0, 1, 2]


def test_what_was_stored_long_before_the_first_attempt_is_not_read(nats_server: NatsServer) -> None:
    fill(nats_server.url, "BEFORE", ["before"], [])
    options = parse_sink_options({"servers": nats_server.url, "subject": "before"})
    publish(options, batch(0))
    publisher = RowPublisher(options)
    replay = Replay(publisher, options, JOB, 0, time.time() + 3600)
    left = replay.left(batch(0), 0)
    assert left is not None
    assert left.rows == 1
    publisher.finish()
