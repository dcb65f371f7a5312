"""Reads of a replicated stream while one of its servers catches up: consumers on that server have less than the stream."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.api import StreamConfig
from nats.js.errors import NoStreamResponseError
from pyspark.sql.streaming.datasource import ReadAllAvailable
from support.jetstream_clusters import await_jetstream, begin_stream, start_real
from support.nats_server import NatsServer

from headwater.spark.options import parse_options
from headwater.spark.reader import JetStreamBatchReader, JetStreamStreamReader
from headwater.spark.schema import source_schema
from headwater.testing.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(300)]

FIRST, MISSED, SIZE = 200, 20_000, 4_096  # messages before and after the server is killed, and their bytes
TAIL = 1_000  # messages that each round reads: the last ones, which the server has last
ROUNDS = 20


class Cluster(NamedTuple):
    url: str
    stream_size: int


async def stored(jetstream: JetStreamContext, subject: str) -> None:
    """Publish one message; where the leader was just killed, once there is another one."""
    for _ in range(300):
        try:
            await jetstream.publish(subject, bytes(SIZE))
            return
        except NoStreamResponseError:
            await asyncio.sleep(0.1)
    raise AssertionError("the stream has no leader")


async def fill_without(victim: NatsServer, url: str) -> None:
    """A stream of three replicas, of which `victim` misses nearly everything."""
    async with await nats.connect(url) as client:
        jetstream = client.jetstream(timeout=20)
        config = StreamConfig(name="R3", subjects=["r3"], num_replicas=3, duplicate_window=1)
        await begin_stream(jetstream, config, "r3", bytes(SIZE))
        for count in (FIRST - 1, MISSED):
            await stored(jetstream, "r3")
            for start in range(1, count, 500):
                acks = [await jetstream.publish_async("r3", bytes(SIZE)) for _ in range(start, min(count, start + 500))]
                await asyncio.gather(*acks)
            if count < MISSED:
                victim.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three nats-servers; the third was killed, and has just come back."""
    with ExitStack() as stack:
        ports = [free_port() for _ in range(3)]
        servers = [
            start_real(stack, tmp_path / f"r{at}", f"r{at}", port, ports, streams=True) for at, port in enumerate(ports)
        ]
        await_jetstream([server.url for server in servers])
        asyncio.run(fill_without(servers[2], servers[0].url))
        start_real(stack, tmp_path / "r2", "r2", ports[2], ports, streams=True)
        yield Cluster(servers[0].url, FIRST + MISSED)


def test_no_row_is_missing_while_a_follower_catches_up(cluster: Cluster) -> None:
    options = parse_options(
        {"servers": cluster.url, "stream": "R3", "startingOffsets": str(cluster.stream_size - TAIL + 1)}
    )
    schema = source_schema(options)
    for _ in range(ROUNDS):
        batch = JetStreamBatchReader(options, schema)
        assert sum(rows.num_rows for part in batch.partitions() for rows in batch.read(part)) == TAIL
        stream = JetStreamStreamReader(options, schema)
        start = stream.initialOffset()
        end = stream.latestOffset(start, ReadAllAvailable())
        assert sum(rows.num_rows for part in stream.partitions(start, end) for rows in stream.read(part)) == TAIL
        stream.stop()
