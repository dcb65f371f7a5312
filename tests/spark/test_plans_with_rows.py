"""A planner's process reads small micro-batches itself; so does one that was forked from it."""

import sys
from pathlib import Path

import pytest
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.spark_planner import planner
from support.stream_filling import fill, numbered

from headwater.spark.rows_ahead import MOST_ROWS
from headwater.spark_runtime.planner_template import launcher_python

pytestmark = [pytest.mark.spark, pytest.mark.interop]

Server = NatsServer | HeadwaterServer


def test_the_rows_of_a_small_micro_batch_come_with_its_plan(server: Server, tmp_path: Path) -> None:
    python = launcher_python(Path(sys.executable), tmp_path)
    fill(server.url, "PLANNED", ["planned.*"], numbered("planned", 40))
    options = {"servers": server.url, "stream": "PLANNED", "startingOffsets": "earliest"}
    with planner(python, tmp_path, "1") as first, planner(python, tmp_path, "2") as second:
        assert first.make_reader(options) == 0
        assert second.make_reader(options) == 0
        for each in (first, second):
            start = each.initial_offset()
            end = each.latest_offset(start)
            partitions, rows = each.plan(start, end)
            assert partitions == 1 and rows is not None
            assert rows["seq"].to_pylist() == list(range(1, 41))
            assert each.plan(start, end)[1] == rows, "a plan made again has the same rows"
        fill(server.url, "PLANNED", ["planned.*"], numbered("planned", MOST_ROWS + 1, 40))
        assert first.plan(end, first.latest_offset(end)) == (1, None), "workers read what is not small"
