"""The guide's examples run, in their order and in one session."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.nats_server import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(600)]

GUIDE = Path(__file__).parents[2] / "docs" / "spark-guide.md"


def test_every_example_of_the_guide_runs(
    spark: "SparkSession", nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GUIDE.read_text(encoding="utf-8").replace("nats://127.0.0.1:4222", nats_server.url)
    # Spark's working directory is its JVM's, and was fixed when that started.
    for name in ("orders-table", "silver", "rejects", "once", "windows", "silences"):
        text = re.sub(rf'"{name}"', f'"{tmp_path / name}"', text)
    monkeypatch.setattr("headwater.spark.session", lambda name: spark)
    names: dict[str, Any] = {}
    examples = re.findall(r"^```py\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(examples) == 10
    for number, example in enumerate(examples, 1):
        exec(compile(example, f"example {number} of {GUIDE.name}", "exec"), names)
