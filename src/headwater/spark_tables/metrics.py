"""Metrics of a running pipeline for Prometheus, over HTTP: `[run] metrics = "127.0.0.1:9464"`.

    headwater_pipeline_rows_total{table}                rows written
    headwater_pipeline_batches_total                    micro-batches done
    headwater_pipeline_batch_duration_seconds           duration of the last batch
    headwater_pipeline_behind                           unread messages in the source
    headwater_pipeline_last_batch_timestamp_seconds     when the last batch was done; suited to alerts

`prometheus-client` is in the extra `http`.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError, EnvironmentProblem

if TYPE_CHECKING:
    from headwater.spark_tables.run import Progress


class PipelineMetrics:
    """Counts steps (`show`) and serves the counts. `behind` and `seconds` are called for each scrape."""

    def __init__(self, behind: Callable[[], float], seconds: Callable[[], float]) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge
        except ImportError as error:
            raise EnvironmentProblem("metrics need prometheus-client", hint="pip install 'headwater[http]'") from error
        self.registry = CollectorRegistry()
        name = "headwater_pipeline"
        self._rows = Counter(f"{name}_rows", "rows written", ["table"], registry=self.registry)
        self._batches = Counter(f"{name}_batches", "micro-batches done", registry=self.registry)
        self._last = Gauge(
            f"{name}_last_batch_timestamp_seconds", "when the last micro-batch was done", registry=self.registry
        )
        for what, meaning, ask in (
            ("batch_duration_seconds", "duration of the last micro-batch", seconds),
            ("behind", "messages that the source holds unread", behind),
        ):
            Gauge(f"{name}_{what}", meaning, registry=self.registry).set_function(ask)
        self._server: Any = None
        self.port = 0

    def show(self, step: "Progress") -> None:
        """Count a step."""
        self._rows.labels(step.table).inc(step.rows)
        if step.table == "rejects":  # the last table of a batch
            self._batches.inc()
            self._last.set(time.time())

    def serve(self, address: str) -> None:
        """Start serving at `host:port`, in a thread. Raises ConfigError, and EnvironmentProblem when the port is in use."""
        from prometheus_client import start_http_server

        host, port = parse_address(address)
        try:
            self._server, _ = start_http_server(port, host, registry=self.registry)
        except OSError as error:
            raise EnvironmentProblem(
                f"metrics cannot be served at {address}: {error.strerror}", value=address
            ) from error
        self.port = self._server.server_port

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def parse_address(text: str) -> tuple[str, int]:
    """Parse `host:port`, or a port alone for 127.0.0.1. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise ConfigError(f"{text!r} is no host:port", value=text, hint="for example 127.0.0.1:9464")
    return host or "127.0.0.1", int(port)
