"""`compression: s2` beside the real nats-server: the same answers, about the same room on the disk; and a program that reads
a compressed stream of ours, over NATS or as Iggy's topic, before a kill -9 and after it, gets what was published."""

import asyncio
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server

from headwater.client.client import Client, connect
from headwater.client.jetstream_types import StreamConfig
from headwater.iggy.face import IggyOptions
from headwater.iggy_client.client import connect as connect_iggy
from headwater.iggy_wire.identifiers import PollingStrategy
from headwater.server.broker import Broker

COUNT = 2000
CONFIG: dict[str, Any] = {
    "name": "C",
    "subjects": ["c.*"],
    "max_bytes": 4 << 20,
    "compression": "s2",
}  # segments of 512 KiB
SPACE = 1_600_000  # bytes; the messages have 2.4 million, two segments may not be compressed


def payloads() -> list[bytes]:
    random = Random(4)
    text = "the words of an event are much the same from one to the next; " * 18
    return [json.dumps({"order": random.randrange(1 << 40), "note": text}).encode() for _ in range(COUNT)]


async def ask(client: Client, subject: str, body: object = None) -> dict[str, Any]:
    payload = b"" if body is None else json.dumps(body).encode()
    answer: dict[str, Any] = json.loads((await client.request(f"$JS.API.{subject}", payload, timeout=20.0)).data)
    return answer


async def fill(client: Client, wanted: list[bytes]) -> None:
    publisher = client.jetstream().publisher()
    async with publisher:
        for number, payload in enumerate(wanted):
            await publisher.publish(f"c.{number % 5}", payload)


async def everything(client: Client) -> list[bytes]:
    found: list[bytes] = []
    async for message in client.jetstream().ordered_consumer("C"):
        found.append(message.data)
        if len(found) == COUNT:
            break
    return found


def used(directory: Path) -> int:
    """Bytes on the disk in the files of messages."""
    names = ("*.log", "*.blk")
    return sum(path.stat().st_blocks * 512 for name in names for path in directory.rglob(name))


async def until_compressed(client: Client, store: Path) -> None:
    async with asyncio.timeout(40):
        while used(store) >= SPACE:
            await ask(client, "STREAM.INFO.C")


@pytest.mark.interop
def test_requests_about_compression_are_answered_alike_and_the_disk_holds_as_little(tmp_path: Path) -> None:
    wanted = payloads()

    async def conversation(url: str, ours: bool) -> list[Any]:
        async with await connect(url) as client:
            made = await ask(client, "STREAM.CREATE.C", CONFIG)
            memory = await ask(client, "STREAM.CREATE.M", {"name": "M", "storage": "memory", "compression": "s2"})
            zipped = await ask(client, "STREAM.CREATE.Z", {"name": "Z", "compression": "zip"})
            await fill(client, wanted)
            if ours:
                await until_compressed(client, tmp_path / "ours")
            assert await everything(client) == wanted
            plain = await ask(client, "STREAM.UPDATE.C", {**CONFIG, "compression": "none"})
            again = await ask(client, "STREAM.UPDATE.C", CONFIG)
            info = await ask(client, "STREAM.INFO.C")
            shown = [each["config"] for each in (made, memory, plain, again, info)]
            for config in shown:
                del config["metadata"]
            return [*shown, zipped["error"], info["state"]["messages"], info["state"]["bytes"]]

    with (
        start_nats_server(tmp_path / "real") as real,
        start_headwater(tmp_path / "ours", "-js", "-sd", str(tmp_path / "ours" / "js")) as ours,
    ):
        answers = [asyncio.run(conversation(server.url, server is ours)) for server in (real, ours)]
    assert answers[1] == answers[0]
    sizes = [used(tmp_path / name) for name in ("real", "ours")]
    assert sizes[1] < 1.2 * sizes[0], sizes
    assert sizes[1] < SPACE, sizes


def test_what_was_compressed_is_read_over_nats_and_iggy_also_after_a_kill(tmp_path: Path) -> None:
    wanted = payloads()
    store = tmp_path / "js"

    async def before(url: str) -> None:
        async with await connect(url) as client:
            await ask(client, "STREAM.CREATE.C", CONFIG)
            await fill(client, wanted)
            await until_compressed(client, store)

    with start_headwater(tmp_path, "-js", "-sd", str(store)) as server:
        asyncio.run(before(server.url))
        server.kill()

    async def after() -> None:
        iggy = IggyOptions(tcp=("127.0.0.1", 0))
        async with (
            asyncio.timeout(60),
            Broker(jetstream=True, store_dir=store, iggy=iggy) as broker,
            await connect(broker.url) as client,
            await connect_iggy(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as other,
        ):
            assert [finding for service in broker.jetstreams.values() for finding in service.findings()] == []
            assert await everything(client) == wanted
            assert (await client.jetstream().get_message("C", 1234)).data == wanted[1233]
            found: list[bytes] = []
            while len(found) < COUNT:
                polled = await other.poll("nats", "C", 0, strategy=PollingStrategy.offset(len(found)), count=500)
                found += [message.payload for message in polled]
            assert found == wanted

    asyncio.run(after())


def test_a_stream_that_was_compressed_elsewhere_is_served_without_the_library_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        wanted = payloads()
        config = StreamConfig(name="C", subjects=["c.*"], max_bytes=4 << 20, compression="s2")
        async with Broker(jetstream=True, store_dir=tmp_path) as broker, await connect(broker.url) as client:
            await client.jetstream().create_stream(config)
            await fill(client, wanted)
            await until_compressed(client, tmp_path)
        monkeypatch.setitem(sys.modules, "cramjam", None)
        async with Broker(jetstream=True, store_dir=tmp_path) as broker, await connect(broker.url) as client:
            assert await everything(client) == wanted
            await client.jetstream().publish("c.1", b"more")

    asyncio.run(main())
    assert "stream_not_compressed stream=C hint=install headwater[compression]" in caplog.text
