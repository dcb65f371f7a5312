"""The servers that every command of the client is held to."""

from collections.abc import Iterator

import pytest
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server


@pytest.fixture(scope="package", params=[pytest.param("nats-server", marks=pytest.mark.interop), "headwater"])
def server_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One of the servers, with JetStream, for all tests of the package."""
    directory = tmp_path_factory.mktemp("server")
    if request.param == "headwater":
        with start_headwater(directory, "-js", "-sd", str(directory / "store")) as ours:
            yield ours.url
    else:
        with start_nats_server(directory) as real:
            yield real.url
