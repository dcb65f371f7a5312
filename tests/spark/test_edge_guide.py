"""The guide for the edge runs: a shop without a hub, a hub whose leader is killed, and each order in the table once."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import nats
import pytest
from nats.errors import Error as NatsError
from nats.js.api import StorageType, StreamConfig, StreamInfo
from support.jetstream_clusters import await_jetstream, begin_stream, start_real
from support.nats_server import NatsServer, nats_server_binary

from headwater.testing.ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.interop,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not nats_server_binary().exists(), reason="there is no nats-server: the guide was not run"),
]

GUIDE = Path(__file__).parents[2] / "docs" / "edge.md"
SERVERS = ("hub-1", "hub-2", "hub-3")
ORDERS = 200  # in each of the three parts of the test
PATIENCE = 60.0  # seconds; a new leader takes up a source within ten


class Shop:
    """The edge program, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._next = 0

    def begin(self, count: int) -> None:
        """Have so many orders placed; they need not be stored yet."""
        assert self._process.stdin is not None
        self._process.stdin.writelines(f"{number}\n" for number in range(self._next, self._next + count))
        self._process.stdin.flush()
        self._next += count

    def finish(self) -> None:
        """Wait until every order that was placed is stored."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == f"stored {self._next - 1}\n":
                return
        raise AssertionError("the edge program has ended")


@contextmanager
def opened(program: str, directory: Path) -> Iterator[Shop]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with (
        (directory / "edge.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            yield Shop(process)
        finally:
            process.terminate()


def start_hub(stack: ExitStack, directory: Path, leaf_ports: list[int]) -> dict[str, NatsServer]:
    """The three servers of the guide, by their names."""
    routes = [free_port() for _ in SERVERS]
    return {
        name: start_real(
            stack,
            directory / name,
            name,
            route,
            routes,
            streams=True,
            more=f'jetstream {{ domain: hub }}\nleafnodes {{ listen: "127.0.0.1:{leaf}" }}\n',
        )
        for name, route, leaf in zip(SERVERS, routes, leaf_ports, strict=True)
    }


async def takes_replicas(url: str) -> None:
    """Wait until the cluster takes a stream of three replicas."""
    async with await nats.connect(url) as client:
        jetstream = client.jetstream(timeout=5)
        config = StreamConfig(name="PROBE", subjects=["probe"], num_replicas=3, storage=StorageType.MEMORY)
        await begin_stream(jetstream, config, "probe")
        await jetstream.delete_stream("PROBE")


async def copied(urls: list[str], count: int) -> StreamInfo:
    """INFO of the copy, once it holds so many orders."""
    async with asyncio.timeout(PATIENCE), await nats.connect(urls) as client:
        while True:
            try:
                info = await client.jetstream(timeout=1).stream_info("ALL")
                if info.state.messages >= count:
                    return info
            except (NatsError, TimeoutError):
                pass  # no leader for the moment
            await asyncio.sleep(0.05)


def test_every_order_of_a_shop_is_in_the_table_once_though_the_leader_of_the_copy_was_killed(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf_ports = [free_port() for _ in SERVERS]
    text = GUIDE.read_text(encoding="utf-8")
    for name, port in zip(SERVERS, leaf_ports, strict=True):
        text = text.replace(f"{name}:7422", f"127.0.0.1:{port}")
    monkeypatch.setattr("headwater.spark.session", lambda name: spark)

    def examples() -> list[str]:
        return re.findall(r"^```py\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)

    with ExitStack() as stack:
        shop = stack.enter_context(opened(examples()[0], tmp_path))
        shop.begin(ORDERS)
        shop.finish()
        hub = start_hub(stack, tmp_path, leaf_ports)
        for name, server in hub.items():
            text = text.replace(f"{name}:4222", f"127.0.0.1:{server.port}")
        for name in ("orders-table", "orders-checkpoint"):  # Spark's working directory is its JVM's
            text = text.replace(f'"{name}"', f'"{tmp_path / name}"')
        _, at_the_hub, into_a_table = examples()
        await_jetstream([server.url for server in hub.values()])
        asyncio.run(takes_replicas(hub["hub-1"].url))
        exec(compile(at_the_hub, f"example 2 of {GUIDE.name}", "exec"), {})
        info = asyncio.run(copied([server.url for server in hub.values()], ORDERS))
        exec(compile(into_a_table, f"example 3 of {GUIDE.name}", "exec"), {})
        shop.begin(ORDERS)
        assert info.cluster is not None and info.cluster.leader is not None
        hub.pop(info.cluster.leader).kill()
        shop.begin(ORDERS)
        shop.finish()
        asyncio.run(copied([server.url for server in hub.values()], 3 * ORDERS))
        exec(compile(into_a_table, f"example 3 of {GUIDE.name}", "exec"), {})
    rows = spark.read.parquet(str(tmp_path / "orders-table")).select("ce_id").collect()
    assert sorted(int(row["ce_id"]) for row in rows) == list(range(3 * ORDERS))
