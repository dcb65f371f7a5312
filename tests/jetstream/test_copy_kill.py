"""kill -9 of a server in which one stream copies another: the copies go on where they were, each message once, in order."""

import asyncio
import json
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.headwater_server import start_headwater

from headwater.client.client import Client, connect
from headwater.errors import TransportError

pytestmark = pytest.mark.kill

ROUNDS = 3
PUBLISHED = 400  # in a round, before the kill


async def ask(client: Client, subject: str, body: object = None) -> Any:
    payload = b"" if body is None else json.dumps(body).encode()
    return json.loads((await client.request(f"$JS.API.{subject}", payload, timeout=20.0)).data)


async def make(client: Client) -> None:
    for config in (
        {"name": "O", "subjects": ["o.>"]},
        {"name": "M", "mirror": {"name": "O"}},
        {"name": "Z", "sources": [{"name": "O"}]},
        {"name": "W", "sources": [{"name": "O"}], "max_msgs": 5},
    ):
        assert "error" not in await ask(client, f"STREAM.CREATE.{config['name']}", config)


async def messages(client: Client, name: str) -> list[tuple[int, bytes]]:
    state = (await ask(client, f"STREAM.INFO.{name}"))["state"]
    found = []
    for sequence in range(state["first_seq"], state["last_seq"] + 1):
        answer = await ask(client, f"STREAM.MSG.GET.{name}", {"seq": sequence})
        if "error" not in answer:
            found.append((sequence, b64decode(answer["message"]["data"])))
    return found


async def until_copied(client: Client, name: str, data: bytes) -> None:
    """Wait until the last message of a stream is this one."""
    for _ in range(1500):
        last = (await ask(client, f"STREAM.INFO.{name}"))["state"]["last_seq"]
        answer = await ask(client, f"STREAM.MSG.GET.{name}", {"seq": last}) if last else {}
        if "message" in answer and b64decode(answer["message"]["data"]) == data:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name} has not come to {data!r}")


def test_copies_go_on_where_they_were_when_the_server_was_killed(tmp_path: Path) -> None:
    async def under_load(url: str, first: bool, offset: int) -> None:
        client = await connect(url, reconnect=False)
        if first:
            await make(client)
        for number in range(PUBLISHED):
            await client.publish("o.x", b"%d" % (offset + number))
        await client.request("o.x", b"%d" % (offset + PUBLISHED), timeout=20.0)
        with suppress(TransportError):
            await client.close()

    async def check(url: str) -> None:
        client = await connect(url)
        origin = await messages(client, "O")
        for name in ("M", "Z", "W"):
            await until_copied(client, name, origin[-1][1])
        assert await messages(client, "M") == origin
        assert [data for _, data in await messages(client, "Z")] == [data for _, data in origin]
        assert [data for _, data in await messages(client, "W")] == [data for _, data in origin[-5:]]
        assert [int(data) for _, data in origin] == sorted({int(data) for _, data in origin})
        await client.close()

    arguments = "-js", "-sd", str(tmp_path / "js")
    for number in range(ROUNDS):
        server = start_headwater(tmp_path / "log", *arguments)
        asyncio.run(under_load(server.url, number == 0, number * (PUBLISHED + 1)))
        server.kill()
    with start_headwater(tmp_path / "log", *arguments) as server:
        asyncio.run(check(server.url))
