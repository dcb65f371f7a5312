"""kill -9 under load: no acknowledgement that the server confirmed comes back, nor one that it had 100 ms to write down."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.headwater_server import HeadwaterServer, start_headwater

from headwater.client.client import Client, connect
from headwater.errors import TransportError

pytestmark = pytest.mark.kill

STREAMS = ("limits", "workqueue", "interest")
MESSAGES = 3000
LOAD = 1.0  # seconds of acknowledging before each kill
ROUNDS = 3
TIME_TO_WRITE = 0.1  # seconds; 10 ms are promised, the rest is for a machine under load


class Acked:
    """What a worker acknowledged: sequences, and when, in ns of the monotonic clock."""

    def __init__(self) -> None:
        self.confirmed: set[int] = set()
        self.acked_at: dict[int, int] = {}
        self.delivered: set[int] = set()


async def make(client: Client) -> None:
    for name in STREAMS:
        body = b'{"name":"%b","subjects":["%b"],"retention":"%b"}' % ((name.encode(),) * 3)
        assert b'"error"' not in (await client.request(f"$JS.API.STREAM.CREATE.{name}", body)).data
        config = b'{"durable_name":"c","ack_policy":"explicit","max_ack_pending":-1,"ack_wait":60000000000}'
        body = b'{"stream_name":"%b","config":%b}' % (name.encode(), config)
        assert b'"error"' not in (await client.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.c", body)).data


async def work(client: Client, name: str, acked: Acked) -> None:
    """Take messages and acknowledge them, every third time with a confirmation, until the server is gone."""
    consumer = client.jetstream().pull_consumer(name, "c")
    while True:
        for message in await consumer.fetch(20, timeout=0.5):
            sequence = message.metadata.stream_seq
            acked.delivered.add(sequence)
            if sequence % 3 == 0:
                await message.ack(confirm=1.0)
                acked.confirmed.add(sequence)
            else:
                await message.ack()
                await client.flush()
                acked.acked_at[sequence] = time.monotonic_ns()


async def one_round(server: HeadwaterServer, acked: dict[str, Acked], first: bool) -> None:
    with suppress(TransportError):  # at its end the client finds the server gone
        client = await connect(server.url, reconnect=False)
        if first:
            await make(client)
            for name in STREAMS:
                for number in range(MESSAGES):
                    await client.publish(name, b"%d" % number)
            await client.flush()
        tasks = [asyncio.create_task(work(client, name, acked[name])) for name in STREAMS]
        await asyncio.sleep(LOAD)
        killed = time.monotonic_ns()
        server.kill()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()
    for known in acked.values():
        known.acked_at = {sequence: at for sequence, at in known.acked_at.items() if at < killed - TIME_TO_WRITE * 1e9}


async def what_comes(url: str, name: str) -> set[int]:
    """All that the consumer still delivers, soon enough that nothing is due again."""
    came: set[int] = set()
    async with await connect(url) as client:
        consumer = client.jetstream().pull_consumer(name, "c")
        while messages := await consumer.fetch(500, no_wait=True):
            came.update(message.metadata.stream_seq for message in messages)
    return came


def test_no_acknowledgement_that_was_confirmed_or_old_enough_comes_back_after_kill_9(tmp_path: Path) -> None:
    acked = {name: Acked() for name in STREAMS}
    for count in range(ROUNDS):
        server = start_headwater(tmp_path, "-js", "-sd", str(tmp_path / "js"))
        asyncio.run(one_round(server, acked, first=not count))
    with start_headwater(tmp_path, "-js", "-sd", str(tmp_path / "js")) as server:
        for name, known in acked.items():
            assert len(known.confirmed) > 20
            assert len(known.acked_at) > 20
            came = asyncio.run(what_comes(server.url, name))
            assert not came & known.confirmed, name
            assert not came & set(known.acked_at), name
