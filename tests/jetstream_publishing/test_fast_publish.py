"""Fast-ingest batches of a served stream: what a full disk and a power loss leave of them, and how it is reported."""

import asyncio
import errno
import json
from pathlib import Path
from typing import Any

from support.jetstream_in_process import Desk, Listener, served
from support.power_loss import losses
from support.recording_files import RecordingFiles

STORE = Path("store")
START, APPEND, COMMIT = range(3)
DISK_FULL = 10023


def send(desk: Desk, batch: str, sequence: int, operation: int, flow: int = 2) -> None:
    reply = f"fast.{batch}.{flow}.fail.{sequence}.{operation}.$FI"
    desk.router.publish(b"F.a", reply.encode(), b"", b"%d" % sequence)


async def answer_of(listener: Listener) -> dict[str, Any]:
    return dict(json.loads((await listener.next()).payload))


class FullDisk(RecordingFiles):
    """Full for one call after `full` is set."""

    full = False

    def fault(self) -> int:
        full, self.full = self.full, False
        return errno.ENOSPC if full else super().fault()


def test_a_batch_whose_messages_could_not_be_written_ends_with_the_error() -> None:
    async def run() -> None:
        files = FullDisk()
        async with served(STORE, files=files) as desk:
            await desk.make("F", allow_batched=True)
            received = desk.listen("fast.>")
            send(desk, "b", 1, START)
            assert await answer_of(received) == {"type": "ack", "seq": 0, "msgs": 2}
            send(desk, "b", 2, APPEND)
            assert await answer_of(received) == {"type": "ack", "seq": 2, "msgs": 2}
            files.full = True
            send(desk, "b", 3, APPEND)
            assert (await answer_of(received))["error"]["err_code"] == DISK_FULL
            send(desk, "b", 4, COMMIT)
            assert (await answer_of(received))["error"]["err_code"] == 10208
            assert (await desk.api("STREAM.INFO.F"))["state"]["messages"] == 2

    asyncio.run(run())


def test_a_commit_of_lost_messages_is_refused() -> None:
    async def run() -> None:
        files = FullDisk()
        async with served(STORE, files=files) as desk:
            await desk.make("F", allow_batched=True)
            received = desk.listen("fast.>")
            send(desk, "a", 1, COMMIT)
            assert (await answer_of(received))["count"] == 1
            files.full = True
            for sequence, operation in ((1, START), (2, APPEND), (3, COMMIT)):
                send(desk, "b", sequence, operation, flow=10)
            assert await answer_of(received) == {"type": "ack", "seq": 0, "msgs": 10}
            assert (await answer_of(received))["error"]["err_code"] == DISK_FULL
            send(desk, "c", 1, COMMIT)
            answer = await answer_of(received)
            while "error" in answer:  # the rest, where the first message was written by itself
                assert answer["error"]["err_code"] in (DISK_FULL, 10208)
                answer = await answer_of(received)
            assert (answer["batch"], answer["count"]) == ("c", 1)
            assert received.empty

    asyncio.run(run())


def test_what_an_answer_says_is_there_after_a_power_loss_at_any_call() -> None:
    async def run() -> int:
        files = RecordingFiles()
        known: list[tuple[int, int]] = []
        async with served(STORE, files=files) as desk:
            await desk.make("F", allow_batched=True)
            received, begun = desk.listen("fast.>"), len(files.calls)
            for sequence in range(1, 10):
                send(desk, "b", sequence, COMMIT if sequence == 9 else APPEND if sequence > 1 else START, flow=3)
                if sequence == 1 or sequence % 3 == 0:
                    answer = await answer_of(received)
                    known.append((len(files.calls), answer.get("count", answer["seq"])))
            ended = len(files.calls)
        assert [count for _, count in known] == [0, 3, 6, 9]
        points = 0
        for loss in losses(files, begun):
            if loss.calls > ended:
                break
            points += 1
            async with served(STORE, files=loss.files) as desk:
                held = [int(record.payload) for record in desk.service.streams["F"].contents.scan(0)]
                acknowledged = max((count for calls, count in known if calls <= loss.calls), default=0)
                assert held[:acknowledged] == list(range(1, acknowledged + 1)), loss.name
                assert held == sorted(set(held)), loss.name  # of what was written since, together, any part
        return points

    assert asyncio.run(run()) > 20


def test_a_batch_is_forgotten_after_ten_seconds() -> None:
    async def run() -> None:
        ticks = [0]
        async with served(STORE, files=RecordingFiles(), ticks=ticks) as desk:
            await desk.make("F", allow_batched=True)
            received = desk.listen("fast.>")
            send(desk, "b", 1, START)
            await answer_of(received)
            ticks[0] += 11 * 10**9
            fast = desk.service.streams["F"]._publishing._capture.fast
            assert fast is not None
            fast._on_timer()
            send(desk, "b", 2, APPEND)
            assert (await answer_of(received))["error"]["err_code"] == 10208

    asyncio.run(run())
