"""kill -9 of a server in which one stream copies another: the copies go on where they were, each message once, in order."""

import asyncio
import json
import random
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.headwater_server import HeadwaterServer, start_headwater

from headwater.client.client import Client, connect
from headwater.errors import HeadwaterError, TransportError

pytestmark = pytest.mark.kill

ROUNDS = 3
PUBLISHED = 400  # in a round, before the kill
SIZE = 8192  # of a message of the work queue: so large that what is consumed soon leaves the disk


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


class WorkQueue:
    """A work queue that is filled by a source and emptied by one worker: `delivered` has the payload at each sequence of
    the queue that the worker ever saw."""

    def __init__(self) -> None:
        self.delivered: dict[int, bytes] = {}
        self._published = 0

    async def make(self, client: Client) -> None:
        origin = {"name": "O", "subjects": ["o.>"]}
        queue = {"name": "Q", "retention": "workqueue", "sources": [{"name": "O"}]}
        worker = {"stream_name": "Q", "config": {"durable_name": "w", "ack_policy": "explicit", "ack_wait": 10**9}}
        assert "error" not in await ask(client, "STREAM.CREATE.O", origin)
        assert "error" not in await ask(client, "STREAM.CREATE.Q", queue)
        assert "error" not in await ask(client, "CONSUMER.DURABLE.CREATE.Q.w", worker)

    async def publish(self, client: Client) -> None:
        for _ in range(PUBLISHED):
            self._published += 1
            await client.publish("o.x", b"%d." % self._published + bytes(SIZE))
        self._published += 1
        await client.request("o.x", b"%d." % self._published, timeout=20.0)  # all before it is durable, too

    async def work(self, client: Client, count: int) -> None:
        """Take and acknowledge so many messages."""
        consumer = client.jetstream(timeout=20.0).pull_consumer("Q", "w")
        for _ in range(1000):
            for message in await consumer.fetch(40, timeout=0.5):
                data = bytes(message.data).partition(b".")[0]
                assert self.delivered.setdefault(message.metadata.stream_seq, data) == data
                await message.ack(confirm=20.0)
                count -= 1
            if count <= 0:
                return
        raise AssertionError(f"{count} messages have not come")

    async def finish(self, client: Client) -> None:
        """Empty the queue of all that the origin holds, and see that no message came twice."""
        origin = [data.partition(b".")[0] for _, data in await messages(client, "O")]
        for _ in range(100):
            if set(self.delivered.values()) >= set(origin):
                break
            await self.work(client, 1)
        assert sorted(self.delivered.values()) == sorted(origin)
        assert (await ask(client, "STREAM.INFO.Q"))["state"]["last_seq"] == max(self.delivered)


def test_a_source_brings_no_message_again_that_a_work_queue_has_passed_on(tmp_path: Path) -> None:
    chance = random.Random(19)
    queue = WorkQueue()

    async def under_load(server: HeadwaterServer, number: int) -> None:
        client = await connect(server.url, reconnect=False)
        if number == 0:
            await queue.make(client)
        publishing = asyncio.create_task(queue.publish(client))
        if number % 2:  # killed while the queue is filled and emptied
            await queue.work(client, chance.randrange(PUBLISHED // 2, PUBLISHED))
        else:  # killed when nothing is left of what was copied
            await publishing
            await queue.finish(client)
            await asyncio.sleep(chance.uniform(0.3, 1.0))
        server.kill()
        publishing.cancel()
        with suppress(HeadwaterError):
            await client.close()

    async def check(url: str) -> None:
        client = await connect(url)
        await queue.publish(client)
        await queue.finish(client)
        await client.close()

    arguments = "-js", "-sd", str(tmp_path / "js")
    for number in range(ROUNDS):
        with start_headwater(tmp_path / "log", *arguments) as server:
            asyncio.run(under_load(server, number))
    with start_headwater(tmp_path / "log", *arguments) as server:
        asyncio.run(check(server.url))
    assert list((tmp_path / "js").rglob("positions.a")), "removed messages have left the disk"
