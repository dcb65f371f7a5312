"""Atomic batches in a running service: a time-out is reported, and a batch whose write fails is refused as a whole."""

import asyncio
import errno
import json
from pathlib import Path

from support.jetstream_in_process import served
from support.recording_files import RecordingFiles

from headwater.model.stream_limits import ServerLimits

STORE = Path("store")


def part(sequence: int, commit: str = "", more: str = "") -> bytes:
    lines = f"Nats-Batch-Id: b\r\nNats-Batch-Sequence: {sequence}\r\n{more}"
    return f"NATS/1.0\r\n{lines}{f'Nats-Batch-Commit: {commit}' + chr(13) + chr(10) if commit else ''}\r\n".encode()


def test_a_batch_that_nobody_goes_on_with_is_dropped_and_told() -> None:
    limits = ServerLimits(batch_timeout=50_000_000)

    async def run() -> None:
        async with served(STORE, files=RecordingFiles(), server_limits=limits) as desk:
            await desk.make("S", allow_atomic=True)
            reported = desk.listen("$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.S")
            assert (await desk.ask("S.a", b"x", part(1))).payload == b""
            advisory = json.loads((await reported.next()).payload)
            assert (advisory["batch"], advisory["reason"]) == ("b", "timeout")
            assert advisory["type"] == "io.nats.jetstream.advisory.v1.stream_batch_abandoned"
            assert len(advisory["id"]) == 22
            assert (await desk.publish("S.a", b"x", part(2, "1")))["error"]["err_code"] == 10176

    asyncio.run(run())


def test_a_batch_that_cannot_be_written_is_refused_and_its_ids_are_free_again() -> None:
    async def run() -> None:
        files = RecordingFiles()
        async with served(STORE, files=files) as desk:
            await desk.make("S", allow_atomic=True)
            await desk.publish("S.a", b"first")
            assert (await desk.ask("S.a", b"x", part(1, more="Nats-Msg-Id: m\r\n"))).payload == b""
            files.faults[files.attempts] = errno.ENOSPC
            assert (await desk.publish("S.a", b"x", part(2, "1")))["error"]["err_code"] == 10023
            assert (await desk.api("STREAM.INFO.S"))["state"]["messages"] == 1
            assert (await desk.ask("S.a", b"x", part(1, more="Nats-Msg-Id: m\r\n"))).payload == b""
            assert (await desk.publish("S.a", b"x", part(2, "1")))["count"] == 2
            assert (await desk.publish("S.a", b"x", b"NATS/1.0\r\nNats-Msg-Id: m\r\n\r\n"))["duplicate"] is True

    asyncio.run(run())
