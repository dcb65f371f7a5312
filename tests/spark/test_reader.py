"""The readers as Spark drives them, without Spark: offsets, limits, partitions, rows."""

import json
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import StructType
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.stream_filling import delete_stream, fill, numbered, purge

from headwater.client.spans import Spans
from headwater.errors import ConfigError, DataLossError
from headwater.spark import tail
from headwater.spark.options import parse_options
from headwater.spark.reader import JetStreamBatchReader, JetStreamStreamReader
from headwater.spark.schema import source_schema
from headwater.spark.source import JetStreamSource

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    fill(server.url, "READ", ["read.*"], numbered("read", 30))
    return server


def options_of(server: Server, stream: str, **more: str) -> dict[str, str]:
    return {"servers": server.url, "stream": stream, "readTimeout": "20", **more}


def batch_reader(server: Server, stream: str, **more: str) -> JetStreamBatchReader:
    options = parse_options(options_of(server, stream, **more))
    return JetStreamBatchReader(options, source_schema(options))


def stream_reader(server: Server, stream: str, **more: str) -> JetStreamStreamReader:
    options = parse_options(options_of(server, stream, **more))
    return JetStreamStreamReader(options, source_schema(options))


def sequences(reader: Any, partitions: Any) -> list[int]:
    """What the partitions hold, read by a reader and partitions that have been pickled, as Spark does it."""
    reader, partitions = pickle.loads(pickle.dumps((reader, partitions)))
    return [seq for part in partitions for batch in reader.read(part) for seq in batch.column("seq").to_pylist()]


def carried(reader: JetStreamStreamReader, partitions: Any) -> list[int] | None:
    """The rows of a plan, read where it was made; None where workers are to read them."""
    (partition,) = partitions
    batches = reader.carried(partition)
    return None if batches is None else [seq for batch in batches for seq in batch.column("seq").to_pylist()]


def next_of(offset: dict[str, Any], stream: str) -> int:
    number: int = json.loads(json.dumps(offset))["streams"][stream]["next"]
    return number


def test_a_range_is_a_span_where_the_process_makes_spans(filled: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, int]] = []

    @contextmanager
    def receiving(spans: Spans, source: str, messages: int) -> Iterator[None]:
        yield
        made.append((source, messages))

    monkeypatch.setattr(Spans, "receiving", receiving)
    reader = batch_reader(filled, "READ")
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    assert len(sequences(reader, reader.partitions())) == 30 and made == []
    import opentelemetry.trace  # noqa: F401  (as `opentelemetry-instrument` does)

    assert len(sequences(reader, reader.partitions())) == 30
    assert made == [(f"nats[READ@{filled.url.rpartition('/')[2]}]", 30)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, range(1, 31)),
        ({"startingOffsets": "11"}, range(11, 31)),
        ({"startingOffsets": "11", "endingOffsets": "21"}, range(11, 21)),
        ({"endingOffsets": "31"}, range(1, 31)),
        ({"endingOffsets": "1000", "failOnDataLoss": "false"}, range(1, 31)),
        ({"startingOffsets": "latest"}, range(0)),
        ({"startingOffsets": "31"}, range(0)),
        ({"startingOffsets": "1000", "failOnDataLoss": "false"}, range(0)),
        ({"startingOffsets": "21", "endingOffsets": "21"}, range(0)),
    ],
)
def test_a_batch_is_what_lies_between_two_positions(filled: Server, options: dict[str, str], expected: range) -> None:
    reader = batch_reader(filled, "READ", **options)
    assert sequences(reader, reader.partitions()) == list(expected)


def test_a_batch_that_begins_beyond_the_end_is_a_loss(server: Server) -> None:
    fill(server.url, "SHRUNK", ["shrunk.*"], numbered("shrunk", 9))
    delete_stream(server.url, "SHRUNK")
    fill(server.url, "SHRUNK", ["shrunk.*"], numbered("shrunk", 3))
    with pytest.raises(
        DataLossError, match=r"SHRUNK ends at sequence 3, before the beginning of the read, 10: .* made anew"
    ):
        batch_reader(server, "SHRUNK", startingOffsets="10").partitions()
    with pytest.raises(DataLossError, match="before the beginning of the read, 10, and before its end, 20: "):
        batch_reader(server, "SHRUNK", startingOffsets="10", endingOffsets="20").partitions()


def test_a_batch_that_is_to_end_beyond_the_end_is_a_loss_or_is_logged(server: Server, caplog: Any) -> None:
    fill(server.url, "SHORT", ["short.*"], numbered("short", 3))
    with pytest.raises(DataLossError, match=r"SHORT ends at sequence 3, before the end of the read, 10") as raised:
        batch_reader(server, "SHORT", endingOffsets="10").partitions()
    assert (raised.value.value, raised.value.limit) == (10, 4)
    lenient = batch_reader(server, "SHORT", endingOffsets="10", failOnDataLoss="false")
    assert sequences(lenient, lenient.partitions()) == [1, 2, 3]
    assert "data_loss_accepted: stream SHORT ends at sequence 3" in caplog.text
    fill(server.url, "NONE", ["none.*"], [])
    with pytest.raises(DataLossError, match=r"stream NONE has no message, before the end of the read, 10"):
        batch_reader(server, "NONE", endingOffsets="10").partitions()


def test_what_is_stored_while_a_batch_is_planned_is_no_loss(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time is looked up after the state, and may lie behind the end that it showed."""
    fill(server.url, "GROWS", ["grows.*"], numbered("grows", 3))
    moment = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    monkeypatch.setattr("headwater.spark.planner.StreamPlanner.sequence_at", lambda *_: 7)
    reader = batch_reader(server, "GROWS", startingTimestamp=moment)
    assert sequences(reader, reader.partitions()) == []


def test_a_time_leads_to_the_first_message_stored_since(server: Server) -> None:
    fill(server.url, "TIMES", ["times.*"], numbered("times", 5))
    between = datetime.now(UTC)
    fill(server.url, "TIMES", ["times.*"], numbered("times", 5, 5))
    later = datetime.now(UTC) + timedelta(hours=1)
    expected = {
        ("startingTimestamp", between): [6, 7, 8, 9, 10],
        ("endingTimestamp", between): [1, 2, 3, 4, 5],
        ("startingTimestamp", later): [],
        ("endingTimestamp", later): list(range(1, 11)),
    }
    for (name, moment), wanted in expected.items():
        reader = batch_reader(server, "TIMES", **{name: moment.isoformat()})
        assert sequences(reader, reader.partitions()) == wanted, (name, moment)
    stream = stream_reader(server, "TIMES", startingTimestamp=str(int(between.timestamp() * 1000) + 1))
    assert next_of(stream.initialOffset(), "TIMES") in (6, 7, 8, 9, 10, 11)  # milliseconds are coarse
    stream.stop()


def test_micro_batches_respect_a_limit_in_bytes(server: Server) -> None:
    fill(server.url, "BYTES", ["bytes.*"], [("bytes.x", None, b"x" * 1000)] * 20)
    reader = stream_reader(server, "BYTES", startingOffsets="earliest", maxBytesPerTrigger="6k")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(6 << 10)
    start = reader.initialOffset()
    end = next_of(reader.latestOffset(start, limit), "BYTES")
    assert 4 <= end - 1 <= 6
    assert next_of(reader.latestOffset(start, ReadAllAvailable()), "BYTES") == 21
    reader.stop()
    both = stream_reader(server, "BYTES", startingOffsets="earliest", maxBytesPerTrigger="6k", maxOffsetsPerTrigger="2")
    assert next_of(both.latestOffset(both.initialOffset(), both.getDefaultReadLimit()), "BYTES") == 3
    both.stop()


def test_a_batch_is_split_as_asked(filled: Server) -> None:
    reader = batch_reader(filled, "READ", minPartitions="4")
    partitions = reader.partitions()
    assert len(partitions) == 4
    assert sequences(reader, partitions) == list(range(1, 31))


def test_a_stream_starts_at_its_end_unless_told_otherwise_and_does_not_move_when_asked_twice(server: Server) -> None:
    fill(server.url, "STARTS", ["starts.*"], numbered("starts", 5))
    reader = stream_reader(server, "STARTS")
    first = reader.initialOffset()
    fill(server.url, "STARTS", ["starts.*"], numbered("starts", 5, 5))
    assert reader.initialOffset() == first
    assert next_of(first, "STARTS") == 6
    reader.stop()
    reader = stream_reader(server, "STARTS", startingOffsets="earliest")
    assert next_of(reader.initialOffset(), "STARTS") == 1
    reader.stop()


def test_micro_batches_respect_the_limit_that_the_engine_gives(filled: Server) -> None:
    reader = stream_reader(filled, "READ", startingOffsets="earliest", maxOffsetsPerTrigger="12")
    assert reader.getDefaultReadLimit() == ReadMaxRows(12)
    start = reader.initialOffset()
    taken: list[int] = []
    for expected in (13, 25, 31, 31):
        end = reader.latestOffset(start, ReadMaxRows(12))
        assert next_of(end, "READ") == expected
        partitions = reader.partitions(start, end)
        read = sequences(reader, partitions)
        assert not read or carried(reader, partitions) == read
        taken += read
        start = end
    assert taken == list(range(1, 31))
    assert next_of(reader.latestOffset(reader.initialOffset(), ReadAllAvailable()), "READ") == 31
    assert next_of(reader.reportLatestOffset() or {}, "READ") == 31
    reader.latestOffset(reader.initialOffset(), ReadMaxRows(12))
    shown = reader.reportLatestOffset() or {}
    assert shown["source"] == f"nats[READ@127.0.0.1:{filled.port}]"
    assert (shown["streams"]["READ"]["rows"], shown["metrics"]["maxOffsetsBehindLatest"]) == (12, "18")
    assert shown["streams"]["READ"]["bytes"] > 0
    reader.stop()


def test_without_a_limit_everything_is_one_batch(filled: Server) -> None:
    reader = stream_reader(filled, "READ", startingOffsets="earliest")
    assert reader.getDefaultReadLimit() == ReadAllAvailable()
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert next_of(end, "READ") == 31
    assert reader.partitions(end, end) == []
    reader.stop()


def test_available_now_ends_where_the_stream_ended_at_its_start(server: Server) -> None:
    fill(server.url, "NOW", ["now.*"], numbered("now", 5))
    reader = stream_reader(server, "NOW", startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    fill(server.url, "NOW", ["now.*"], numbered("now", 5, 5))
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(100))
    assert next_of(end, "NOW") == 6
    assert reader.latestOffset(end, ReadMaxRows(100)) == end
    reader.stop()


def test_new_messages_are_seen_by_a_reader_that_had_read_everything(server: Server) -> None:
    fill(server.url, "GROWS", ["grows.*"], numbered("grows", 5))
    reader = stream_reader(server, "GROWS", startingOffsets="earliest")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    fill(server.url, "GROWS", ["grows.*"], numbered("grows", 5, 5))
    later = reader.latestOffset(end, ReadAllAvailable())
    assert next_of(later, "GROWS") == 11
    assert sequences(reader, reader.partitions(end, later)) == list(range(6, 11))
    reader.stop()


def test_a_batch_takes_what_came_while_the_one_before_it_ran(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "FRESH_SECONDS", 0.0)
    fill(server.url, "MEANWHILE", ["meanwhile"], [("meanwhile", None, b"")] * 6)
    reader = stream_reader(server, "MEANWHILE", startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    assert len(reader.partitions(start, end)) == 1
    fill(server.url, "MEANWHILE", ["meanwhile"], [("meanwhile", None, b"")] * 5)
    later = reader.latestOffset(end, ReadAllAvailable())
    assert (next_of(end, "MEANWHILE"), next_of(later, "MEANWHILE")) == (5, 12)
    reader.stop()


def test_a_start_beyond_the_end_is_waited_for(server: Server) -> None:
    fill(server.url, "AHEAD", ["ahead.*"], numbered("ahead", 3))
    reader = stream_reader(server, "AHEAD", startingOffsets="6")
    position = reader.initialOffset()
    assert next_of(position, "AHEAD") == 6
    assert reader.latestOffset(position, ReadAllAvailable()) == position
    fill(server.url, "AHEAD", ["ahead.*"], numbered("ahead", 2, 3))  # up to 5: the position is the end now
    assert reader.latestOffset(position, ReadAllAvailable()) == position
    fill(server.url, "AHEAD", ["ahead.*"], numbered("ahead", 3, 5))
    found = []
    for _ in range(20):  # several waits may pass before the planner notices it
        later = reader.latestOffset(position, ReadAllAvailable())
        found += sequences(reader, reader.partitions(position, later))
        position = later
        if next_of(position, "AHEAD") == 9:
            break
    assert found == [6, 7, 8]
    reader.stop()


def test_an_idle_query_that_waits_beyond_the_end_asks_five_times_a_second_at_most(server: Server) -> None:
    fill(server.url, "FARAHEAD", ["farahead.*"], numbered("farahead", 3))
    reader = stream_reader(server, "FARAHEAD", startingOffsets="100")
    position = reader.initialOffset()
    reader.latestOffset(position, ReadAllAvailable())
    planner = reader._tails[0]._planner
    before = planner.requests
    for _ in range(4):  # each waits for a quarter of a second
        assert reader.latestOffset(position, ReadAllAvailable()) == position
    assert planner.requests - before <= 5
    reader.stop()


def test_a_checkpoint_beyond_the_end_is_a_loss(server: Server) -> None:
    fill(server.url, "SHORTER", ["shorter.*"], numbered("shorter", 3))
    reader = stream_reader(server, "SHORTER", startingOffsets="2")
    position = reader.initialOffset()
    position["streams"]["SHORTER"]["next"] = 50
    with pytest.raises(DataLossError, match="restored from an older state"):
        reader.latestOffset(position, ReadAllAvailable())
    reader.stop()


def test_a_batch_that_retention_has_passed_is_empty_where_losses_are_accepted(server: Server) -> None:
    fill(server.url, "PASSED", ["passed.*"], numbered("passed", 9))
    reader = stream_reader(server, "PASSED", startingOffsets="earliest", failOnDataLoss="false", minPartitions="2")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    purge(server.url, "PASSED", below=8)
    assert reader.partitions(start, end) == []
    later = reader.latestOffset(end, ReadAllAvailable())
    assert sequences(reader, reader.partitions(end, later)) == [8, 9]
    reader.stop()


def test_messages_of_a_stream_made_anew_under_a_planned_batch_are_read_once(server: Server) -> None:
    fill(server.url, "REMADE", ["remade.*"], numbered("remade", 9))
    reader = stream_reader(server, "REMADE", startingOffsets="earliest", failOnDataLoss="false", minPartitions="2")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    planned = reader.partitions(start, end)
    delete_stream(server.url, "REMADE")
    fill(server.url, "REMADE", ["remade.*"], numbered("remade", 6))
    assert sequences(reader, planned) == []
    assert reader.partitions(start, end) == []
    later = reader.latestOffset(end, ReadAllAvailable())
    assert sequences(reader, reader.partitions(end, later)) == [1, 2, 3, 4, 5, 6]
    reader.stop()


def test_rows_that_were_read_ahead_are_not_lost_with_their_messages(server: Server) -> None:
    """Without them, as after a restart, the same plan is a loss."""
    fill(server.url, "CARRIED", ["carried.*"], numbered("carried", 9))
    reader = stream_reader(server, "CARRIED", startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert carried(reader, reader.partitions(start, end)) == list(range(1, 10))
    purge(server.url, "CARRIED", 5)
    assert carried(reader, reader.partitions(start, end)) == list(range(1, 10))
    restarted = stream_reader(server, "CARRIED")
    with pytest.raises(DataLossError):
        restarted.partitions(start, end)
    for each in (reader, restarted):
        each.stop()


@pytest.mark.parametrize("option", ["endingOffsets", "endingTimestamp"])
def test_a_streaming_query_has_no_end(option: str) -> None:
    with pytest.raises(ConfigError, match="has no end"):
        JetStreamSource({"stream": "S", option: "5"}).stream_reader(StructType())


def test_several_streams_are_read_side_by_side(server: Server) -> None:
    fill(server.url, "LEFT", ["left.*"], numbered("left", 30))
    fill(server.url, "RIGHT", ["right.*"], numbered("right", 10))
    both = "LEFT,RIGHT"
    batch = batch_reader(server, both)
    assert sequences(batch, batch.partitions()) == [*range(1, 31), *range(1, 11)]
    reader = stream_reader(server, both, startingOffsets='{"LEFT": 11, "RIGHT": "earliest"}', maxOffsetsPerTrigger="15")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(15))
    assert (next_of(end, "LEFT"), next_of(end, "RIGHT")) == (21, 6)
    assert {part.range.place for part in reader.partitions(start, end)} == {"LEFT", "RIGHT"}  # type: ignore[attr-defined]
    assert sequences(reader, reader.partitions(start, end)) == [*range(11, 21), *range(1, 6)]
    last = reader.latestOffset(end, ReadAllAvailable())
    assert (next_of(last, "LEFT"), next_of(last, "RIGHT")) == (31, 11)
    fill(server.url, "RIGHT", ["right.*"], numbered("right", 1, 10))
    while (later := reader.latestOffset(last, ReadAllAvailable())) == last:  # it is looked at in turn
        pass
    assert (next_of(later, "LEFT"), next_of(later, "RIGHT")) == (31, 12)
    assert sequences(reader, reader.partitions(last, later)) == [11]
    shown = reader.reportLatestOffset() or {}
    assert (next_of(shown, "LEFT"), next_of(shown, "RIGHT")) == (31, 12)
    reader.stop()


def test_a_checkpoint_of_another_stream_is_refused(filled: Server) -> None:
    reader = stream_reader(filled, "READ")
    with pytest.raises(ConfigError, match="another stream"):
        reader.latestOffset({"v": 1, "streams": {"OTHER": {"next": 1, "created": ""}}}, ReadAllAvailable())
    reader.stop()


def test_a_stream_made_anew_is_a_loss_or_begins_again_when_told(server: Server) -> None:
    fill(server.url, "AGAIN", ["again.*"], numbered("again", 9))
    reader = stream_reader(server, "AGAIN", startingOffsets="earliest")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    reader.stop()
    delete_stream(server.url, "AGAIN")
    fill(server.url, "AGAIN", ["again.*"], numbered("again", 3))
    strict = stream_reader(server, "AGAIN")
    with pytest.raises(DataLossError, match="made anew"):
        strict.latestOffset(end, ReadAllAvailable())
    with pytest.raises(DataLossError, match="made anew"):
        strict.partitions(end, end | {"v": 1, "streams": {"AGAIN": {"next": 99, "created": ""}}})
    strict.stop()
    lenient = stream_reader(server, "AGAIN", failOnDataLoss="false")
    later = lenient.latestOffset(end, ReadAllAvailable())
    assert sequences(lenient, lenient.partitions(end, later)) == [1, 2, 3]
    lenient.stop()


def test_what_expired_before_it_was_read_is_a_loss_or_left_out_when_told(nats_server: NatsServer) -> None:
    fill(nats_server.url, "AGED", ["aged.*"], numbered("aged", 9))
    reader = stream_reader(nats_server, "AGED", startingOffsets="3")
    start = reader.initialOffset()
    reader.stop()
    purge(nats_server.url, "AGED", below=6)
    strict = stream_reader(nats_server, "AGED")
    with pytest.raises(DataLossError, match="sequences 3 to 5"):
        strict.latestOffset(start, ReadAllAvailable())
    strict.stop()
    lenient = stream_reader(nats_server, "AGED", failOnDataLoss="false")
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert sequences(lenient, lenient.partitions(start, end)) == [6, 7, 8, 9]
    lenient.stop()


def test_a_starting_sequence_that_is_gone_is_a_loss(nats_server: NatsServer) -> None:
    fill(nats_server.url, "GONE", ["gone.*"], numbered("gone", 9))
    purge(nats_server.url, "GONE", below=6)
    with pytest.raises(DataLossError):
        batch_reader(nats_server, "GONE", startingOffsets="2").partitions()
    reader = batch_reader(nats_server, "GONE", startingOffsets="2", failOnDataLoss="false")
    assert sequences(reader, reader.partitions()) == [6, 7, 8, 9]
