"""A mirror and a source go on where they were after a power loss at any call to the disk: each message once, in order.

HEADWATER_LOSSES=1000 tries so many of the losses, which are more than a hundred; a few without it.
"""

import asyncio
import os
from pathlib import Path
from random import Random

from support.jetstream_in_process import Desk, served
from support.power_loss import Loss, losses
from support.recording_files import RecordingFiles

STORE = Path("store")
COUNT = 4
LOSSES = int(os.environ.get("HEADWATER_LOSSES", "5"))


def held(desk: Desk, stream: str) -> list[tuple[int, bytes]]:
    return [(record.offset, record.payload) for record in desk.service.streams[stream].contents.scan(0)]


async def until_copied(desk: Desk) -> None:
    """Both copies have come to the end of the origin."""
    last = [payload for _, payload in held(desk, "O")[-1:]]
    while [[payload for _, payload in held(desk, name)[-1:]] for name in "MZ"] != [last, last]:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def make_copies(desk: Desk) -> None:
    await desk.make("O")
    await desk.make("M", subjects=None, mirror={"name": "O"})
    await desk.make("Z", subjects=None, sources=[{"name": "O"}])


async def go_on(loss: Loss) -> None:
    """Serve what is left: the copies have each message of the origin once, in order."""
    async with served(STORE, files=loss.files) as desk:
        await desk.publish("O.a", b"after")
        await until_copied(desk)
        origin = held(desk, "O")
        assert held(desk, "M") == origin, loss.name
        assert [data for _, data in held(desk, "Z")] == [data for _, data in origin], loss.name


def test_a_mirror_and_a_source_go_on_where_they_were_after_a_power_loss() -> None:
    async def run() -> int:
        files = RecordingFiles()
        async with served(STORE, files=files) as desk:
            await make_copies(desk)
            begun = len(files.calls)
            for number in range(COUNT):
                await desk.publish("O.a", b"%d" % number)
                if number % 2:
                    await until_copied(desk)
            ended = len(files.calls)
        found = [loss for loss in losses(files, begun) if loss.calls <= ended]
        tried = Random(19).sample(found, min(LOSSES, len(found)))
        for loss in tried:
            await go_on(loss)
        return len(tried)

    assert asyncio.run(run()) >= min(LOSSES, 100)


def test_a_write_of_many_copies_that_was_torn_in_the_middle_is_copied_again() -> None:
    """Sectors reach the disk in any order, so the end of a write may be there and its middle not: a copy that goes on behind
    the last message that is there would never copy the others."""

    async def run() -> int:
        files = RecordingFiles()
        async with served(STORE, files=files) as desk:
            await make_copies(desk)
            await desk.publish("O.a", b"first")
            await until_copied(desk)
            begun = len(files.calls)
            await asyncio.gather(*(desk.publish("O.a", b"%03d" % number * 200) for number in range(30)))
            await until_copied(desk)
            ended = len(files.calls)
        torn = [loss for loss in losses(files, begun) if loss.calls <= ended and loss.name.startswith("torn")]
        tried = Random(5).sample(torn, 12)
        for loss in tried:
            await go_on(loss)
        return len(tried)

    assert asyncio.run(run())
