"""What Prometheus reads about a pipeline."""

import urllib.request

import pytest

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.spark_tables.metrics import PipelineMetrics, parse_address
from headwater.spark_tables.run import Progress

pytest.importorskip("prometheus_client")


def test_steps_are_counted_and_served() -> None:
    metrics = PipelineMetrics(lambda: 7, lambda: 1.5)
    for batch in (0, 1):
        for table, rows in (("bronze", 10), ("silver", 9), ("rejects", 1)):
            metrics.show(Progress(table, batch, rows, rows))
    metrics.show(Progress("gold", -1, 3, 3))
    metrics.serve("127.0.0.1:0")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        other = PipelineMetrics(lambda: 0, lambda: 0)
        with pytest.raises(EnvironmentProblem, match="cannot be served"):
            other.serve(f"127.0.0.1:{metrics.port}")
    finally:
        metrics.close()
    for line in (
        'headwater_pipeline_rows_total{table="bronze"} 20.0',
        'headwater_pipeline_rows_total{table="gold"} 3.0',
        "headwater_pipeline_batches_total 2.0",
        "headwater_pipeline_behind 7.0",
        "headwater_pipeline_batch_duration_seconds 1.5",
    ):
        assert line in lines
    assert any(line.startswith("headwater_pipeline_last_batch_timestamp_seconds 1") for line in lines)


def test_an_address_is_host_and_port() -> None:
    assert parse_address("0.0.0.0:9464") == ("0.0.0.0", 9464)
    assert parse_address("9464") == ("127.0.0.1", 9464)
    for wrong in ("localhost", "a:b", ":99999"):
        with pytest.raises(ConfigError, match="host:port"):
            parse_address(wrong)
