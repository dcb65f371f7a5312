"""`format("nats")` in a real Spark, over the real nats-server and over our broker."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.stream_filling import delete_stream, fill, numbered, purge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

Server = NatsServer | HeadwaterServer


def loaded(spark: "SparkSession", server: Server, stream: str, **options: str) -> "DataFrame":
    return spark.read.format("nats").options(servers=server.url, stream=stream, **options).load()


def test_a_batch_read_has_every_message_with_its_headers(spark: "SparkSession", server: Server) -> None:
    messages = numbered("batch", 200)
    fill(server.url, "BATCH", ["batch.*"], messages)
    frame = loaded(spark, server, "BATCH", includeHeaders="both", includeTimestampNs="true", minPartitions="2")
    rows = sorted(frame.collect(), key=lambda row: int(row["seq"]))
    assert [(row["subject"], bytes(row["data"])) for row in rows] == [(s, payload) for s, _, payload in messages]
    assert [row["headers"] for row in rows] == [
        {name: [value] for name, value in (h or {}).items()} for _, h, _ in messages
    ]
    assert [row["seq"] for row in rows] == list(range(1, 201))
    assert {row["stream"] for row in rows} == {"BATCH"}
    assert all(row["header_error"] is None for row in rows)
    assert all(bytes(row["headers_raw"]).startswith(b"NATS/1.0\r\n") for row in rows)
    times = [row["timestamp"].timestamp() - row["timestamp_ns"] / 1e9 for row in rows]
    assert all(abs(difference) < 1e-5 for difference in times)


@pytest.mark.parametrize("kind", ["read", "readStream"])
def test_a_schema_with_another_type_is_refused_before_its_values_are_wrong(
    spark: "SparkSession", nats_server: NatsServer, kind: str, tmp_path: Path
) -> None:
    fill(nats_server.url, "TYPED", ["typed.*"], numbered("typed", 3))
    frame = (
        getattr(spark, kind).format("nats").schema("seq int").options(servers=nats_server.url, stream="TYPED").load()
    )
    with pytest.raises(Exception, match="the schema has the column seq as int, and it is read as bigint"):
        if kind == "read":
            frame.collect()
        else:
            query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
            query.awaitTermination(60)
    selected = spark.read.format("nats").schema("data binary, seq long")
    rows = selected.options(servers=nats_server.url, stream="TYPED").load().collect()
    assert [list(row.asDict()) for row in rows] == [["data", "seq"]] * 3
    assert [row["seq"] for row in rows] == [1, 2, 3]


def test_what_a_worker_logs_is_a_table_at_the_driver(spark: "SparkSession", nats_server: NatsServer) -> None:
    fill(nats_server.url, "LOGGED", ["logged.*"], numbered("logged", 20))
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    try:
        frame = loaded(spark, nats_server, "LOGGED", failOnDataLoss="false")
        planned = frame._jdf.queryExecution().toRdd()
        assert planned.getNumPartitions() == 1
        purge(nats_server.url, "LOGGED", 16)
        assert len(frame.collect()) == 5
        records = [row for row in spark.tvf.python_worker_logs().collect() if "LOGGED" in row["msg"]]
    finally:
        spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")
    assert {(row["level"], row["logger"]) for row in records} == {("WARNING", "headwater.spark.ranges")}
    assert all(row["msg"].startswith("data_loss_accepted: ") for row in records)


def run_available_now(spark: "SparkSession", server: Server, stream: str, directory: Path, **options: str) -> list[int]:
    """One AvailableNow query into Parquet; returns the number of rows of each of its batches."""
    reader = spark.readStream.format("nats").options(servers=server.url, stream=stream, **options)
    writer = reader.load().writeStream.format("parquet").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(directory / "cp")).start(str(directory / "out"))
    query.awaitTermination(120)
    return [progress.numInputRows for progress in query.recentProgress]


def test_a_streaming_read_goes_on_where_the_checkpoint_says(
    spark: "SparkSession", server: Server, tmp_path: Path
) -> None:
    fill(server.url, "FLOW", ["flow.*"], numbered("flow", 100))
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "60", "includeHeaders": "none"}
    assert run_available_now(spark, server, "FLOW", tmp_path, **options) == [60, 40]
    fill(server.url, "FLOW", ["flow.*"], numbered("flow", 30, 100))
    assert run_available_now(spark, server, "FLOW", tmp_path, **options) == [30]
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(int(bytes(row["data"])) for row in rows) == list(range(130))


@pytest.mark.parametrize("decode", ["none", "cloudevents"])
def test_the_jvm_makes_the_same_rows_of_a_small_micro_batch(
    spark: "SparkSession", server: Server, tmp_path: Path, decode: str
) -> None:
    """They come with the plan (`test_plans_with_rows`), and pass a block of its own kind."""
    stream = f"SMALL{decode}".upper()
    fill(server.url, stream, [f"{stream}.*"], numbered(stream, 40))
    options = {"includeHeaders": "both", "includeTimestampNs": "true", "decode": decode, "maxMessageBytes": "64"}
    reader = spark.readStream.format("nats").options(servers=server.url, stream=stream, **options)
    frame = reader.option("startingOffsets", "earliest").load()
    query = frame.writeStream.format("memory").queryName(stream).outputMode("append").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    found, expected = (
        frame.orderBy("seq").toArrow() for frame in (spark.table(stream), loaded(spark, server, stream, **options))
    )
    assert found.num_rows == 40 and found.to_pylist() == expected.to_pylist()


def test_times_are_in_parquet_as_microseconds_with_statistics_beside_older_files(
    spark: "SparkSession", nats_server: NatsServer, tmp_path: Path
) -> None:
    """Spark's own default, which a table may have been begun with, has no statistics of times."""
    import pyarrow.parquet as pq

    fill(nats_server.url, "TIMES", ["times.*"], numbered("times", 50))
    frame = loaded(spark, nats_server, "TIMES").select("seq", "timestamp")
    kinds = []
    for name, value in (("ours", None), ("INT96", "INT96")):
        place = tmp_path / name
        writer = frame.coalesce(1).write
        (writer if value is None else writer.option("spark.sql.parquet.outputTimestampType", value)).parquet(str(place))
        (path,) = place.glob("*.parquet")
        times = pq.ParquetFile(path).metadata.row_group(0).column(1)
        kinds.append((times.physical_type, times.statistics is not None and times.statistics.has_min_max))
    assert kinds == [("INT64", True), ("INT96", False)]
    both = spark.read.parquet(str(tmp_path / "ours"), str(tmp_path / "INT96"))
    assert sorted(both.toArrow().to_pylist(), key=str) == sorted(2 * frame.toArrow().to_pylist(), key=str)


def test_a_stream_made_anew_fails_the_query(spark: "SparkSession", nats_server: NatsServer, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    fill(nats_server.url, "RENEWED", ["renewed.*"], numbered("renewed", 5))
    run_available_now(spark, nats_server, "RENEWED", tmp_path, startingOffsets="earliest")
    delete_stream(nats_server.url, "RENEWED")
    fill(nats_server.url, "RENEWED", ["renewed.*"], numbered("renewed", 9))
    with pytest.raises(StreamingQueryException, match="DataLossError"):
        run_available_now(spark, nats_server, "RENEWED", tmp_path, startingOffsets="earliest")


def test_a_stream_purged_and_made_anew_under_running_queries(
    spark: "SparkSession", nats_server: NatsServer, tmp_path: Path
) -> None:
    """Purging what was read is no loss; a new stream is one, or is read from its beginning where the options say so."""
    from pyspark.errors import StreamingQueryException
    from pyspark.sql.streaming.query import StreamingQuery

    def start(fail: str) -> StreamingQuery:
        source = spark.readStream.format("nats").options(
            servers=nats_server.url, stream="UNDER", startingOffsets="earliest", failOnDataLoss=fail
        )
        writer = source.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path / fail))
        return writer.start()

    def wait_for(query: StreamingQuery, rows: int) -> None:
        deadline = time.monotonic() + 120
        while sum(progress.numInputRows for progress in query.recentProgress) < rows:
            if failure := query.exception():
                raise failure
            assert time.monotonic() < deadline
            time.sleep(0.05)

    fill(nats_server.url, "UNDER", ["under.*"], numbered("under", 5))
    strict, lenient = start("true"), start("false")
    try:
        for query in (strict, lenient):
            wait_for(query, 5)
        purge(nats_server.url, "UNDER", below=6)
        fill(nats_server.url, "UNDER", ["under.*"], numbered("under", 3, 10))
        for query in (strict, lenient):
            wait_for(query, 8)
        delete_stream(nats_server.url, "UNDER")
        fill(nats_server.url, "UNDER", ["under.*"], numbered("under", 4, 20))
        with pytest.raises(StreamingQueryException, match="made anew"):
            strict.awaitTermination(120)
        wait_for(lenient, 12)
    finally:
        strict.stop()
        lenient.stop()


def test_events_are_decoded_in_the_source(spark: "SparkSession", nats_server: NatsServer) -> None:
    event = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/x", "ce-type": "t", "ce-extra": "e%20f"}
    nameless = {name: value for name, value in event.items() if name != "ce-id"}
    fill(nats_server.url, "EVENTS", ["ev"], [("ev", event, b"{}"), ("ev", nameless, b""), ("ev", None, b"x")])
    frame = loaded(spark, nats_server, "EVENTS", decode="cloudevents").orderBy("seq")
    good, bad, worse = frame.collect()
    assert (good["ce_id"], good["ce_source"], good["ce_extensions"]) == ("1", "/x", {"extra": "e f"})
    assert good["ce_error"] is None
    assert "ce-id" in bad["ce_error"]
    assert bad["headers"]["ce-source"] == ["/x"]
    assert worse["ce_error"] is not None


def test_wrong_options_fail_when_the_frame_is_made(spark: "SparkSession") -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="did you mean servers"):
        spark.read.format("nats").options(server="nats://x", stream="S").load()
