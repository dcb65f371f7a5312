"""A pipeline that runs until it gets the signal to stop: what came meanwhile is in the tables, whole batches only."""

import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.nats_server import NatsServer
from support.stream_filling import Message, fill

from headwater.cli import pipeline as command
from headwater.cli.main import main
from headwater.cli.run_history import RunHistory
from headwater.spark.continuous import ContinuousPipeline, backlog
from headwater.spark.pipeline_config import PipelineConfig
from headwater.spark_tables.run import PipelineCounts, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

STATED = {"ce-specversion": "1.0", "ce-source": "/x", "ce-type": "t"}


def events(count: int, start: int = 0) -> list[Message]:
    return [("goes", STATED | {"ce-id": str(number)}, b"") for number in range(start, start + count)]


def test_it_takes_what_comes_and_stops_when_told(
    spark: "SparkSession", nats_server: NatsServer, tmp_path: Path
) -> None:
    fill(nats_server.url, "GOES", ["goes"], events(20))
    source = {"servers": nats_server.url, "stream": "GOES", "maxOffsetsPerTrigger": "10"}
    config = PipelineConfig(source=source, directory=tmp_path, interval=0.0)
    steps: list[Progress] = []
    third, fourth = threading.Event(), threading.Event()
    took: list[float] = []
    slept = 0.0

    def report(step: Progress) -> None:
        nonlocal slept
        steps.append(step)
        if step.table == "bronze":
            slept += 1000.0  # by the clock below, writing bronze took so long
        if step.table == "rejects":
            took.append(pipeline.batch_seconds)
        if (step.table, step.batch_id) == ("bronze", 2):
            third.set()  # the batch is in hand now: to be finished
        if step.batch_id == 3:
            fourth.set()

    def drive(pipeline: ContinuousPipeline) -> None:
        fill(nats_server.url, "GOES", ["goes"], events(20, 20))
        third.wait(200)
        pipeline.stop()

    pipeline = ContinuousPipeline(spark, config, report, lambda: time.monotonic() + slept)
    driver = threading.Thread(target=drive, args=(pipeline,))
    driver.start()
    counts = pipeline.run()
    driver.join()
    assert not fourth.is_set()
    assert counts == PipelineCounts(30, 30, 30, 30, 0, 1)
    assert steps[-1].table == "gold"
    assert len(took) == 3 and all(1000 < seconds < 1900 for seconds in took), "each batch's own duration"
    again = ContinuousPipeline(spark, config, lambda step: again.stop() if step.table == "rejects" else None)
    assert again.run() == PipelineCounts(40, 40, 40, 40, 0, 1)


def test_a_backlog_is_what_lies_between_end_and_latest() -> None:
    def offset(**nexts: int) -> dict[str, object]:
        return {"v": 1, "streams": {name: {"next": number, "created": ""} for name, number in nexts.items()}}

    assert backlog({"sources": [{"endOffset": offset(A=5, B=7), "latestOffset": offset(A=9, B=7)}]}) == 4
    assert backlog({"sources": [{"endOffset": None, "latestOffset": offset(A=9)}]}) == 0
    assert backlog({"sources": [{"endOffset": offset(A=5), "latestOffset": None}]}) == 0
    assert backlog({}) == 0


def test_a_run_of_the_command_ends_at_a_signal_with_its_report(
    spark: "SparkSession",
    nats_server: NatsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(
        nats_server.url,
        "REPORTED",
        ["reported"],
        [*(("reported", *event[1:]) for event in events(3)), ("reported", {}, b"x")],
    )
    configuration, page = tmp_path / "orders.toml", tmp_path / "run.html"
    source = f'servers = "{nats_server.url}"\nstream = "REPORTED"\nstartingOffsets = "earliest"'
    configuration.write_text(
        f'[source]\n{source}\n[tables]\ndirectory = "{tmp_path / "tables"}"\n[run]\ninterval = 0\n'
    )
    show = command.show_step

    def show_and_end(history: RunHistory, step: Progress) -> None:
        show(history, step)
        if step.table == "rejects":
            os.kill(os.getpid(), signal.SIGTERM)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(command, "show_step", show_and_end)
    monkeypatch.setattr(sys.modules["headwater.spark.session"], "session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    try:
        assert main(["pipeline", "run", str(configuration), "--report", str(page)]) == 0
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    output = capsys.readouterr().err
    assert "batch 0: bronze 4, silver 3, rejects 1 (not a CloudEvent 1)" in output
    assert f"report: {page}" in output
    text = page.read_text(encoding="utf-8")
    assert "Pipeline orders.toml" in text and "not a CloudEvent" in text and text.count("<svg") >= 3
    assert re.findall(r"(?:src|href)=.https?:[^>]*", text) == []
