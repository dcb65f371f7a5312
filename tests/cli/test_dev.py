"""`headwater dev` as its user sees it: a cluster stands, says where, and goes away on Ctrl-C."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from support.nats_py_flush import flushed

from headwater import Broker
from headwater.cli import dev
from headwater.cli.dev import parse_arguments
from headwater.errors import ConfigError

pytestmark = pytest.mark.interop


@contextmanager
def cluster(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process, and the lines that it says when it is ready."""
    command = [sys.executable, "-m", "headwater", "dev", "-p", "-1", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            for line in process.stdout:
                lines.append(line.strip())
                if "Ctrl-C" in line:
                    break
            yield process, lines
        finally:
            process.kill()


async def answer(message: Msg) -> None:
    await message.respond(b"answer")


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_three_nodes_are_one_server_until_ctrl_c(protocol: str) -> None:
    with cluster("--protocol", protocol) as (process, lines):
        nodes = [re.fullmatch(r"(dev\d)  (nats://\S+)  peers (.*)", line) for line in lines[:-1]]
        assert lines[-1].startswith("3 nodes know each other after ")
        assert [node and node[1] for node in nodes] == ["dev1", "dev2", "dev3"]
        assert [node and node[3] for node in nodes] == ["dev2, dev3", "dev1, dev3", "dev1, dev2"]

        async def exchange() -> None:
            urls = [node[2] for node in nodes if node]
            async with (
                asyncio.timeout(20),
                await nats.connect(urls[0]) as requester,
                await nats.connect(urls[2]) as there,
            ):
                await there.subscribe("ask", cb=answer)
                await flushed(there)
                while True:
                    try:
                        assert (await requester.request("ask", timeout=10)).data == b"answer"
                        break
                    except NoRespondersError:
                        await asyncio.sleep(0.005)  # the interest is on its way

        asyncio.run(exchange())
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_streams_are_at_the_first_node_and_all_reach_them(tmp_path: Path) -> None:
    with cluster("--nodes", "2", "--store", str(tmp_path)) as (process, lines):
        assert [line.endswith("  streams") for line in lines[:2]] == [True, False]

        async def use() -> None:
            async with asyncio.timeout(20), await nats.connect(lines[1].split()[1]) as client:
                streams = client.jetstream()
                await streams.add_stream(name="S", subjects=["s.>"])
                assert (await streams.publish("s.a", b"kept")).seq == 1

        asyncio.run(use())
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_one_node_is_spoken_of_as_one() -> None:
    with cluster("--nodes", "1") as (process, lines):
        assert re.fullmatch(r"1 node runs after \d+ ms; Ctrl-C stops it", lines[-1])
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_ctrl_c_is_heeded_while_the_mesh_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(nodes: list[Broker]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    monkeypatch.setattr(dev, "_form", never)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        assert dev.main(["-p", "-1"]) == 0
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


@pytest.mark.parametrize("count", ["0", "33"])
def test_numbers_that_make_no_cluster_are_refused(count: str) -> None:
    with pytest.raises(ConfigError):
        parse_arguments(["--nodes", count])
