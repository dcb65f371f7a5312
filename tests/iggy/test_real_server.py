"""Our client against Apache's own server of 0.9, where HEADWATER_IGGY_SERVER names one: what holds here holds there."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headwater import HeaderValue, TypedHeaders
from headwater.errors import HeadwaterError, IggyError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import reply_codec
from headwater.iggy_wire.batches import of_messages
from headwater.iggy_wire.classic_codec import write_address
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy, position_of_key

SERVER = os.environ.get("HEADWATER_IGGY_SERVER", "")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        not SERVER, reason="HEADWATER_IGGY_SERVER names no iggy-server: our client was not run against it"
    ),
]
HEADERS = TypedHeaders([("key 1", "value1"), ("n", HeaderValue.from_uint64(5)), ("blob", b"\0\xff")])


@asynccontextmanager
async def real_server(directory: Path, listener: str = "tcp") -> AsyncIterator[str]:
    """A server process and its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        port, web = free.getsockname()[1], other.getsockname()[1]
    settings = {
        "IGGY_SYSTEM_PATH": str(directory),
        "IGGY_TCP_ADDRESS": f"127.0.0.1:{port}",
        "IGGY_HTTP_ENABLED": str(listener == "http").lower(),
        "IGGY_HTTP_ADDRESS": f"127.0.0.1:{web}",
        "IGGY_QUIC_ENABLED": "false",
        "IGGY_WEBSOCKET_ENABLED": "false",
        "IGGY_ROOT_USERNAME": "iggy",
        "IGGY_ROOT_PASSWORD": "iggy",
        "IGGY_SYSTEM_SHARDING_CPU_ALLOCATION": "1",
    }
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            SERVER, env=os.environ | settings, cwd=directory, stdout=log, stderr=asyncio.subprocess.STDOUT
        )
    try:
        yield f"iggy+{listener}://iggy:iggy@127.0.0.1:{web if listener == 'http' else port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def connected(url: str) -> Client:
    while True:
        try:
            return await connect(url)
        except HeadwaterError as error:
            if isinstance(error, IggyError):
                raise
            await asyncio.sleep(0.05)


def test_a_key_leads_to_the_same_partition_there_and_here(tmp_path: Path) -> None:
    """The key goes over the wire, so the server is who looks where it belongs; ours is asked the same."""

    async def places(client: Client) -> list[int]:
        s, t = Identifier("s"), Identifier("t")
        await client.create_stream("s")
        await client.create_topic("s", "t", 7)
        batch, count = of_messages([Message(b"x")], 1)
        found = []
        for number in range(20):
            address = write_address(c.SendMessages(s, t, Partitioning.key(b"%d" % number), count))
            reply = await client.request(c.Code.SEND_MESSAGES, address, batch)
            (sent,) = reply_codec.decode(c.Code.SEND_MESSAGES, reply, Era.V)
            found.append(sent.partition)
        return found

    async def main() -> None:
        async with asyncio.timeout(60), real_server(tmp_path) as url, await connected(url) as client:
            there = await places(client)
        own = IggyOptions(tcp=("127.0.0.1", 0))
        async with asyncio.timeout(60), Iggy(own, tmp_path / "own") as iggy:
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
                assert await places(client) == there
        assert there == [position_of_key(b"%d" % number, 7) for number in range(20)]

    asyncio.run(main())


def test_our_client_sends_polls_and_keeps_offsets_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), real_server(tmp_path) as url, await connected(url) as client:
            await client.ping()
            await client.create_stream("s")
            assert await client.stream("nothing") is None
            made = await client.create_topic("s", "t", 2)
            assert made.partitions == 2
            sent = [Message(b"one", HEADERS, id=7), Message(b"two")]
            assert (await client.send("s", "t", sent, 0)).base_offset == 0
            await client.send("s", "t", [Message(b"three")], 0)
            await client.send("s", "t", [Message(b"keyed")], Partitioning.key("k"))
            found = await client.poll("s", "t", 0, strategy=PollingStrategy.first(), count=2)
            first, second = found
            assert (first.offset, first.payload, first.id, first.headers) == (0, b"one", 7, HEADERS)
            assert second.payload == b"two"
            reader = Consumer.single("me")
            await client.store_offset("s", "t", 0, 1, reader)
            stored = await client.offset("s", "t", 0, reader)
            assert stored is not None and stored.stored_offset == 1
            (following,) = await client.poll("s", "t", 0, consumer=reader, count=1)
            assert following.payload == b"three"
            await client.create_group("s", "t", "g")
            assert sorted((await client.join_group("s", "t", "g")).partitions) == [0, 1]
            await client.leave_group("s", "t", "g")
            with pytest.raises(IggyError, match="consumer_group_member_not_found"):
                await client.sync_group("s", "t", "g")
            with pytest.raises(IggyError) as refused:
                await client.poll("s", "t", 9, strategy=PollingStrategy.first())
            assert refused.value.number == 3007
            await client.execute(c.PurgeTopic(Identifier("s"), Identifier("t")))
            await client.delete_stream("s")
            token = await client.create_token("mine")
            await client.log_out()
            await client.log_in_with_token(token)
            assert await client.streams() == []

    asyncio.run(main())


def test_our_client_sends_polls_and_describes_there_over_http(tmp_path: Path) -> None:
    """Sizes have units there, numbers end at 64 bits, and names of a snapshot's parts are its own."""

    async def main() -> None:
        async with asyncio.timeout(60), real_server(tmp_path, "http") as url, await connected(url) as client:
            await client.create_stream("s")
            await client.create_topic("s", "t", 1)
            await client.send("s", "t", [Message(b"one", HEADERS, id=2**100), Message(b"two")], 0)
            first, second = await client.poll("s", "t", 0, strategy=PollingStrategy.first())
            assert (first.payload, first.id, first.headers, second.payload) == (b"one", 2**100, HEADERS, b"two")
            stream, topic = await client.stream("s"), await client.topic("s", "t")
            assert stream is not None and topic is not None
            assert stream.size == topic.size == topic.parts[0].size > 0
            assert (await client.stats()).messages == 2
            assert (await client.snapshot())[:2] == b"PK"

    asyncio.run(main())


def test_pings_and_polls_among_sends_get_their_own_answers_there(tmp_path: Path) -> None:
    """That server answers a ping before the send in front of it."""

    async def main() -> None:
        async with asyncio.timeout(60), real_server(tmp_path) as url, await connected(url) as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            await client.create_partitions("s", "t", 1)
            with pytest.raises(IggyError) as refused:
                await client.create_partitions("s", "nothing", 1)
            assert refused.value.number == 2010
            await client.delete_segments("s", "t", 0, 1)
            for turn in range(20):
                sent, _, polled, topic = await asyncio.gather(
                    client.send("s", "t", [Message(bytes(1000))] * 500, 0),
                    client.ping(),
                    client.poll("s", "t", 1, strategy=PollingStrategy.first()),
                    client.topic("s", "t"),
                )
                assert sent.base_offset == turn * 500 and polled == []
                assert topic is not None and topic.name == "t"

    asyncio.run(main())
