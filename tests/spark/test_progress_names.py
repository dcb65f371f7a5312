"""What a query's progress calls our sources and sinks."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.nats_server import NatsServer
from support.stream_filling import fill, numbered, stored

from headwater.spark.progress_names import name_source, sink_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_sink_is_named_by_where_its_rows_go() -> None:
    assert (
        sink_name("nats", {"": "nats", "servers": "nats://h:4222", "Stream": "ORDERS", "x": "y"})
        == "nats[ORDERS@h:4222]"
    )
    assert sink_name("nats", {"servers": "h", "subject": "a.b"}) == "nats[a.b@h]"
    assert sink_name("nats", {"servers": "tls://h:1"}) == "nats[*@h:1]"
    assert sink_name("iggy", {"servers": "iggy://h:8090", "stream": "shop", "topic": "t"}) == "iggy[shop/t@h:8090]"
    assert sink_name("nats", {"window": "many"}) is None
    assert sink_name("parquet", {}) is None


@pytest.mark.parametrize("latest", ["7", "null", "None", "{}", '{"source": "x"}'])
def test_a_source_that_is_not_ours_keeps_its_name(latest: str) -> None:
    progress = {"description": "RateStream", "latestOffset": latest, "metrics": {"a": "1"}}
    name_source(progress)
    assert (progress["description"], progress["metrics"]) == ("RateStream", {"a": "1"})


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(300)
def test_the_progress_of_a_query_names_source_and_sink_and_has_the_metrics(
    spark: "SparkSession", nats_server: NatsServer, tmp_path: Path
) -> None:
    fill(nats_server.url, "NAMED", ["named.*"], numbered("named", 30))
    fill(nats_server.url, "NAMES", ["names"], [])
    rows = spark.readStream.format("nats").options(
        servers=nats_server.url, stream="NAMED", startingOffsets="earliest", maxOffsetsPerTrigger=20
    )
    sink = rows.load().selectExpr("'names' AS subject", "data").writeStream.format("nats").option("stream", "NAMES")
    sink = sink.options(servers=nats_server.url, checkpointLocation=str(tmp_path / "c")).trigger(availableNow=True)
    query = sink.start()
    query.awaitTermination()
    first = query.recentProgress[0]
    host = nats_server.url.removeprefix("nats://")
    assert first.sources[0].description == f"nats[NAMED@{host}]"
    assert first.sources[0].metrics["maxOffsetsBehindLatest"] == "10"
    assert first.sink.description == f"nats[NAMES@{host}]"
    last = query.lastProgress
    assert last is not None and last["sink"]["description"] == f"nats[NAMES@{host}]"
    assert len(stored(nats_server.url, "NAMES")) == 30
