"""The servers that every behaviour of the client is held to."""

from collections.abc import Iterator

import pytest
from support.both_servers import real_server, serve
from support.jetstream_twins import Servers

__all__ = ["real_server", "serve"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The real server and ours, with JetStream, for one module."""
    with Servers.started(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(params=["the real one", "ours"])
def url(request: pytest.FixtureRequest, servers: Servers) -> str:
    """Of each of `servers` in turn."""
    return f"nats://127.0.0.1:{servers.real_port if request.param == 'the real one' else servers.our_port}"
