"""A member of a consumer group that has gone silent leaves the group, is evicted, and its partitions go to the others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.iggy_service import Desk, G, S, T, at_desk

from headwater.errors import IggyError
from headwater.iggy.clients import Client
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.silent_members import SilentMembers
from headwater.iggy_client.client import connect
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer

LOOKS = 8  # of five seconds, until 36 are over


def watched(desk: Desk) -> tuple[SilentMembers, list[dict[str, Any]]]:
    service, events = desk.service, list[dict[str, Any]]()
    note = lambda kind, **fields: events.append({"kind": kind, **fields})  # noqa: E731
    return SilentMembers(service.clients, 30, 5, service.leave_groups, note), events


def test_a_silent_member_leaves_and_its_partitions_go_to_the_others(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(partitions=2)
        silent, alive = desk.client(), desk.client()
        ended: list[Client] = []
        silent.evict = lambda: ended.append(silent)
        for member in (silent, alive):
            await desk.do(c.JoinGroup(S, T, G), member)
        members, events = watched(desk)
        for _ in range(LOOKS):
            members.look()
            alive.requests += 1
        assert not ended and not events
        members.look()
        assert ended == [silent] and silent.memberships == set()
        assert [event["kind"] for event in events] == ["stale_connection"] and "36 s" in events[0]["reason"]
        assert (await desk.do(c.SyncGroup(S, T, G), alive)).partitions == [0, 1]
        members.look()
        assert len(ended) == 1

    at_desk(tmp_path, work)


def test_who_is_in_no_group_or_waits_or_is_of_an_earlier_era_is_left_alone(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        alone, waiting, old = desk.client(), desk.client(), desk.client(Era.C3)
        for member in (waiting, old):
            await desk.do(c.JoinGroup(S, T, G), member)
        waiting.waiting = 1
        members, events = watched(desk)
        for client in (alone, waiting, old):
            client.evict = lambda: pytest.fail("it was evicted")
        for _ in range(3 * LOOKS):
            members.look()
        assert events == []
        waiting.waiting = 0
        ended: list[int] = []
        waiting.evict = lambda: ended.append(1)
        for _ in range(LOOKS + 1):
            members.look()
        assert ended == [1]

    at_desk(tmp_path, work)


def test_no_heartbeat_interval_is_any_time(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.do(c.JoinGroup(S, T, G), desk.root)
        service = desk.service
        members = SilentMembers(service.clients, 0, 5, service.leave_groups, lambda kind, **fields: pytest.fail(kind))
        for _ in range(50):
            members.look()
        assert desk.root.memberships

    at_desk(tmp_path, work)


def test_over_the_wire_it_learns_why_and_the_other_reads_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Iggy(IggyOptions(tcp=("127.0.0.1", 0)), tmp_path) as iggy:
            url = f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}"
            async with await connect(url) as alive:
                await alive.create_stream("s")
                await alive.create_topic("s", "t", partitions=2)
                await alive.create_group("s", "t", "g")
                silent = await connect(url, heartbeat=0, reconnect_attempts=0)
                await silent.join_group("s", "t", "g")
                await alive.join_group("s", "t", "g")
                await alive.send("s", "t", [Message(b"hello")], 0)  # the partition of the silent one
                for _ in range(LOOKS + 1):
                    iggy.service.silent.look()
                    await alive.ping()
                with pytest.raises(IggyError) as caught:
                    await silent.ping()
                assert caught.value.name == "stale_client"
                me = Consumer.group("g")
                (message,) = await alive.poll("s", "t", 0, consumer=me)
                assert message.payload == b"hello"
                await silent.close()

    asyncio.run(main())
