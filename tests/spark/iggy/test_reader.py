"""The readers of `format("iggy")` as Spark drives them, without Spark: offsets, limits, partitions, rows, losses."""

import json
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import StructType
from support.iggy_topics import IggyServer, start_iggy

from headwater.errors import ConfigError, DataLossError
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Identifier
from headwater.model.typed_headers import TypedHeaders
from headwater.spark.iggy.options import parse_source_options
from headwater.spark.iggy.reader import IggyBatchReader, IggyStreamReader
from headwater.spark.iggy.schema import iggy_schema
from headwater.spark.iggy.source import IggySource


@pytest.fixture(scope="module")
def iggy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IggyServer]:
    with start_iggy(tmp_path_factory.mktemp("iggy")) as running:
        running.fill("s", "read", [numbered(20), numbered(10)])
        yield running


def numbered(count: int, start: int = 0) -> list[Message]:
    return [Message(b"%d" % number, TypedHeaders({"n": number})) for number in range(start, start + count)]


def batch_reader(iggy: IggyServer, topic: str, **more: str) -> IggyBatchReader:
    options = parse_source_options({"servers": iggy.url, "stream": "s", "topic": topic, "readTimeout": "20", **more})
    return IggyBatchReader(options, iggy_schema(options))


def stream_reader(iggy: IggyServer, topic: str, **more: str) -> IggyStreamReader:
    options = parse_source_options({"servers": iggy.url, "stream": "s", "topic": topic, "readTimeout": "20", **more})
    return IggyStreamReader(options, iggy_schema(options))


def rows(reader: Any, partitions: Any) -> list[tuple[str, int, int]]:
    """What the partitions hold, read by a reader and partitions that have been pickled, as Spark does it."""
    reader, partitions = pickle.loads(pickle.dumps((reader, partitions)))
    return [
        tuple(row.values())
        for part in partitions
        for batch in reader.read(part)
        for row in batch.select(["topic", "partition", "offset"]).to_pylist()
    ]


def every(topic: str, *partitions: range) -> list[tuple[str, int, int]]:
    return [(topic, number, offset) for number, offsets in enumerate(partitions) for offset in offsets]


def nexts(offset: dict[str, Any], topic: str) -> list[int]:
    return [entry["next"] for entry in json.loads(json.dumps(offset))["topics"][topic].values()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [range(20), range(10)]),
        ({"startingOffsets": "5"}, [range(5, 20), range(5, 10)]),
        ({"startingOffsets": '{"read": {"0": 15, "1": "latest"}}'}, [range(15, 20), range(0)]),
        ({"endingOffsets": '{"read": {"0": 3}}', "fetchBatch": "2"}, [range(3), range(10)]),
        ({"startingOffsets": "latest"}, [range(0), range(0)]),
        ({"startingOffsets": "1000", "failOnDataLoss": "false"}, [range(0), range(0)]),
        ({"endingOffsets": "15", "failOnDataLoss": "false"}, [range(15), range(10)]),
        ({"fetchBatch": "3"}, [range(20), range(10)]),
        ({"minPartitions": "6"}, [range(20), range(10)]),
    ],
)
def test_a_batch_is_what_lies_between_two_positions(
    iggy: IggyServer, options: dict[str, str], expected: list[range]
) -> None:
    reader = batch_reader(iggy, "read", **options)
    assert rows(reader, reader.partitions()) == every("read", *expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": "11"}, "partition read/1 ends at offset 9, before the beginning of the read, 11: "),
        (
            {"endingOffsets": '{"read": {"0": 21}}'},
            "partition read/0 ends at offset 19, before the end of the read, 21: ",
        ),
    ],
)
def test_a_batch_beyond_the_end_of_a_partition_is_a_loss(
    iggy: IggyServer, options: dict[str, str], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DataLossError, match=message):
        batch_reader(iggy, "read", **options).partitions()
    batch_reader(iggy, "read", failOnDataLoss="false", **options).partitions()
    assert f"data_loss_accepted: {message}" in caplog.text


def test_a_batch_that_goes_on_in_a_purged_topic_is_a_loss(iggy: IggyServer) -> None:
    iggy.fill("s", "emptied", [numbered(9)])
    iggy.execute(c.PurgeTopic(Identifier("s"), Identifier("emptied")))
    with pytest.raises(DataLossError, match="partition emptied/0 has no message, before the beginning of the read, 9"):
        batch_reader(iggy, "emptied", startingOffsets="9").partitions()


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_a_position_in_a_partition_that_does_not_exist_is_refused(iggy: IggyServer, option: str) -> None:
    with pytest.raises(ConfigError, match=f"option {option} names partition 7 of topic read") as raised:
        batch_reader(iggy, "read", **{option: '{"read": {"7": 3}}'}).partitions()
    assert raised.value.limit == [0, 1]
    if option == "startingOffsets":
        with pytest.raises(ConfigError, match="names partition 7"):
            stream_reader(iggy, "read", **{option: '{"read": {"7": 3}}'}).initialOffset()


def test_there_are_at_least_as_many_input_partitions_as_wanted(iggy: IggyServer) -> None:
    assert len(batch_reader(iggy, "read").partitions()) == 2
    assert len(batch_reader(iggy, "read", minPartitions="6").partitions()) == 6


def test_a_time_leads_to_the_first_message_stored_since(iggy: IggyServer) -> None:
    iggy.fill("s", "times", [numbered(5)])
    between = datetime.now(UTC)
    iggy.fill("s", "times", [numbered(5, 5)])
    later = datetime.now(UTC) + timedelta(hours=1)
    for name, moment, expected in [
        ("startingTimestamp", between, range(5, 10)),
        ("endingTimestamp", between, range(5)),
        ("startingTimestamp", later, range(0)),
        ("endingTimestamp", later, range(10)),
    ]:
        reader = batch_reader(iggy, "times", **{name: moment.isoformat()})
        assert rows(reader, reader.partitions()) == every("times", expected), (name, moment)


def test_micro_batches_follow_limits_and_new_messages(iggy: IggyServer) -> None:
    iggy.fill("s", "grows", [numbered(20), numbered(10)])
    reader = stream_reader(iggy, "grows", startingOffsets="earliest", maxOffsetsPerTrigger="12")
    assert reader.getDefaultReadLimit() == ReadMaxRows(12)
    start = reader.initialOffset()
    assert start == reader.initialOffset()
    taken: list[tuple[str, int, int]] = []
    for total in (12, 24, 30, 30):
        end = reader.latestOffset(start, ReadMaxRows(12))
        assert sum(nexts(end, "grows")) == total
        taken += rows(reader, reader.partitions(start, end))
        start = end
    assert sorted(taken) == every("grows", range(20), range(10))
    assert reader.partitions(start, start) == []
    iggy.fill("s", "grows", [[], numbered(3)])
    end = reader.latestOffset(start, ReadAllAvailable())
    assert nexts(end, "grows") == [20, 13]
    partitions = reader.partitions(start, end)
    assert rows(reader, partitions) == [("grows", 1, offset) for offset in (10, 11, 12)]
    with_plan = reader.carried(*partitions)
    assert with_plan is not None
    assert [offset for batch in with_plan for offset in batch.column("offset").to_pylist()] == [10, 11, 12]
    shown = reader.reportLatestOffset() or {}
    assert nexts(shown, "grows") == nexts(end, "grows")
    assert shown["source"].startswith("iggy[s/grows@127.0.0.1:")
    assert shown["topics"]["grows"]["1"]["rows"] == 3 and shown["topics"]["grows"]["1"]["behind"] == 0
    reader.stop()


def test_a_limit_in_bytes_is_kept_by_the_mean_size(iggy: IggyServer) -> None:
    iggy.fill("s", "bytes", [[Message(b"x" * 1000)] * 20])
    reader = stream_reader(iggy, "bytes", startingOffsets="earliest", maxBytesPerTrigger="6k")
    end = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(6 << 10))
    assert 4 <= nexts(end, "bytes")[0] <= 6
    shown = reader.reportLatestOffset() or {}
    taken = nexts(end, "bytes")[0]
    assert shown["topics"]["bytes"]["0"]["rows"] == taken
    assert shown["metrics"]["maxOffsetsBehindLatest"] == str(20 - taken)


def test_available_now_ends_where_the_topic_ended_when_it_began(iggy: IggyServer) -> None:
    iggy.fill("s", "now", [numbered(5)])
    reader = stream_reader(iggy, "now", startingOffsets="earliest")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    iggy.fill("s", "now", [numbered(5)])
    end = reader.latestOffset(start, ReadAllAvailable())
    assert nexts(end, "now") == [5]
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_partition_that_is_added_is_read_from_its_beginning(iggy: IggyServer) -> None:
    iggy.fill("s", "wider", [numbered(2)])
    reader = stream_reader(iggy, "wider")
    start = reader.initialOffset()
    iggy.execute(c.CreatePartitions(Identifier("s"), Identifier("wider"), 1))
    iggy.fill("s", "wider", [[], numbered(3)])
    end = reader.latestOffset(start, ReadAllAvailable())
    assert rows(reader, reader.partitions(start, end)) == [("wider", 1, offset) for offset in range(3)]


def test_a_partition_that_is_deleted_is_a_loss_or_is_told_once(
    iggy: IggyServer, caplog: pytest.LogCaptureFixture
) -> None:
    iggy.fill("s", "narrower", [numbered(2), numbered(3)])
    reader = stream_reader(iggy, "narrower", startingOffsets="earliest")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    iggy.execute(c.DeletePartitions(Identifier("s"), Identifier("narrower"), 1))
    with pytest.raises(DataLossError, match="partition narrower/1 is gone"):
        stream_reader(iggy, "narrower").latestOffset(end, ReadAllAvailable())
    lenient = stream_reader(iggy, "narrower", failOnDataLoss="false")
    for _ in range(3):
        assert lenient.latestOffset(end, ReadAllAvailable()) == end
    assert [line.partition(" (")[0] for line in caplog.messages] == ["data_loss_accepted: partition narrower/1 is gone"]


def test_a_start_beyond_the_end_is_waited_for(iggy: IggyServer) -> None:
    iggy.fill("s", "ahead", [numbered(3)])
    reader = stream_reader(iggy, "ahead", startingOffsets="5")
    position = reader.initialOffset()
    assert nexts(position, "ahead") == [5]
    assert reader.latestOffset(position, ReadAllAvailable()) == position
    iggy.fill("s", "ahead", [numbered(4, 3)])
    found = []
    for _ in range(20):  # the planner notices it after a wait or two
        later = reader.latestOffset(position, ReadAllAvailable())
        found += rows(reader, reader.partitions(position, later))
        position = later
        if nexts(position, "ahead") == [7]:
            break
    assert found == [("ahead", 0, 5), ("ahead", 0, 6)]
    with pytest.raises(DataLossError, match="restored from an older state"):
        stream_reader(iggy, "ahead", startingOffsets="earliest").latestOffset(
            {**position, "topics": {"ahead": {"0": {**position["topics"]["ahead"]["0"], "next": 50}}}},
            ReadAllAvailable(),
        )
    reader.stop()


def test_an_idle_query_asks_four_times_a_second_at_most(iggy: IggyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("headwater.spark.iggy.planner.time.sleep", pauses.append)
    iggy.fill("s", "other", [numbered(1)])
    reader = stream_reader(iggy, "read,other")
    start = reader.initialOffset()
    before = reader.requests
    for _ in range(10):
        assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert (reader.requests - before) / sum(pauses) <= 5


@pytest.mark.parametrize("what", ["purged", "made anew", "deleted"])
def test_what_is_gone_is_a_loss_or_left_out_when_told(iggy: IggyServer, what: str) -> None:
    topic = what.replace(" ", "")
    iggy.fill("s", topic, [numbered(9)])
    reader = stream_reader(iggy, topic, startingOffsets="earliest")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    where = Identifier("s"), Identifier(topic)
    iggy.execute(c.PurgeTopic(*where) if what == "purged" else c.DeleteTopic(*where))
    if what == "deleted":
        with pytest.raises(ConfigError, match="no topic"):
            stream_reader(iggy, topic).latestOffset(end, ReadAllAvailable())
        return
    iggy.fill("s", topic, [numbered(3)])
    with pytest.raises(DataLossError, match=what):
        stream_reader(iggy, topic).latestOffset(end, ReadAllAvailable())
    lenient = stream_reader(iggy, topic, failOnDataLoss="false")
    later = lenient.latestOffset(end, ReadAllAvailable())
    assert rows(lenient, lenient.partitions(end, later)) == every(topic, range(3))


def test_a_batch_of_a_topic_made_anew_is_empty_and_its_messages_are_read_once(iggy: IggyServer) -> None:
    iggy.fill("s", "remade", [numbered(9)])
    reader = stream_reader(iggy, "remade", startingOffsets="earliest", failOnDataLoss="false", minPartitions="2")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    planned = reader.partitions(start, end)
    iggy.execute(c.DeleteTopic(Identifier("s"), Identifier("remade")))
    iggy.fill("s", "remade", [numbered(6)])
    assert rows(reader, planned) == []
    assert reader.partitions(start, end) == []
    again = stream_reader(iggy, "remade", failOnDataLoss="false")
    later = again.latestOffset(end, ReadAllAvailable())
    assert rows(again, again.partitions(end, later)) == every("remade", range(6))


@pytest.mark.parametrize("option", ["endingOffsets", "endingTimestamp"])
def test_a_streaming_query_has_no_end(option: str) -> None:
    with pytest.raises(ConfigError, match="has no end"):
        IggySource({"stream": "s", "topic": "t", option: "5"}).stream_reader(StructType())


def test_headers_and_large_payloads_as_asked(iggy: IggyServer) -> None:
    iggy.fill("s", "shown", [[Message(b"x", TypedHeaders({"n": 7})), Message(b"y" * 100)]])
    for headers in ("map", "typed", "both", "none"):
        reader = batch_reader(iggy, "shown", includeHeaders=headers, maxMessageBytes="10", decode="cloudevents")
        (part,) = reader.partitions()
        (batch,) = reader.read(part)
        first, second = batch.to_pylist(maps_as_pydicts="strict")
        assert (first["data"], second["data"]) == (b"x", None)
        assert second["data_error"] == "the payload has 100 bytes, more than maxMessageBytes=10"
        assert first["ce_error"] is not None
        if headers in ("map", "both"):
            assert first["headers"] == {"n": ["7"]}
        if headers == "typed":
            assert first["headers_typed"] == {"n": {"kind": "int64", "value": "7", "raw": b"\7" + bytes(7)}}
            assert second["headers_typed"] == {}
        if headers == "both":
            assert second["headers_raw"] is None


def test_a_checkpoint_of_other_topics_is_refused(iggy: IggyServer) -> None:
    with pytest.raises(ConfigError, match="other topics"):
        stream_reader(iggy, "read").latestOffset({"v": 1, "topics": {"x": {}}}, ReadAllAvailable())
