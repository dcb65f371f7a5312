"""One nats-server and one Spark session for all Spark tests: a session takes ten seconds and more to start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from support.nats_server import NatsServer, start_nats_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with start_nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    from headwater.spark import session

    running = session("tests", master="local[2]", config={"spark.sql.shuffle.partitions": "2"})
    yield running
    running.stop()
