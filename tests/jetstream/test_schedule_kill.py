"""kill -9 of a server whose schedules are due: each message is brought once, whenever the kill came."""

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.headwater_server import HeadwaterServer, start_headwater

from headwater.client.client import Client, connect
from headwater.client.jetstream_types import StreamConfig
from headwater.client.schedules import Schedule
from headwater.errors import HeadwaterError

pytestmark = pytest.mark.kill

COUNT = 60
SPREAD = 2.0  # seconds over which they are due


def started(directory: Path) -> HeadwaterServer:
    return start_headwater(directory, "-js", "-sd", str(directory / "js"))


async def brought(client: Client) -> dict[str, int]:
    """How many messages each target has."""
    answer = await client.request(
        "$JS.API.STREAM.INFO.L", json.dumps({"subjects_filter": "l.due.*"}).encode(), timeout=20
    )
    state: dict[str, Any] = json.loads(answer.data)["state"]
    return dict(state.get("subjects") or {})


async def schedule_all(url: str) -> None:
    async with await connect(url) as client:
        jetstream = client.jetstream()
        await jetstream.create_stream(StreamConfig(name="L", subjects=["l.>"], allow_msg_schedules=True))
        begin = datetime.now(UTC) + timedelta(seconds=0.5)
        for number in range(COUNT):
            moment = begin + timedelta(seconds=SPREAD * number / COUNT)
            plan = Schedule(target=f"l.due.{number}", at=moment)
            await jetstream.publish(f"l.plan.{number}", b"%d" % number, schedule=plan)


async def until_brought(url: str, count: int) -> dict[str, int]:
    async with asyncio.timeout(60), await connect(url) as client:
        while len(found := await brought(client)) < count:
            with suppress(HeadwaterError):
                await client.flush()
        return found


def test_each_scheduled_message_is_brought_once_whenever_the_server_was_killed(tmp_path: Path) -> None:
    server = started(tmp_path)
    try:
        asyncio.run(schedule_all(server.url))
        for share in (COUNT // 6, COUNT // 2):
            asyncio.run(until_brought(server.url, share))
            server.kill()
            server = started(tmp_path)
        found = asyncio.run(until_brought(server.url, COUNT))
        server.kill()
        server = started(tmp_path)
        assert asyncio.run(until_brought(server.url, COUNT)) == found
    finally:
        server.kill()
    assert found == {f"l.due.{number}": 1 for number in range(COUNT)}
