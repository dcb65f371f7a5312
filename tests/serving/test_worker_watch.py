"""A worker that hangs is named by its parent, and what is for its streams is refused, not left without an answer."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import nats.errors
import pytest
from nats.aio.client import Client
from nats.js.errors import NoStreamResponseError
from support.worker_processes import children, one_client_at_each, ready, until_printed

from headwater.monitoring.board import Board
from headwater.serving.worker_watch import MOST_SAME, WorkerWatch

# `headwater serve` with hundredths of its patience.
HASTY = """
import sys
from headwater.serving import worker_watch, workers
worker_watch.EVERY, worker_watch.MOST_SAME = 0.5, 6
workers.PING_INTERVAL = 0.5
from headwater.__main__ import main
sys.exit(main())
"""


def test_a_worker_is_silent_once_its_line_has_been_the_same_for_many_looks_and_goes_on_with_another_line() -> None:
    watch = WorkerWatch(Board(2))
    for look in range(MOST_SAME):
        assert watch.note({1: 5.0, 2: float(look)}) == set()
    assert watch.note({1: 5.0, 2: 99.0}) == {1}
    assert watch.note({1: 5.0, 2: 99.0}) == set()
    assert watch.silent == {1}
    assert watch.note({1: 6.0, 2: 100.0}) == {1}
    assert watch.silent == set()


def test_a_worker_that_has_ended_is_not_silent() -> None:
    watch = WorkerWatch(Board(1))
    for _ in range(MOST_SAME + 1):
        watch.note({1: 5.0})
    assert watch.silent == {1}
    watch.note({})
    assert watch.silent == set()


def test_a_worker_that_hangs_is_named_and_its_streams_have_no_responders_until_it_goes_on(tmp_path: Path) -> None:
    async def fill(port: int) -> None:
        async with one_client_at_each(port, 2) as clients:
            await clients[1].jetstream().add_stream(name="S", subjects=["s"])

    async def refused(port: int) -> None:
        """By way of the second worker, for the first one greets no client."""
        while True:
            client = Client()
            try:
                await client.connect(f"nats://127.0.0.1:{port}", connect_timeout=1, allow_reconnect=False)
            except (TimeoutError, nats.errors.NoServersError):
                await client.close()  # the system has dealt it out to the first, and nats-py leaves its socket open
                continue
            async with client:
                while True:
                    try:
                        await client.request("$JS.API.STREAM.INFO.S", b"", timeout=1)
                    except nats.errors.TimeoutError:
                        continue  # the route to the first is not given up yet
                    except nats.errors.NoRespondersError:
                        break
                with pytest.raises(NoStreamResponseError):
                    await client.jetstream().publish("s", b"")
            return

    async def served(port: int) -> None:
        async with one_client_at_each(port, 2) as clients:
            for client in clients:
                while True:
                    try:
                        await client.jetstream().publish("s", b"")
                    except NoStreamResponseError:
                        continue  # the workers have not found each other yet
                    break

    flags = ("--workers", "2", "-js", "-sd", str(tmp_path))
    command = [sys.executable, "-c", HASTY, "serve", "-a", "127.0.0.1", "-p", "-1", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            port, _ = ready(process)
            asyncio.run(asyncio.wait_for(fill(port), 60))
            first = children(process.pid)[0]
            os.kill(first, signal.SIGSTOP)
            ending = "to have it replaced, kill it\n"
            (line,) = [line for line in until_printed(process, ending) if line.endswith(ending)]
            assert f"worker 1 (process {first}) has done nothing for 3 s" in line
            asyncio.run(asyncio.wait_for(refused(port), 60))
            os.kill(first, signal.SIGCONT)
            until_printed(process, f"worker 1 (process {first}) goes on\n")
            asyncio.run(asyncio.wait_for(served(port), 60))
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()
