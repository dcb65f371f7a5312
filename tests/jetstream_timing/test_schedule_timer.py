"""Schedules of a served stream: each turn is taken once, whatever happens to the server meanwhile."""

import asyncio
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served
from support.power_loss import losses
from support.recording_files import RecordingFiles

from headwater.jetstream_state.schedule_checks import NEXT, SCHEDULER
from headwater.model.header_block import lookup
from headwater.model.timestamps import SECOND, format_time

STORE = Path("store")
NOON = 1_800_000_000 * SECOND

Turn = tuple[bytes | None, bytes | None]


def schedule(pattern: str, target: str = "S.t") -> bytes:
    return f"NATS/1.0\r\nNats-Schedule: {pattern}\r\nNats-Schedule-Target: {target}\r\n\r\n".encode()


def brought(desk: Desk) -> list[Turn]:
    """What schedules have brought, by schedule and next turn, which no two turns share."""
    blocks = [record.header_block for record in desk.service.streams["S"].contents.scan(0) if record.subject == b"S.t"]
    return [(lookup(block, SCHEDULER), lookup(block, NEXT)) for block in blocks]


async def step(desk: Desk) -> None:
    """Take what is due by the clock of the test, durably."""
    stream = desk.service.streams["S"]
    stream.on_clock_step()
    await stream.flush()


async def begin(desk: Desk, clock: list[int]) -> None:
    await desk.make("S", allow_msg_schedules=True)
    await desk.publish("S.once", b"1", schedule(f"@at {format_time(clock[0] + SECOND)}"))
    await desk.publish("S.often", b"2", schedule("@every 1s"))


def test_turns_go_on_where_they_were_over_a_restart_and_missed_ones_are_taken_once() -> None:
    async def run() -> None:
        clock, files = [NOON], RecordingFiles()
        async with served(STORE, clock, files) as desk:
            await begin(desk, clock)
            clock[0] += SECOND
            await step(desk)
            assert len(brought(desk)) == 2
        async with served(STORE, clock, files) as desk:
            await step(desk)
            assert len(brought(desk)) == 2
        clock[0] += 100 * SECOND
        async with served(STORE, clock, files) as desk:
            await step(desk)
            await step(desk)
            assert len(brought(desk)) == 3
            assert (await desk.api("STREAM.INFO.S"))["state"]["messages"] == 4

    asyncio.run(run())


def test_a_turn_is_taken_once_over_a_power_loss_at_any_call_also_where_its_message_is_gone() -> None:
    async def run() -> int:
        clock, files = [NOON], RecordingFiles()
        known: list[tuple[int, Turn]] = []
        async with served(STORE, clock, files) as desk:
            await begin(desk, clock)
            begun = len(files.calls)
            for _ in range(3):
                clock[0] += SECOND
                await step(desk)
                known += [(len(files.calls), turn) for turn in brought(desk)]
                await desk.api("STREAM.PURGE.S", {"filter": "S.t"})
            ended = len(files.calls)
        points = 0
        for loss in losses(files, begun):
            if loss.calls > ended:
                break
            points += 1
            async with served(STORE, clock, loss.files) as desk:
                before = brought(desk)
                await step(desk)
                after = brought(desk)
                assert after[: len(before)] == before, loss.name
                assert len(set(after)) == len(after), loss.name
                gone = {turn for calls, turn in known if calls <= loss.calls}
                assert not gone & set(after[len(before) :]), loss.name
                held = {record.subject for record in desk.service.streams["S"].contents.scan(0)}
                assert b"S.once" not in held, loss.name
        return points

    assert asyncio.run(run()) > 30


def test_what_is_refused_is_tried_again_and_said_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        clock = [NOON]
        async with served(STORE, clock, RecordingFiles()) as desk:
            await begin(desk, clock)
            stream = desk.service.streams["S"]
            stream.limit_room(lambda size: False)
            clock[0] += SECOND
            await step(desk)
            assert brought(desk) == []
            assert "schedule_not_stored stream=S" in caplog.text
            stream.limit_room(None)
            clock[0] += 10 * SECOND
            await step(desk)
            assert len(brought(desk)) == 2

    asyncio.run(run())


def test_a_sealed_stream_and_a_stopped_one_bring_nothing() -> None:
    async def run() -> None:
        clock = [NOON]
        async with served(STORE, clock, RecordingFiles()) as desk:
            await begin(desk, clock)
            stream = desk.service.streams["S"]
            config = {"name": "S", "subjects": ["S.>"], "allow_msg_schedules": True, "sealed": True}
            assert "error" not in await desk.api("STREAM.UPDATE.S", config)
            clock[0] += SECOND
            await step(desk)
            assert brought(desk) == []
        stream.on_clock_step()

    asyncio.run(run())
