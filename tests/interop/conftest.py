"""The server under the JetStream tests of this folder: the real nats-server, which proves them, and our broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server


@pytest.fixture(scope="module", params=["nats-server", "headwater"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("jetstream")
    server: HeadwaterServer | NatsServer
    if request.param == "nats-server":
        server = start_nats_server(directory)
    else:
        server = start_headwater(directory, "-js", "-sd", str(directory / "js"))
    with server:
        yield server.url
