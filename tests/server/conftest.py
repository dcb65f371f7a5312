"""The two servers that a test of wire behaviour runs against: nats-server proves the expectation, ours has to meet it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server


@pytest.fixture(scope="module", params=["nats-server", "headwater"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HeadwaterServer | NatsServer]:
    directory: Path = tmp_path_factory.mktemp("server")
    if request.param == "nats-server":
        with start_nats_server(directory, jetstream=False) as real:
            yield real
    else:
        with start_headwater(directory) as ours:
            yield ours
            assert ours.running, "the broker ended by itself"
