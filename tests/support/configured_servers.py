"""Both servers with the same configuration file: nats-server proves what a test expects, ours has to meet it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from support.embedded_broker import EmbeddedBroker, options_of
from support.nats_server import start_nats_server

KINDS = ["nats-server", "headwater"]


class Running(NamedTuple):
    """A server that runs. `websocket_port` is 0 when it has no such listener."""

    kind: str
    port: int
    websocket_port: int

    @property
    def is_ours(self) -> bool:
        return self.kind == "headwater"


@contextmanager
def serve(kind: str, directory: Path, config: str) -> Iterator[Running]:
    """Runs a server of this kind until the end of the block. JetStream is on when the configuration says so."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "server.conf"
    file.write_text(config, encoding="utf-8")
    if kind == "nats-server":
        with start_nats_server(directory, "-c", str(file), jetstream=False) as real:
            found = re.search(rb"Listening for websocket clients on wss?://\S+:(\d+)", real.log.read_bytes())
            yield Running(kind, real.port, int(found[1]) if found else 0)
    else:
        with EmbeddedBroker(options_of(file, store_dir=directory / "store")) as ours:
            yield Running(kind, ours.port, ours.websocket_port)


class ServerShelf:
    """Servers that are started at their first use, and stopped together: tests share those of one configuration."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[tuple[str, str], tuple[Running, Iterator[Running]]] = {}

    def get(self, kind: str, config: str) -> Running:
        """The server of this kind with this configuration."""
        key = (kind, config)
        if key not in self._running:
            holder = self._hold(kind, config, self._directory / f"{kind}-{len(self._running)}")
            self._running[key] = (next(holder), holder)
        return self._running[key][0]

    def close(self) -> None:
        """Stops them all."""
        for _, holder in self._running.values():
            next(holder, None)

    def _hold(self, kind: str, config: str, directory: Path) -> Iterator[Running]:
        with serve(kind, directory, config) as running:
            yield running


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerShelf]:
    """For tests that want both servers with many configurations."""
    servers = ServerShelf(tmp_path_factory.mktemp("servers"))
    try:
        yield servers
    finally:
        servers.close()
