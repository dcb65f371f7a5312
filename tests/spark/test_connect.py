"""Through Spark Connect: source, sink and streaming, from a client that has no JVM."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import connect_child
from support.nats_server import NatsServer
from support.stream_filling import fill, numbered, stored

from headwater.spark import declarative

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(900)]


def test_a_connect_client_reads_writes_and_streams(nats_server: NatsServer, tmp_path: Path) -> None:
    if lacking := declarative.missing():
        pytest.skip(f"pyspark needs {', '.join(lacking)} for Spark Connect")
    fill(nats_server.url, "FROM", ["from.*"], numbered("from", 50))
    fill(nats_server.url, "TO", ["to"], [])
    command = [sys.executable, connect_child.__file__, nats_server.url, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    kind, read, streamed = done.stdout.split()
    assert (kind, read, streamed) == ("pyspark.sql.connect.session", "50", "50")
    assert sorted(int(data) for _, _, data in stored(nats_server.url, "TO")) == list(range(50))
