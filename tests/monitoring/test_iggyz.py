"""/iggyz: topics, how far their groups are behind, and clients; and the same counted by /metrics."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.clusters import until
from support.monitored import monitored, work

from headwater.errors import WriteFailed
from headwater.iggy.catalog import GroupEntry
from headwater.iggy.face import IggyOptions
from headwater.iggy_client.client import connect
from headwater.iggy_wire.commands import Message


def test_without_iggy_the_page_says_that_there_is_none() -> None:
    async def main() -> None:
        async with monitored() as server:
            assert (await server.ask("/iggyz")).document["disabled"] is True
            assert "headwater_iggy_" not in (await server.ask("/metrics")).body.decode()

    asyncio.run(main())


def test_topics_are_shown_with_what_their_groups_have_not_read_yet(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path, iggy=IggyOptions(tcp=("127.0.0.1", 0))) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            link.send(b"PUB s.y 5\r\nhello\r\n" * 9)
            await asyncio.to_thread(link.settle)
            (topic,) = (await server.ask("/iggyz")).document["topics"]
            assert (topic["stream"], topic["name"], topic["origin"]) == ("nats", "S", "nats")
            assert (topic["partitions"], topic["groups"], topic["consumers"]) == (1, [], [])
            service = server.broker.iggy.service
            (held,) = service.topics.values()
            held.entry.groups.append(GroupEntry(id=4, name="readers"))
            held.group(4).join(77)
            held.commit(0, "c:3", 7)
            await until(lambda: held.messages == 10, "all are stored")
            page = (await server.ask("/iggyz")).document
            (topic,) = page["topics"]
            assert topic["groups"] == [{"id": 4, "name": "readers", "members": [77], "behind": 10}]
            assert topic["consumers"] == [{"name": "3", "behind": 2}]
            assert (page["num_topics"], page["num_clients"], page["clients"]) == (1, 0, [])
            assert page["refused_sends"] == 0
            text = (await server.ask("/metrics")).body.decode()
            assert "\nheadwater_iggy_messages_behind{" in text and "\nheadwater_iggy_refused_sends{" in text
            assert (await server.ask("/iggyz?limit=x")).status == 400
            await asyncio.to_thread(link.close)

    asyncio.run(main())


def test_a_topic_whose_disk_fails_makes_the_server_unready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with monitored(store_dir=tmp_path, iggy=IggyOptions(tcp=("127.0.0.1", 0))) as server:
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{server.broker.iggy.tcp_port}") as client:
                await client.create_stream("s")
                await client.create_topic("s", "t")
                await client.send("s", "t", [Message(b"stored")])
            assert (await server.ask("/healthz")).document == {"status": "ok"}
            (topic,) = server.broker.iggy.service.topics.values()
            with monkeypatch.context() as patch:
                patch.setattr(topic.partitions[0], "log", SimpleNamespace(failure=WriteFailed("the disk is broken")))
                answer = await server.ask("/healthz")
                assert answer.status == 503
                assert answer.document["error"].startswith("Iggy topic 't' write error: the disk is broken")
                assert (await server.ask("/healthz?js-server-only=true")).status == 200

    asyncio.run(main())
