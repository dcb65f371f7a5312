"""Schedules from the client, with the real nats-server and with ours."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from headwater.client import sync
from headwater.client.client import connect
from headwater.client.jetstream_types import StreamConfig
from headwater.client.schedules import Schedule
from headwater.errors import ConfigError, JetStreamError

TIMEOUT = 60.0
NOON = datetime(2100, 1, 1, 12, tzinfo=UTC)


def config(name: str) -> StreamConfig:
    return StreamConfig(name=name, subjects=[f"{name}.>"], allow_msg_schedules=True, allow_msg_ttl=True)


@pytest.mark.interop
def test_a_schedule_brings_its_message_and_a_wrong_one_is_refused(url: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(TIMEOUT), await connect(url) as client:
            jetstream = client.jetstream(timeout=20)
            await jetstream.create_stream(config("A"))
            await jetstream.publish("A.data", b"live", headers={"X": "y"})
            soon = Schedule("A.due", at=datetime.now(UTC), source="A.data", ttl="1h", rollup=True)
            await jetstream.publish("A.s", b"own", headers={"Z": "z"}, schedule=soon)
            with pytest.raises(JetStreamError, match="pattern"):
                await jetstream.publish("A.x", schedule=Schedule("A.due", every=timedelta(milliseconds=999)))
            with pytest.raises(JetStreamError, match="time zone"):
                await jetstream.publish("A.x", schedule=Schedule("A.due", cron="@daily", time_zone="Mars"))
            async for message in jetstream.ordered_consumer("A"):
                if message.subject == "A.due":
                    assert (message.data, message.headers["X"]) == (b"live", "y")
                    assert message.headers["Nats-Scheduler"] == "A.s"
                    assert message.headers["Nats-TTL"] == "1h"
                    break

    asyncio.run(main())


@pytest.mark.interop
def test_every_kind_is_taken_by_the_blocking_client(url: str) -> None:
    with sync.connect(url) as client:
        jetstream = client.jetstream(timeout=20)
        jetstream.create_stream(config("B"))
        for number, schedule in enumerate(
            (
                Schedule("B.t", at=NOON),
                Schedule("B.t", every=timedelta(hours=1, seconds=1.5)),
                Schedule("B.t", cron="0 0 0 1 1 *", time_zone="Europe/Berlin"),
            ),
            1,
        ):
            assert jetstream.publish(f"B.{number}", schedule=schedule).seq == number


def test_a_schedule_says_exactly_one_time() -> None:
    assert Schedule("t", at=NOON).headers() == {
        "Nats-Schedule": "@at 2100-01-01T12:00:00+00:00",
        "Nats-Schedule-Target": "t",
    }
    for wrong in (Schedule("t"), Schedule("t", at=NOON, cron="@daily"), Schedule("t", at=NOON.replace(tzinfo=None))):
        with pytest.raises(ConfigError):
            wrong.headers()
