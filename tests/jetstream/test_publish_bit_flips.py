"""One flipped bit in the log of a counter, of atomic batches or of a mirror: it costs at most the message that it hit, and
what it costs is reported.

HEADWATER_FLIPS=2000 tries so many bits of each log; a few without it.
"""

import asyncio
import json
import os
from pathlib import Path
from random import Random

from support.jetstream_in_process import Desk, served
from support.recording_files import Disk, RecordingFiles

STORE = Path("store")
FLIPS = int(os.environ.get("HEADWATER_FLIPS", "3"))
SIZES = (3, 8, 1)  # of the atomic batches
ADDITIONS = 8

Held = list[tuple[int, bytes]]


def held(desk: Desk, stream: str) -> Held:
    return [(record.offset, record.payload) for record in desk.service.streams[stream].contents.scan(0)]


def flipped(disk: Disk, stream: str, chance: Random) -> RecordingFiles:
    """The disk, with one bit of the stream's log flipped, where something is written."""
    (path,) = (name for name in disk.names if f"/{stream}-" in name and name.endswith(".log"))
    content = bytearray(disk.contents[disk.names[path]])
    written = len(bytes(content).rstrip(b"\0"))
    content[chance.randrange(written)] ^= 1 << chance.randrange(8)
    return RecordingFiles(Disk(disk.names, {**disk.contents, disk.names[path]: bytes(content)}, disk.directories))


async def written() -> tuple[Disk, dict[str, Held]]:
    """The disk after an orderly stop, and what the streams hold."""
    files = RecordingFiles()
    async with served(STORE, files=files) as desk:
        await desk.make("SUM", allow_msg_counter=True)
        await desk.make("BATCH", allow_atomic=True)
        await desk.make("COPY", subjects=None, mirror={"name": "BATCH"})
        for _ in range(ADDITIONS):
            await desk.publish("SUM.a", b"", b"NATS/1.0\r\nNats-Incr: 1\r\n\r\n")
        for batch, size in enumerate(SIZES):
            for sequence in range(1, size + 1):
                commit = "Nats-Batch-Commit: 1\r\n" if sequence == size else ""
                block = f"NATS/1.0\r\nNats-Batch-Id: b{batch}\r\nNats-Batch-Sequence: {sequence}\r\n{commit}\r\n"
                answer = await desk.ask("BATCH.a", b"%d.%d" % (batch, sequence), block.encode())
                assert b"error" not in answer.payload
        while len(held(desk, "COPY")) < sum(SIZES):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        contents = {stream: held(desk, stream) for stream in ("SUM", "BATCH", "COPY")}
    return files.snapshot(), contents


async def check(desk: Desk, stream: str, before: Held) -> None:
    now = held(desk, stream)
    await asyncio.sleep(0)  # what reading has met is reported with the next turn of the loop
    lost = [each for each in before if each not in now]
    assert [each for each in before if each in now] == now
    assert len(lost) <= 1
    state = (await desk.api(f"STREAM.INFO.{stream}"))["state"]
    assert state["messages"] == len(now)
    assert state.get("lost", {}).get("msgs", []) == [offset + 1 for offset, _ in lost]


def test_one_flipped_bit_costs_a_message_at_most_and_that_is_told() -> None:
    async def run() -> None:
        disk, before = await written()
        chance = Random(19)
        for stream in before:
            for _ in range(FLIPS):
                async with served(STORE, files=flipped(disk, stream, chance)) as desk:
                    await check(desk, stream, before[stream])
                    if stream == "SUM":
                        last = int(json.loads(held(desk, "SUM")[-1][1])["val"])
                        assert last >= ADDITIONS - 1
                        answer = await desk.publish("SUM.a", b"", b"NATS/1.0\r\nNats-Incr: 5\r\n\r\n")
                        assert int(answer["val"]) == last + 5

    asyncio.run(run())
