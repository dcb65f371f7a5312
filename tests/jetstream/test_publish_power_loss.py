"""What was acknowledged to publishers is true after a power loss at any call to the disk: sums of counters go on where they
were, and an atomic batch is there whole or not at all."""

import asyncio
import errno
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.jetstream_in_process import TIMEOUT, Desk, served
from support.power_loss import losses
from support.recording_files import RecordingFiles

STORE = Path("store")


def incr(text: str) -> bytes:
    return b"NATS/1.0\r\nNats-Incr: %b\r\n\r\n" % text.encode()


def sums(desk: Desk, subject: str) -> tuple[int, int]:
    """What the last message of a subject says, and what the increments of all of them give."""
    contents = desk.service.streams["C"].contents
    records = [record for record in contents.scan(0) if record.subject == subject.encode()]
    increments = [int(record.header_block.split(b": ")[1].split(b"\r")[0]) for record in records]
    return (int(json.loads(records[-1].payload)["val"]) if records else 0), sum(increments)


def test_a_counter_is_right_after_a_power_loss_at_any_call() -> None:
    async def run() -> int:
        files = RecordingFiles()
        acknowledged: list[tuple[int, str, int]] = []
        async with served(STORE, files=files) as desk:
            await desk.make("C", allow_msg_counter=True)
            begun = len(files.calls)
            for number in range(10):
                subject = f"C.{number % 2}"
                answer = await desk.publish(subject, b"", incr(str(number)))
                acknowledged.append((len(files.calls), subject, int(answer["val"])))
            ended = len(files.calls)
        points = 0
        for loss in losses(files, begun):
            if loss.calls > ended:
                break
            points += 1
            async with served(STORE, files=loss.files) as desk:
                for subject in ("C.0", "C.1"):
                    known = [val for calls, where, val in acknowledged if calls <= loss.calls and where == subject]
                    claimed, counted = sums(desk, subject)
                    assert claimed == counted, loss.name
                    assert claimed >= (known[-1] if known else 0), loss.name
                    answer = await desk.publish(subject, b"", incr("1000"))
                    assert int(answer["val"]) == claimed + 1000, loss.name
        return points

    assert asyncio.run(run()) > 30


def part(batch: int, sequence: int, last: int) -> bytes:
    commit = "Nats-Batch-Commit: 1\r\n" if sequence == last else ""
    return f"NATS/1.0\r\nNats-Batch-Id: b{batch}\r\nNats-Batch-Sequence: {sequence}\r\n{commit}\r\n".encode()


async def commit(desk: Desk, batch: int, size: int) -> dict[str, Any]:
    """The answer to the commit of a batch of so many messages."""
    for sequence in range(1, size):
        desk.router.publish(b"B.a", b"", part(batch, sequence, size), b"x" * 90)
    return await desk.publish("B.a", b"x" * 90, part(batch, size, size))


def held(desk: Desk) -> list[tuple[int, int]]:
    """Batch and place in it of every message that can be read; -1 for one of no batch."""
    found = []
    for record in desk.service.streams["B"].contents.scan(0):
        lines = record.header_block.decode().split("\r\n")
        found.append((int(lines[1][16:]), int(lines[2][21:])) if len(lines) > 2 else (-1, int(record.payload)))
    return found


@pytest.mark.parametrize("seed", range(2))
def test_an_atomic_batch_is_there_whole_or_not_at_all_after_a_power_loss_at_any_call(seed: int) -> None:
    sizes = (3, 40, 1, 17)

    async def run() -> tuple[int, int]:
        files = RecordingFiles()
        acknowledged: list[tuple[int, int]] = []
        async with served(STORE, files=files) as desk:
            await desk.make("B", allow_atomic=True)
            begun = len(files.calls)
            for batch, size in enumerate(sizes):
                plain = asyncio.create_task(desk.publish("B.p", b"%d" % batch))  # of the same write, before or behind
                answer = await commit(desk, batch, size)
                assert (answer["batch"], answer["count"]) == (f"b{batch}", size)
                acknowledged.append((len(files.calls), batch))
                await plain
            ended = len(files.calls)
        points = removed = 0
        for loss in losses(files, begun, seed, torn=6):
            if loss.calls > ended:
                break
            points += 1
            for _ in range(2):  # what was removed does not come back
                async with served(STORE, files=loss.files) as desk:
                    found = held(desk)
                    stream = desk.service.streams["B"]
                    removed += stream.last_sequence - len(found) > 0
                    for batch, size in enumerate(sizes):
                        places = [place for one, place in found if one == batch]
                        assert places in ([], list(range(1, size + 1))), loss.name
                    known = {batch for calls, batch in acknowledged if calls <= loss.calls}
                    assert known <= {batch for batch, _ in found}, loss.name
                    assert (await desk.api("STREAM.INFO.B"))["state"]["messages"] == len(found), loss.name
        return points, removed

    points, removed = asyncio.run(run())
    assert points > 50
    assert removed  # halves were met, and removed


def test_an_id_that_was_acknowledged_is_a_duplicate_after_a_power_loss_though_its_message_was_removed() -> None:
    def block(number: int) -> bytes:
        return b"NATS/1.0\r\nNats-Msg-Id: id-%d\r\n\r\n" % number

    async def run() -> int:
        files = RecordingFiles()
        acknowledged: list[tuple[int, int]] = []
        async with served(STORE, files=files) as desk:
            await desk.make("W")
            begun = len(files.calls)
            for number in range(4):
                answer = await desk.publish("W.a", b"x", block(number))
                acknowledged.append((len(files.calls), number))
                if number % 2:
                    await desk.api("STREAM.MSG.DELETE.W", {"seq": answer["seq"]})
            await desk.api("STREAM.PURGE.W", {"keep": 1})
            ended = len(files.calls)
        points = 0
        for loss in losses(files, begun):
            if loss.calls > ended:
                break
            points += 1
            async with served(STORE, files=loss.files) as desk:
                for calls, number in acknowledged:
                    if calls <= loss.calls:
                        answer = await desk.publish("W.a", b"x", block(number))
                        assert (answer["seq"], answer.get("duplicate")) == (number + 1, True), loss.name
        return points

    assert asyncio.run(run()) > 10


class FillingFiles(RecordingFiles):
    """Full while `during` is set, which is called once, in the loop, in the middle of the next write."""

    during: Callable[[], None] | None = None
    loop: asyncio.AbstractEventLoop

    def fault(self) -> int:
        if self.during is None:
            return super().fault()
        during, called = self.during, threading.Event()

        def call() -> None:
            during()
            called.set()

        self.during = None
        if threading.current_thread() is threading.main_thread():
            call()
        else:
            self.loop.call_soon_threadsafe(call)
            assert called.wait(TIMEOUT)
        return errno.ENOSPC


def test_what_was_added_upon_a_sum_that_could_not_be_written_is_refused_with_it() -> None:
    async def run() -> None:
        files = FillingFiles()
        files.loop = asyncio.get_running_loop()
        async with served(STORE, files=files) as desk:
            await desk.make("C", allow_msg_counter=True)
            assert (await desk.publish("C.a", b"", incr("5")))["val"] == "5"
            inbox = desk.listen("inbox.>")

            def publish(number: int) -> None:
                desk.router.publish(b"C.a", b"inbox.%d" % number, incr("1"), b"")

            files.during = lambda: publish(1)
            publish(0)
            answers = [json.loads(received.payload) for received in await inbox.take(2)]
            assert [answer["error"]["err_code"] for answer in answers] == [10023, 10023]
            assert (await desk.publish("C.a", b"", incr("1")))["val"] == "6"
            assert sums(desk, "C.a") == (6, 6)

    asyncio.run(run())
