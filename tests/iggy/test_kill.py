"""kill -9 while ten producers send: nothing acknowledged is lost, nothing is doubled, groups go on where they were."""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headwater.errors import TransportError
from headwater.iggy_client.client import connect
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import Consumer, PollingStrategy

PROGRAM = Path(__file__).parent.parent / "support" / "iggy_server_program.py"
PRODUCERS = 10
PARTITIONS = 3
ROUNDS = 3


@asynccontextmanager
async def server(directory: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A server process and its URL; killed at the end if it still lives."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), str(directory), stdout=asyncio.subprocess.PIPE, env=environment
    )
    try:
        assert process.stdout is not None
        yield process, f"iggy://iggy:iggy@127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def produce(url: str, producer: int, rounds: int, acked: set[bytes], enough: asyncio.Event, goal: int) -> None:
    """Send batches until the server is gone; what was answered is in `acked`. Nothing is sent twice."""
    async with await connect(url) as client:
        number = 0
        while True:
            texts = [b"%d-%d-%d-%d" % (rounds, producer, number, part) for part in range(producer + 1)]
            number += 1
            try:
                await client.send("s", "t", [Message(text) for text in texts], number % PARTITIONS)
            except TransportError:
                return
            acked.update(texts)
            if len(acked) >= goal:
                enough.set()


async def everything(url: str) -> list[bytes]:
    found = []
    async with await connect(url) as client:
        for partition in range(PARTITIONS):
            offset = 0
            while batch := await client.poll("s", "t", partition, strategy=PollingStrategy.offset(offset), count=500):
                offsets = [message.offset for message in batch]
                assert offsets == sorted(set(offsets)) and offsets[0] >= offset
                found += [message.payload for message in batch]
                offset = offsets[-1] + 1
    return found


@pytest.mark.kill
def test_no_acknowledged_message_is_lost_or_doubled_and_groups_go_on(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    acked: set[bytes] = set()
    committed: dict[int, int] = {}

    async def one_round(number: int) -> None:
        async with server(tmp_path) as (process, url):
            async with await connect(url) as client:
                if number == 0:
                    await client.create_stream("s")
                    await client.create_topic("s", "t", PARTITIONS)
                    await client.create_group("s", "t", "g")
                group = Consumer.group("g")
                assert (await client.join_group("s", "t", "g")).partitions == list(range(PARTITIONS))
                for partition, offset in committed.items():
                    batch = await client.poll("s", "t", partition, consumer=group, count=1)
                    assert not batch or batch[0].offset > offset, f"seed {seed}"
                enough = asyncio.Event()
                goal = len(acked) + chance.randrange(200, 900)
                producers = [
                    asyncio.create_task(produce(url, producer, number, acked, enough, goal))
                    for producer in range(PRODUCERS)
                ]
                await enough.wait()
                for partition in range(PARTITIONS):
                    batch = await client.poll("s", "t", partition, consumer=group, count=50)
                    if batch:
                        await client.store_offset("s", "t", partition, batch[-1].offset, group)
                        committed[partition] = batch[-1].offset
                process.send_signal(signal.SIGKILL)
                await process.wait()
                await asyncio.gather(*producers)

    async def main() -> None:
        async with asyncio.timeout(120):
            for number in range(ROUNDS):
                await one_round(number)
            async with server(tmp_path) as (_, url):
                counts = Counter(await everything(url))
        assert acked - counts.keys() == set(), f"seed {seed}: acknowledged and lost"
        assert [text for text, count in counts.items() if count > 1] == [], f"seed {seed}: doubled"

    asyncio.run(main())
