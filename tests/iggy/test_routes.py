"""A way that is remembered leads where the long one would, or is forgotten."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater.errors import IggyError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.routes import MOST, Routes
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Message, Permissions
from headwater.iggy_wire.identifiers import Identifier, Partitioning, PollingStrategy

S, T = Identifier("s"), Identifier("t")


def serving(tmp_path: Path, work: Callable[[Iggy, Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
                await client.create_stream("s")
                await client.create_topic("s", "t", 2)
                await work(iggy, client)

    asyncio.run(main())


async def payloads(client: Client, partition: int = 0) -> list[bytes]:
    return [m.payload for m in await client.poll("s", "t", partition, strategy=PollingStrategy.first())]


def test_the_same_send_and_poll_again_find_the_same_partition(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        sent = [await client.send("s", "t", [Message(b"%d" % number)], 1) for number in range(5)]
        assert [(one.stream, one.topic, one.partition, one.base_offset) for one in sent] == [
            (0, 0, 1, number) for number in range(5)
        ]
        for _ in range(3):
            assert await payloads(client, 1) == [b"0", b"1", b"2", b"3", b"4"]
            assert await payloads(client, 0) == []
        for start in (4, 2, 3):
            found = await client.poll("s", "t", 1, strategy=PollingStrategy.offset(start), count=1)
            assert [message.offset for message in found] == [start]

    serving(tmp_path, work)


def test_a_topic_that_is_made_anew_is_another_one(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        for round_ in (b"one", b"two"):
            await client.send("s", "t", [Message(round_)], 0)
            assert await payloads(client) == [round_]
            await client.execute(c.DeleteTopic(S, T))
            for attempt in (client.send("s", "t", [Message(b"x")], 0), client.poll("s", "t", 0)):
                with pytest.raises(IggyError) as refused:
                    await attempt
                assert refused.value.name == "topic_id_not_found"
            await client.create_topic("s", "t", 2)

    serving(tmp_path, work)


def test_what_was_purged_is_empty_and_a_partition_that_went_is_refused(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        await client.send("s", "t", [Message(b"old")], 1)
        assert await payloads(client, 1) == [b"old"]
        await client.execute(c.PurgeTopic(S, T))
        assert await payloads(client, 1) == []
        assert (await client.send("s", "t", [Message(b"new")], 1)).base_offset == 0
        await client.execute(c.DeletePartitions(S, T, 1))
        with pytest.raises(IggyError, match="resource_not_found"):
            await client.send("s", "t", [Message(b"x")], 1)
        with pytest.raises(IggyError, match="partition_not_found"):
            await client.poll("s", "t", 1)

    serving(tmp_path, work)


def test_a_permission_that_is_taken_away_ends_at_once(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        user = Identifier("alice")
        allowed = Permissions(poll_messages=True, send_messages=True, read_streams=True, read_topics=True)
        await client.execute(c.CreateUser("alice", "secret", 1, allowed))
        async with await connect(f"iggy://alice:secret@127.0.0.1:{iggy.tcp_port}") as alice:
            for _ in range(2):
                await alice.send("s", "t", [Message(b"x")], 0)
                assert await payloads(alice)
            await client.execute(c.UpdatePermissions(user, Permissions(poll_messages=True)))
            with pytest.raises(IggyError) as refused:
                await alice.send("s", "t", [Message(b"x")], 0)
            assert refused.value.name == "unauthorized"
            assert len(await payloads(alice)) == 2

    serving(tmp_path, work)


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        service = iggy.service
        routes = Routes(service, next(iter(service.clients)))
        address = c.SendMessages(S, T, Partitioning.partition(0), 1)
        sent = await client.send("s", "t", [Message(b"x")], 0)
        assert routes.send(b"0") is None
        for number in range(MOST + 1):
            routes.keep_send(b"%d" % number, address, sent)
        assert routes.send(b"0") is None and routes.send(b"%d" % MOST) is not None
        assert sum(routes.send(b"%d" % number) is not None for number in range(MOST)) == MOST * 7 // 8
        routes.keep_send(b"balanced", c.SendMessages(S, T, Partitioning.balanced(), 1), sent)
        assert routes.send(b"balanced") is None

    serving(tmp_path, work)
