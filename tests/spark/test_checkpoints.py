"""Checkpoints are written by another manager in our sessions than in Spark's; each goes on from what the other wrote."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.nats_server import NatsServer
from support.stream_filling import fill, numbered

from headwater.spark.session import LOCAL_CHECKPOINTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

(MANAGER,) = LOCAL_CHECKPOINTS


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_checkpoint_is_continued_by_the_other_manager(
    spark: "SparkSession", nats_server: NatsServer, tmp_path: Path, ours_first: bool
) -> None:
    stream = f"MANAGED{ours_first}"
    assert spark.conf.get(MANAGER) == LOCAL_CHECKPOINTS[MANAGER]
    for number, ours in enumerate((ours_first, not ours_first, ours_first)):
        fill(nats_server.url, stream, [f"{stream}.*"], numbered(stream, 5, 5 * number))
        session = spark.newSession()
        if ours:
            session.conf.set(MANAGER, LOCAL_CHECKPOINTS[MANAGER])
        else:
            session.conf.unset(MANAGER)
        used = session._jsparkSession.sessionState().newHadoopConf().get(MANAGER)
        assert used == (LOCAL_CHECKPOINTS[MANAGER] if ours else None)
        reader = session.readStream.format("nats").option("servers", nats_server.url).option("stream", stream)
        frame = reader.option("startingOffsets", "earliest").load().groupBy("subject").count()
        taken: list[int] = []

        def take(batch: "DataFrame", _: int, taken: list[int] = taken) -> None:
            taken.extend(row["count"] for row in batch.collect())

        writer = frame.writeStream.outputMode("update").foreachBatch(take)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()
        assert sum(progress.numInputRows for progress in query.recentProgress) == 5
        assert taken == [1 + number // 2] * 5, "the state is continued, too"
    for log in ("offsets", "commits"):
        names = sorted(path.name for path in (tmp_path / log).iterdir() if not path.name.startswith("."))
        assert names == ["0", "1", "2"]
    last = json.loads((tmp_path / "offsets" / "2").read_text().splitlines()[-1])
    assert last["streams"][stream]["next"] == 16
