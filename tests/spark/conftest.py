"""One server of each kind and one Spark session for all Spark tests: a session takes ten seconds and more to start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with start_nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture(scope="session")
def headwater_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadwaterServer]:
    directory = tmp_path_factory.mktemp("headwater")
    with start_headwater(directory, "-js", "-sd", str(directory / "js")) as running:
        yield running


@pytest.fixture(scope="session", params=["nats_server", "headwater_server"])
def server(request: pytest.FixtureRequest) -> NatsServer | HeadwaterServer:
    """Either: what is tested with this must hold for both, with the same code."""
    running: NatsServer | HeadwaterServer = request.getfixturevalue(request.param)
    return running


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    from headwater.spark import session

    running = session("tests", master="local[2]", brief=True)
    yield running
    running.stop()
