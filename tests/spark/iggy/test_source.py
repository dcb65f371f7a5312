"""`format("iggy")` in a real Spark: written, read back, streamed, and started again."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.iggy_topics import IggyServer, start_iggy
from support.nats_server import NatsServer
from support.stream_filling import fill

from headwater.iggy_wire.commands import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

EVENT = (
    "named_struct('id', cast(id AS string), 'source', '/s', 'type', 't', 'datacontenttype', 'text/plain', "
    "'extensions', map('n', cast(id AS string)), 'data', concat('d', id)) AS event"
)


@pytest.fixture(scope="module")
def iggy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IggyServer]:
    with start_iggy(tmp_path_factory.mktemp("iggy")) as running:
        yield running


def test_events_written_are_events_read(spark: "SparkSession", iggy: IggyServer, tmp_path: Path) -> None:
    iggy.fill("s", "events", [[], []])
    common = {"servers": iggy.url, "stream": "s", "topic": "events"}
    for start, mode in ((0, "binary"), (100, "structured")):
        frame = spark.range(start, start + 100, 1, 2).selectExpr(EVENT, "cast(id AS string) AS key")
        frame.write.format("iggy").mode("append").options(contentMode=mode, **common).save()
    rows = spark.read.format("iggy").options(decode="cloudevents", **common).load().collect()
    assert sorted(int(row["ce_id"]) for row in rows) == list(range(200))
    assert {row["partition"] for row in rows} == {0, 1}
    for row in rows:
        assert (row["ce_error"], row["ce_extensions"]) == (None, {"n": row["ce_id"]})
        assert bytes(row["ce_data"]) == f"d{row['ce_id']}".encode()

    stored, checkpoint = tmp_path / "stored", tmp_path / "checkpoint"
    for expected in (200, 250):  # twice: the second query goes on where the first one ended
        source = spark.readStream.format("iggy").options(startingOffsets="earliest", **common)
        query = (
            source.load()
            .writeStream.format("parquet")
            .options(path=str(stored), checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        held = spark.read.parquet(str(stored))
        assert (held.count(), held.select("partition", "offset").distinct().count()) == (expected, expected)
        more = spark.range(1000, 1050).selectExpr("1 AS partition", "'x' AS data", "map('k', 'v') AS headers")
        more.write.format("iggy").mode("append").options(**common).save()


def test_a_topic_and_a_stream_join_in_one_query(
    spark: "SparkSession", iggy: IggyServer, nats_server: NatsServer, tmp_path: Path
) -> None:
    iggy.fill("s", "paid", [[Message(b"%d" % number) for number in range(5)]])
    fill(nats_server.url, "ORDERED", ["ordered"], [("ordered", None, b"%d" % number) for number in range(3, 9)])
    ordered = spark.readStream.format("nats").options(servers=nats_server.url, stream="ORDERED")
    paid = spark.read.format("iggy").options(servers=iggy.url, stream="s", topic="paid").load()
    orders = ordered.option("startingOffsets", "earliest").load().selectExpr("data", "seq")
    both = orders.join(paid.selectExpr("data", "offset"), "data")
    sink = both.writeStream.format("parquet").option("path", str(tmp_path / "both"))
    sink.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "both")).collect()
    assert sorted((bytes(row["data"]), row["seq"], row["offset"]) for row in rows) == [(b"3", 1, 3), (b"4", 2, 4)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "option stream is missing"),
        ({"stream": "s", "topic": "t", "pasword": "env:X"}, "did you mean password"),
        ({"stream": "s", "topic": "t", "password": "secret"}, "where the secret is"),
        ({"stream": "s", "topic": "t", "startingOffsets": '{"t": 3}'}, "of which partitions"),
    ],
)
def test_wrong_options_are_said(spark: "SparkSession", options: dict[str, str], reason: str) -> None:
    with pytest.raises(Exception, match=reason):
        spark.read.format("iggy").options(**({"topic": "t"} | options)).load()
