"""Core subjects as a source: what arrives is read once, in order; what has no room is counted."""

import pickle
import time
from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.errors import AuthorizationError, ConfigError, HeadwaterError, TransportError
from headwater.spark.core_reader import CoreStreamReader, Listener, Subscriber
from headwater.spark.options import parse_options
from headwater.spark.schema import source_schema
from headwater.spark.source import JetStreamSource
from headwater.wire.memory import OutputBuffer

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer


def reader_of(server: Server, **more: str) -> CoreStreamReader:
    options = parse_options({"servers": server.url, "subjects": "core.a,core.b.>", "delivery": "at-most-once", **more})
    return CoreStreamReader(options, source_schema(options))


def publish(server: Server, count: int, start: int = 0) -> None:
    """`count` messages; they have gone out when this returns."""
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    for number in range(start, start + count):
        block, data = b"NATS/1.0\r\nn: %d\r\n\r\n" % number, b"%d" % number
        sizes = len(block), len(block) + len(data)
        client.output.append(b"HPUB core.b.%d %d %d\r\n%s%s\r\n" % (number % 3, *sizes, block, data))
    client.flush()
    client.close()


def beyond(reader: CoreStreamReader, start: dict[str, Any], count: int) -> dict[str, Any]:
    """The offset when `count` messages have come."""
    deadline = time.monotonic() + 30
    while (end := reader.latestOffset(start, ReadAllAvailable()))["core"]["next"] < start["core"]["next"] + count:
        assert time.monotonic() < deadline
    return end


def rows(reader: CoreStreamReader, parts: Any) -> list[dict[str, Any]]:
    reader, parts = pickle.loads(pickle.dumps((reader, parts)))
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist(maps_as_pydicts="strict")]


def test_what_is_heard_is_read_once_in_order_and_numbered_on(server: Server) -> None:
    reader = reader_of(server, minPartitions="2")
    start = reader.initialOffset()
    publish(server, 10)
    end = beyond(reader, start, 10)
    parts = reader.partitions(start, end)
    assert len(parts) == 2
    read = rows(reader, parts)
    assert [int(row["data"]) for row in read] == list(range(10))
    assert [row["seq"] for row in read] == list(range(1, 11))
    assert all(row["headers"] == {"n": [row["data"].decode()]} for row in read)
    assert {row["subject"] for row in read} == {"core.b.0", "core.b.1", "core.b.2"}
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    publish(server, 5, 10)
    beyond(reader, end, 5)
    some = reader.latestOffset(end, ReadMaxRows(2))
    shown = reader.reportLatestOffset() or {}
    assert shown["core"] == {"next": 16, "behind": 3, "rows": 2, "lost": 0}
    assert shown["source"].startswith("nats[core.a,core.b.>@") and shown["metrics"]["maxOffsetsBehindLatest"] == "3"
    assert [row["seq"] for row in rows(reader, reader.partitions(end, some))] == [11, 12]
    with_plan = [reader.carried(part) for part in parts]
    assert [row for batches in with_plan for batch in batches or () for row in batch["seq"].to_pylist()] == [
        *range(1, 11)
    ]
    reader.stop()


def test_the_batch_of_an_earlier_life_is_lost_and_counting_goes_on(server: Server, caplog: Any) -> None:
    reader = reader_of(server)
    start, end = {"v": 1, "core": {"next": 5}}, {"v": 1, "core": {"next": 9}}
    assert reader.partitions(start, end) == []
    assert "core_messages_lost count=4" in caplog.text
    reader.latestOffset(end, ReadAllAvailable())
    publish(server, 2)
    later = beyond(reader, end, 2)
    assert [row["seq"] for row in rows(reader, reader.partitions(end, later))] == [9, 10]
    reader.stop()


def test_what_has_no_room_is_counted(server: Server) -> None:
    reader = reader_of(server, bufferBytes="1k")
    start = reader.initialOffset()
    publish(server, 200)
    deadline = time.monotonic() + 30
    end = start
    while not reader.lost:
        end = reader.latestOffset(start, ReadAllAvailable())
        assert time.monotonic() < deadline
    assert 0 < end["core"]["next"] - 1 < 200
    reader.stop()


def test_there_is_nothing_to_read_in_a_batch(server: Server) -> None:
    options = {"servers": server.url, "subjects": "core.>", "delivery": "at-most-once"}
    source = JetStreamSource(options)
    with pytest.raises(ConfigError, match="readStream"):
        source.reader(source.schema())
    with pytest.raises(ConfigError, match="not to core subjects"):
        reader_of(server).partitions({"v": 1, "streams": {}}, {"v": 1, "streams": {}})


class Link:
    """In place of a connection: an hour of silence, then what the server says, or its end."""

    def __init__(self, clock: list[float], event: bytes | HeadwaterError, seconds: float = 3600.0) -> None:
        self.clock, self.event, self.seconds = clock, event, seconds
        self.output = OutputBuffer()

    def feed(self, parser: Any, deadline: float) -> bool:
        self.clock.append(self.seconds)
        if isinstance(self.event, HeadwaterError):
            raise self.event
        op = b"-ERR '%b'\r\n" % self.event
        return bool(parser.parse(bytearray(op), 0, len(op)))

    def ping(self) -> None: ...

    def pong(self, count: int) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only connections and pauses move."""
    moved: list[float] = []
    for module in ("headwater.spark.core_reader", "headwater.spark_runtime.persistence"):
        monkeypatch.setattr(f"{module}.time.monotonic", lambda: sum(moved))
    monkeypatch.setattr("headwater.spark_runtime.persistence.time.sleep", moved.append)
    return moved


def failure_after(monkeypatch: pytest.MonkeyPatch, links: Iterable[Link | HeadwaterError]) -> HeadwaterError:
    """What a subscriber fails with whose connections are these, one after the other."""
    left = iter(links)

    def take(*arguments: Any, **named: Any) -> Link:
        link = next(left)
        if isinstance(link, HeadwaterError):
            raise link
        return link

    monkeypatch.setattr("headwater.spark.core_reader.connections.take", take)
    options = parse_options({"subjects": "core.>", "delivery": "at-most-once"})
    subscriber = Subscriber(options, Listener(1 << 20))
    subscriber._thread.join(60)
    assert subscriber.failure is not None
    return subscriber.failure


@pytest.mark.parametrize("event", [TransportError("lost"), b"Stale Connection"])
def test_a_connection_that_is_lost_after_an_hour_is_made_again_until_rights_are_missing(
    event: bytes | HeadwaterError, clock: list[float], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    forbidden = b'Permissions Violation for Subscription to "core.>"'
    failure = failure_after(monkeypatch, [Link(clock, event), Link(clock, event), Link(clock, forbidden)])
    assert isinstance(failure, AuthorizationError)
    assert caplog.messages.count("core_source_listens_again: what was published meanwhile is lost") == 2


def test_a_login_that_is_refused_when_the_connection_is_made_again_ends_the_query(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = AuthorizationError("revoked")
    assert failure_after(monkeypatch, [Link(clock, TransportError("lost")), refused]) is refused


def test_a_server_that_refuses_each_connection_is_given_up_with_what_it_says(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    links = (Link(clock, b"maximum subscriptions exceeded", 0.0) for _ in range(1000))
    assert "maximum subscriptions exceeded" in str(failure_after(monkeypatch, links))
    assert 30 < sum(clock) < 40
