"""The servers that a behaviour of the client is held to: the real nats-server, and our own broker, as the parameter says.

The fixtures are imported by the conftest of the folders that use them.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from support.nats_server import NatsServer, start_nats_server

import headwater

Serve = Callable[[], AbstractAsyncContextManager[str]]  # `async with serve() as url`


@pytest.fixture(scope="package")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with start_nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture(params=[pytest.param("nats-server", marks=pytest.mark.interop), "headwater"])
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Serve:
    """`async with serve() as url`: one of the servers, with JetStream. The real one is shared by all tests."""

    @contextlib.asynccontextmanager
    async def ours() -> AsyncIterator[str]:
        async with headwater.Broker(jetstream=True, store_dir=tmp_path / "store") as broker:
            yield broker.url

    @contextlib.asynccontextmanager
    async def real() -> AsyncIterator[str]:
        server: NatsServer = request.getfixturevalue("real_server")
        yield server.url

    return ours if request.param == "headwater" else real
