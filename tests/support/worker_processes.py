"""`headwater serve --workers` as a process: started, queried for its workers, and read until it says something."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import nats
from nats.aio.client import Client

Process = subprocess.Popen[str]


@contextmanager
def started(*flags: str, program: str = "") -> Iterator[Process]:
    """`program`: what is executed in place of the package."""
    python = [sys.executable, *(("-c", program) if program else ("-m", "headwater"))]
    command = [*python, "serve", "-a", "127.0.0.1", "-p", "-1", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: Process) -> tuple[int, list[str]]:
    """The port, and all that was logged until the server was ready."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.endswith("Server is ready\n"):
            (address,) = [line for line in lines if "Listening for client connections on 127.0.0.1:" in line]
            return int(address.rpartition(":")[2]), lines
    raise AssertionError("".join(lines))


def children(process: int) -> list[int]:
    """The workers, in the order in which they were started."""
    return sorted(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


@asynccontextmanager
async def one_client_at_each(port: int, workers: int) -> AsyncIterator[list[Client]]:
    """The system deals connections out by a hash of their ports, so there are as many tries as it takes."""
    async with AsyncExitStack() as stack:
        found: dict[str, Client] = {}
        for _ in range(200):
            client = await stack.enter_async_context(await nats.connect(f"nats://127.0.0.1:{port}"))
            found.setdefault(str(client._server_info["server_id"]), client)
            if len(found) == workers:
                break
        assert len(found) == workers
        yield list(found.values())


def until_printed(process: Process, ending: str) -> list[str]:
    """What is logged up to a line with this ending."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.endswith(ending):
            return lines
    raise AssertionError("".join(lines))
