"""The life of streams: how long a file stream takes to create, and a server with many written ones to stop.

All servers run at the same time, and every stream is created on each of them in turn, so that other work of the machine
delays all alike. Then MESSAGES are published into each stream, and each server gets a SIGTERM, one after the other, until
its process is gone. A creation at ours, and at nats-server with `sync_interval: always`, is on the disk when
it is answered; one at nats-server with default settings is in its page cache.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from contestants import Contestant, start_headwater, start_nats_server
from load_generator import open_link
from stream_load import PAYLOAD, ask, store

MESSAGES = 20


class Life(NamedTuple):
    """`create`: the median in milliseconds, `cpu`: of the server for each, also milliseconds; `stop`: seconds, `stop_cpu`:
    CPU seconds of the stop."""

    create: float
    cpu: float
    stop: float
    stop_cpu: float


def contestants(directory: Path) -> dict[str, Callable[[], Contestant]]:
    """How to start each server, by its name."""

    def configured(folder: str, interval: str) -> list[str]:
        path = directory / f"{folder}.conf"
        path.write_text(f'jetstream {{ store_dir: "{directory / folder}", sync_interval: "{interval}" }}\n')
        return ["-c", str(path)]

    return {
        "headwater": lambda: start_headwater("-js", "-sd", str(directory / "ours")),
        "headwater, 2m": lambda: start_headwater(*configured("ours-2m", "2m"), name="headwater, 2m"),
        "nats-server, always": lambda: start_nats_server(*configured("always", "always"), name="nats-server, always"),
        "nats-server, default": lambda: start_nats_server(*configured("default", "2m"), name="nats-server, default"),
    }


def run(directory: Path, streams: int) -> dict[str, Life]:
    """One life of each server."""
    with ExitStack() as stack:
        servers = [stack.enter_context(start()) for start in contestants(directory).values()]
        links = [stack.enter_context(open_link(server.port)) for server in servers]
        for link in links:
            link.sendall(b"SUB _INBOX.ask 1\r\n")
        took: list[list[float]] = [[] for _ in servers]
        before = [server.cpu() for server in servers]
        for number in range(streams):
            config = {"name": f"S{number}", "subjects": [f"full.{number}.*"], "storage": "file"}
            for link, times in zip(links, took, strict=True):
                start = time.perf_counter()
                ask(link, f"$JS.API.STREAM.CREATE.S{number}", config)
                times.append(1e3 * (time.perf_counter() - start))
        spent = [1e3 * (server.cpu() - begun) / streams for server, begun in zip(servers, before, strict=True)]
        for server in servers:
            with open_link(server.port) as link:
                body = b"x" * PAYLOAD
                line = b"PUB full.%d.a _INBOX.fill %d\r\n%b\r\n"
                store(link, (line % (n % streams, PAYLOAD, body) for n in range(streams * MESSAGES)))
        for link in links:
            link.close()
        ends = [server.stop() for server in servers]
    return {
        server.name: Life(statistics.median(times), cpu, *end)
        for server, times, cpu, end in zip(servers, took, spent, ends, strict=True)
    }


def show(done: list[dict[str, Life]], streams: int, spell: Callable[..., str]) -> None:
    """Print a line for each server."""
    stop = f"stop with {streams}, s"
    print(f"\n{'life of a file stream':<24}{'create ms':<24}{'server CPU ms':<24}{stop:<24}CPU s of the stop")
    for name in done[0]:
        columns = [list(column) for column in zip(*(each[name] for each in done), strict=True)]
        print(f"  {name:<22}" + "".join(f"{spell(column, 3):<24}" for column in columns).rstrip())
