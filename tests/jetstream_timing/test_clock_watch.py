"""A clock that is set: what ends at a time of day ends within a second of it, whatever the timers had in mind."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.jetstream_in_process import Desk, served

from headwater.jetstream_timing.clock_watch import ClockWatch
from headwater.model.timestamps import SECOND

HOUR = 3600 * SECOND


class SetClock(list[int]):
    """The time of day, plus what it was moved by."""

    moved = 0

    def __getitem__(self, _: object) -> int:  # type: ignore[override]
        return time.time_ns() + self.moved


async def messages(desk: Desk) -> int:
    return int((await desk.api("STREAM.INFO.S"))["state"]["messages"])


SOON = 20.0  # seconds: a second on a machine of one's own; without the watch half an hour


async def until_empty(desk: Desk) -> float:
    begun = asyncio.get_running_loop().time()
    for _ in range(500):
        if not await messages(desk):
            break
        await asyncio.sleep(0.02)
    else:
        pytest.fail("the messages stay")
    return asyncio.get_running_loop().time() - begun


@pytest.mark.parametrize("kind", ["age", "ttl"])
def test_limits_of_age_and_ttls_hold_within_a_second_of_a_jump(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        clock = SetClock()
        async with served(tmp_path, clock) as desk:
            config = {"max_age": 1800 * SECOND} if kind == "age" else {"allow_msg_ttl": True}
            block = b"NATS/1.0\r\nNats-TTL: 30m\r\n\r\n" if kind == "ttl" else b""
            await desk.make("S", **config)
            await desk.publish("S.x", b"1", block)
            clock.moved = HOUR
            assert await until_empty(desk) < SOON
            await desk.publish("S.x", b"2", block)
            clock.moved = 0  # back again: what was stored in the future stays until then
            await asyncio.sleep(0.6)
            assert await messages(desk) == 1

    asyncio.run(main())
    assert [record.getMessage().split()[0] for record in caplog.records if record.levelname == "WARNING"] == [
        "clock_stepped",
        "clock_stepped",
    ]


def test_a_pause_ends_within_a_second_of_a_jump(tmp_path: Path) -> None:
    async def main() -> None:
        clock = SetClock()
        async with served(tmp_path, clock) as desk:
            await desk.make("S")
            await desk.publish("S.x", b"1")
            until = (datetime.now(UTC) + timedelta(minutes=30)).isoformat().replace("+00:00", "Z")
            await desk.consume("S", "c", durable_name="c", ack_policy="explicit", pause_until=until)
            inbox = desk.listen("inbox.x")
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"inbox.x", b"", b"1")
            await asyncio.sleep(0.05)
            assert inbox.empty
            clock.moved = HOUR
            begun = asyncio.get_running_loop().time()
            assert (await inbox.next()).payload == b"1"
            assert asyncio.get_running_loop().time() - begun < SOON

    asyncio.run(main())


def test_ack_waits_are_no_times_of_day(tmp_path: Path) -> None:
    async def main() -> None:
        clock = SetClock()
        async with served(tmp_path, clock) as desk:
            await desk.make("S")
            await desk.publish("S.x", b"1")
            await desk.consume("S", "c", durable_name="c", ack_policy="explicit", ack_wait=600 * SECOND)
            inbox = desk.listen("inbox.x")
            desk.router.publish(b"$JS.API.CONSUMER.MSG.NEXT.S.c", b"inbox.x", b"", b"2")
            await inbox.next()
            clock.moved = HOUR
            await asyncio.sleep(0.7)
            assert inbox.empty

    asyncio.run(main())


def test_a_clock_that_is_slewed_is_left_alone() -> None:
    async def main() -> None:
        steps: list[int] = []
        loop = asyncio.get_running_loop()
        watch = ClockWatch(lambda: int(loop.time() * SECOND * 1.01), lambda: steps.append(1))
        await asyncio.sleep(1.2)
        watch.stop()
        assert steps == []

    asyncio.run(main())


WITH_ID = b"NATS/1.0\r\nNats-Msg-Id: once\r\n\r\n"


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_the_duplicate_window_is_a_duration_whatever_the_clock_does(tmp_path: Path, jump: int) -> None:
    window = 120 * SECOND

    async def main() -> None:
        clock, ticks = [10 * HOUR], [5 * SECOND]
        async with served(tmp_path, clock, ticks=ticks) as desk:
            await desk.make("S", duplicate_window=window)
            assert (await desk.publish("S.x", b"1", WITH_ID))["seq"] == 1
            clock[0] += jump
            ticks[0] += window - SECOND
            assert (await desk.publish("S.x", b"1", WITH_ID)).get("duplicate") is True
            ticks[0] += 2 * SECOND
            assert (await desk.publish("S.x", b"1", WITH_ID))["seq"] == 2
            await desk.publish("S.y", b"later")
            clock[0] += window + jump
            ticks[0] += window - 10 * SECOND
        for later, known in ((5 * SECOND, True), (10 * SECOND, False)):  # restarts; a clock of seconds begins anew
            clock[0] += later
            async with served(tmp_path, clock, ticks=[1]) as desk:
                assert ("duplicate" in await desk.publish("S.x", b"1", WITH_ID)) is known

    asyncio.run(main())
