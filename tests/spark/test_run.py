"""Whole runs of the pipeline: what comes out, again after nothing new, and after kills."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from support import pipeline_child
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.stream_filling import Message, fill

from headwater.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(900)]

Server = NatsServer | HeadwaterServer


def events(subject: str, count: int, start: int = 0) -> list[Message]:
    """Commit events; every tenth is no event."""
    data = b'{"repo": "acme/shop", "sha": "%040x"}'
    return [(subject, attributes(number), data % number) for number in range(start, start + count)]


def attributes(number: int) -> dict[str, str]:
    made = {
        "ce-specversion": "1.0",
        "ce-source": "/acme/shop",
        "ce-type": "t",
        "ce-datacontenttype": "application/json",
    }
    return made if number % 10 == 9 else {**made, "ce-id": f"{number:040x}"}


def sequences(out: Path, table: str) -> list[int]:
    return sorted(pq.read_table(out / table, columns=["seq"]).column("seq").to_pylist())


def test_a_second_run_adds_what_is_new_and_nothing_twice(spark: "SparkSession", server: Server, tmp_path: Path) -> None:
    from headwater.spark import PipelineCounts, Progress, run_available_now

    fill(server.url, "RUN", ["run"], events("run", 60))
    out = tmp_path / "out put"
    seen: list[Progress] = []
    first = run_available_now(spark, server.url, "RUN", out, max_offsets_per_trigger=40, progress=seen.append)
    assert first == PipelineCounts(bronze=60, bronze_distinct=60, silver=54, silver_distinct=54, rejects=6, gold=1)
    assert [(step.table, step.batch_id, step.rows) for step in seen] == [
        ("bronze", 0, 40),
        ("silver", 0, 36),
        ("rejects", 0, 4),
        ("bronze", 1, 20),
        ("silver", 1, 18),
        ("rejects", 1, 2),
        ("gold", -1, 1),
    ]
    fill(server.url, "RUN", ["run"], events("run", 10, 60))
    second = run_available_now(spark, server.url, "RUN", out)
    assert (second.bronze, second.bronze_distinct, second.silver, second.rejects) == (70, 70, 63, 7)
    assert sequences(out, "bronze") == list(range(1, 71))
    (row,) = spark.read.parquet(str(out / "gold")).collect()
    assert row["events"] == 63
    shutil.rmtree(out / "checkpoint")
    with pytest.raises(ConfigError, match="no checkpoint"):
        run_available_now(spark, server.url, "RUN", out)


@contextmanager
def child(url: str, out: Path, most: int) -> "Iterator[subprocess.Popen[str]]":
    """The pipeline in a process, and a process group, of its own."""
    command = [sys.executable, pipeline_child.__file__, url, "KILLED", str(out), str(most)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            # Ended already, unless the test failed.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def kill_after(process: "subprocess.Popen[str]", lines: int, delay: float, target: str) -> None:
    """Kill the driver, its JVM or both, `delay` seconds after it has printed `lines` lines; wait for its end."""
    assert process.stdout is not None
    jvm = int(process.stdout.readline().removeprefix("ready "))
    for _ in range(lines):
        process.stdout.readline()
    threading.Event().wait(delay)
    if target in ("driver", "both"):
        process.kill()
    if target in ("jvm", "both"):
        os.kill(jvm, signal.SIGKILL)
    process.stdout.read()  # until the last process that could write there is gone
    process.wait(120)


@pytest.mark.slow
@pytest.mark.kill
def test_killed_runs_lose_nothing_and_double_nothing(nats_server: NatsServer, tmp_path: Path) -> None:
    count = 90
    fill(nats_server.url, "KILLED", ["killed"], events("killed", count))
    out = tmp_path / "out"
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    kills = int(os.environ.get("HEADWATER_KILLS", "1"))  # a start of Spark each
    for _ in range(kills):
        target = chance.choice(("driver", "jvm", "both"))
        with child(nats_server.url, out, 20) as process:
            kill_after(process, chance.randrange(1, 4), chance.random(), target)
    with child(nats_server.url, out, 20) as process:
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0, seed
    counts = json.loads(printed.splitlines()[-1].removeprefix("counts "))
    assert counts["bronze"] == counts["bronze_distinct"] == count, seed
    assert counts["silver"] == counts["silver_distinct"] == count - count // 10, seed
    assert counts["rejects"] == count // 10, seed
    assert sequences(out, "bronze") == list(range(1, count + 1)), seed
    assert sorted(sequences(out, "silver") + sequences(out, "rejects")) == list(range(1, count + 1)), seed
    assert not (out / ".staging").exists(), seed
