"""`write.format("nats")` in a real Spark: what is published is what was in the rows, once, however often it is written."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer, start_nats_server
from support.stream_filling import fill, forget_ids, numbered, stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

Server = NatsServer | HeadwaterServer


def write(frame: "DataFrame", server: Server, **options: str) -> None:
    frame.write.format("nats").mode("append").options(servers=server.url, **options).save()


def test_a_frame_becomes_messages(spark: "SparkSession", server: Server) -> None:
    fill(server.url, "FRAME", ["frame.*"], [])
    frame = spark.range(0, 300, 1, 2).selectExpr(
        "concat('frame.', id % 3) AS subject",
        "cast(id AS string) AS data",
        "map('n', array(cast(id AS string), 'x')) AS headers",
    )
    write(frame, server, stream="FRAME")
    held = stored(server.url, "FRAME")
    assert sorted(int(data) for _, _, data in held) == list(range(300))
    assert all(subject == f"frame.{int(data) % 3}" for subject, _, data in held)
    assert all(headers["n"] in (data.decode(), "x") for _, headers, data in held)
    assert len({headers["Nats-Msg-Id"] for _, headers, _ in held}) == 300


def test_any_thread_writes(spark: "SparkSession", nats_server: NatsServer, tmp_path: Path) -> None:
    fill(nats_server.url, "THREADS", ["threads"], [])
    frame = spark.range(5).selectExpr("cast(id AS string) AS data", "'threads' AS subject")
    frame.write.parquet(str(tmp_path / "rows"))

    def stream() -> None:
        source = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "rows"))
        sink = source.writeStream.format("nats").options(
            servers=nats_server.url, checkpointLocation=str(tmp_path / "c")
        )
        sink.trigger(availableNow=True).start().awaitTermination()

    for work in (stream, lambda: write(frame, nats_server)):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(work).result()
    assert sorted(int(data) for _, _, data in stored(nats_server.url, "THREADS")) == sorted([*range(5), *range(5)])


def test_rows_of_foreach_batch_need_ids_of_their_own(
    spark: "SparkSession", nats_server: NatsServer, tmp_path: Path
) -> None:
    fill(nats_server.url, "EACH", ["each"], [])
    spark.range(3).write.parquet(str(tmp_path / "rows"))

    def run(name: str, *columns: str) -> None:
        source = spark.readStream.schema("id long").parquet(str(tmp_path / "rows"))
        rows = source.selectExpr("'each' AS subject", "cast(id AS string) AS data", *columns)
        sink = rows.writeStream.foreachBatch(lambda frame, _: write(frame, nats_server))
        sink.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="would be stored twice"):
        run("without")
    run("with", "concat('row-', id) AS msg_id")
    assert len(stored(nats_server.url, "EACH")) == 3


def test_a_batch_that_runs_again_is_stored_once(spark: "SparkSession", server: Server, tmp_path: Path) -> None:
    """Source and sink together: the last micro-batch is run a second time, as after a kill before its commit. The stream has
    forgotten its ids, and another producer wrote last."""
    fill(server.url, "IN", ["in.*"], numbered("in", 250))
    fill(server.url, "OUT", ["out"], [], duplicate_window=1)
    checkpoint = tmp_path / "checkpoint"

    def run(partitions: int = 2) -> None:
        source = spark.readStream.format("nats").options(
            servers=server.url,
            stream="IN",
            startingOffsets="earliest",
            maxOffsetsPerTrigger="100",
            minPartitions=partitions,
        )
        rows = source.load().selectExpr("data", "headers")
        sink = rows.writeStream.format("nats").options(servers=server.url, subject="out", minDuplicateWindow="1")
        sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()

    def uncommit() -> None:
        commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        assert len(commits) == 3
        commits[-1].unlink()
        (checkpoint / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)

    run()
    forget_ids(server.url, "out")
    uncommit()
    run()
    assert sorted(int(data) for _, _, data in stored(server.url, "OUT") if data) == list(range(250))
    uncommit()
    with pytest.raises(Exception, match="number of partitions"):
        run(partitions=3)
    assert len([data for _, _, data in stored(server.url, "OUT") if data]) == 250


def test_events_go_round(spark: "SparkSession", nats_server: NatsServer) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "/x",
        "ce-type": "t",
        "ce-time": "2026-11-21T00:00:00Z",
    }
    headers |= {"ce-datacontenttype": "application/json", "ce-extra": "e%20f"}
    fill(nats_server.url, "ROUND", ["round"], [("round", headers, b'{"n":1}')])
    fill(nats_server.url, "THERE", ["there"], [])
    reader = spark.read.format("nats").options(servers=nats_server.url, decode="cloudevents")
    event = (
        "struct(ce_id AS id, ce_source AS source, ce_type AS type, ce_time_raw AS time, "
        "ce_datacontenttype AS datacontenttype, ce_extensions AS extensions, ce_data AS data) AS event"
    )
    write(reader.load(stream="ROUND").selectExpr(event), nats_server, subject="there", contentMode="structured")
    ((_, _, payload),) = stored(nats_server.url, "THERE")
    assert json.loads(payload)["data"] == {"n": 1}
    columns = ["ce_id", "ce_source", "ce_type", "ce_time", "ce_time_raw", "ce_extensions", "ce_data", "ce_error"]
    assert (
        reader.load(stream="THERE").select(columns).collect() == reader.load(stream="ROUND").select(columns).collect()
    )


def test_what_cannot_be_published_is_said_before_anything_is_sent(
    spark: "SparkSession", nats_server: NatsServer
) -> None:
    fill(nats_server.url, "SAID", ["said"], [], duplicate_window=1)
    frame = spark.range(1).selectExpr("'said' AS subject", "'x' AS data")
    for broken, options, reason in [
        (frame.withColumnRenamed("data", "date"), {}, "did you mean data"),
        (frame, {"stream": "SAID"}, "remembers message ids for 1 s"),
        (frame, {"topic": "x"}, "unknown option"),
    ]:
        with pytest.raises(Exception, match=reason):
            write(broken, nats_server, **options)
    with pytest.raises(Exception, match="appended to, never overwritten"):
        frame.write.format("nats").mode("overwrite").options(servers=nats_server.url).save()
    assert stored(nats_server.url, "SAID") == []


def test_a_secret_is_in_no_plan_and_in_no_checkpoint(
    spark: "SparkSession", tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "hunter2-5d1f"
    (tmp_path / "password").write_text(secret)
    with start_nats_server(tmp_path / "nats", "--user", "me", "--pass", secret) as guarded:
        reference = {"servers": guarded.url, "user": "me", "password": f"file:{tmp_path / 'password'}"}
        fill(f"nats://me:{secret}@127.0.0.1:{guarded.port}", "GUARDED", ["guarded", "copied"], numbered("guarded", 0))
        frame = spark.range(5).selectExpr("'guarded' AS subject", "'x' AS data")
        frame.write.format("nats").mode("append").options(**reference).save()
        source = spark.readStream.format("nats").options(stream="GUARDED", startingOffsets="earliest", **reference)
        rows = source.load().selectExpr("data")
        shown = io.StringIO()
        with redirect_stdout(shown):
            rows.explain(extended=True)
        checkpoint = tmp_path / "checkpoint"
        query = (
            rows.writeStream.format("nats")
            .options(subject="copied", checkpointLocation=str(checkpoint), **reference)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        shown.write(json.dumps([progress.json for progress in query.recentProgress]))
        with pytest.raises(Exception) as refused:
            spark.read.format("nats").options(stream="NONE", **reference).load().collect()
    written = [path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()]
    assert written
    assert not any(secret.encode() in text for text in written)
    captured = capfd.readouterr()
    for text in (shown.getvalue(), str(refused.value), captured.out, captured.err):
        assert secret not in text
