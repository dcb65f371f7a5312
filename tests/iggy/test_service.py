"""What a server keeps, limits and allows, seen through the client and through the service itself."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater import HeaderValue, TypedHeaders
from headwater.durable_files.files import File, OsFiles
from headwater.errors import DiskFull, EnvironmentProblem, IggyError, StorageError
from headwater.iggy.clients import TCP
from headwater.iggy.dispatch import execute
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.service import Service
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Message, Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy
from headwater.model.typed_headers import HeaderForm

S, T = Identifier("s"), Identifier("t")
OPTIONS = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(housekeeping=3600))


def url(iggy: Iggy, login: str = "iggy:iggy") -> str:
    return f"iggy://{login}@127.0.0.1:{iggy.tcp_port}"


def serving(tmp_path: Path, work: Callable[[Iggy, Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Iggy(OPTIONS, tmp_path) as iggy, await connect(url(iggy)) as client:
            await work(iggy, client)

    asyncio.run(main())


def options(**values: int) -> bytes:
    chosen = TypedHeaders((name, HeaderValue.from_uint64(value)) for name, value in values.items())
    return chosen.encode(HeaderForm.TYPED)


def test_everything_is_there_again_after_a_restart(tmp_path: Path) -> None:
    async def first(iggy: Iggy, client: Client) -> None:
        await client.create_stream("s")
        await client.create_topic("s", "t", 2, options(message_expiry=10**12))
        await client.create_group("s", "t", "g")
        await client.send("s", "t", [Message(b"a"), Message(b"b")], 1)
        await client.store_offset("s", "t", 1, 0, Consumer.single("me"))
        await client.execute(c.CreateUser("alice", "secret", 1, Permissions(read_streams=True)))
        await client.execute(c.CreateToken("token", 0))

    async def second(iggy: Iggy, client: Client) -> None:
        stream = await client.stream("s")
        assert stream is not None and stream.messages == 2
        topic = await client.topic("s", "t")
        assert topic is not None and (len(topic.parts), topic.message_expiry) == (2, 10**12)
        assert [m.payload for m in await client.poll("s", "t", 1, consumer=Consumer.single("me"))] == [b"b"]
        assert (await client.join_group("s", "t", "g")).partitions == [0, 1]
        assert (await client.send("s", "t", [Message(b"c")], 1)).base_offset == 2
        assert [view.name for view in await client.execute(c.GetTokens())] == ["token"]
        async with await connect(url(iggy, "alice:secret")) as alice:
            assert await alice.stream("s") is not None

    serving(tmp_path, first)
    serving(tmp_path, second)


def test_the_root_user_of_an_earlier_release_is_renumbered_and_keeps_its_password(tmp_path: Path) -> None:
    async def before() -> None:
        service = Service(tmp_path)
        await service.start()
        async with service.change() as catalog:
            catalog.users[0].id = 1
            catalog.next_user = 2
        await service.stop()

    async def work(iggy: Iggy, client: Client) -> None:
        assert [user.id for user in await client.execute(c.GetUsers())] == [0]
        made = await client.execute(c.CreateUser("alice", "secret"))
        assert made.id == 2
        with pytest.raises(IggyError, match="root user stays"):
            await execute(iggy.service, next(iter(iggy.service.clients)), c.DeleteUser(Identifier("iggy")))

    asyncio.run(before())
    serving(tmp_path, work)


def test_a_directory_has_one_server_and_its_catalog_is_not_guessed(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        await client.create_stream("s")
        await client.create_topic("s", "t")
        with pytest.raises(EnvironmentProblem, match="another server uses"):
            await Iggy(OPTIONS, tmp_path).start()

    serving(tmp_path, work)
    for copy in tmp_path.glob("catalog.*"):
        copy.unlink()
    with pytest.raises(EnvironmentProblem, match="is lost"):
        asyncio.run(Iggy(OPTIONS, tmp_path).start())
    assert (tmp_path / "logs" / "2").is_dir()


def test_old_messages_expire_and_a_topic_keeps_to_its_size(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        await client.create_stream("s")
        await client.create_topic("s", "small", 1, options(max_topic_size=8 << 20))
        await client.create_topic("s", "young", 1, options(message_expiry=1_000_000))
        for _ in range(12):
            await client.send("s", "small", [Message(bytes(1_000_000))], 0)
        await client.send("s", "young", [Message(b"old")], 0)
        before = iggy.service.clock_us
        iggy.service.clock_us = lambda: before() + 2_000_000
        await client.send("s", "young", [Message(b"new")], 0)
        await iggy.service._housekeeper.look()
        small = await client.topic("s", "small")
        assert small is not None and small.size <= 8 << 20 and 5 <= small.messages < 12
        assert (await client.poll("s", "small", strategy=PollingStrategy.offset(0), count=1))[
            0
        ].offset == 12 - small.messages
        iggy.service.clock_us = lambda: before() + 4_000_000
        await iggy.service._housekeeper.look()
        assert await client.poll("s", "young", strategy=PollingStrategy.first()) == []
        assert (await client.send("s", "young", [Message(b"later")], 0)).base_offset == 2

    serving(tmp_path, work)


def test_purging_begins_anew_and_segments_can_be_dropped(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        await client.create_stream("s")
        await client.create_topic("s", "t", 1, options(segment_size=1 << 20))
        for _ in range(5):
            await client.send("s", "t", [Message(bytes(600_000))], 0)
        await client.store_offset("s", "t", 0, 2)
        await client.execute(c.DeleteSegments(S, T, 0, 2))
        assert (await client.poll("s", "t", strategy=PollingStrategy.first(), count=1))[0].offset == 2
        await client.execute(c.PurgeTopic(S, T))
        assert await client.poll("s", "t") == []
        assert (await client.send("s", "t", [Message(b"x")], 0)).base_offset == 0
        assert await client.offset("s", "t", 0) is None
        await client.delete_stream("s")
        assert await client.stream("s") is None
        assert list((tmp_path / "logs").iterdir()) == []

    serving(tmp_path, work)


def test_partitions_come_and_go(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        await client.create_stream("s")
        await client.create_topic("s", "t", 1)
        await client.create_group("s", "t", "g")
        await client.join_group("s", "t", "g")
        await client.execute(c.CreatePartitions(S, T, 2))
        assert (await client.sync_group("s", "t", "g")).partitions == [0, 1, 2]
        await client.send("s", "t", [Message(b"x")], 2)
        await client.execute(c.DeletePartitions(S, T, 1))
        with pytest.raises(IggyError, match="partition_not_found"):
            await client.poll("s", "t", 2)
        with pytest.raises(IggyError, match="too_many_partitions"):
            await client.execute(c.CreatePartitions(S, T, 1001))

    serving(tmp_path, work)


def test_a_user_may_do_what_was_granted_and_no_more(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        await client.create_stream("s")
        await client.create_topic("s", "t")
        await client.create_topic("s", "other")
        reader = StreamPermissions(topics={0: TopicPermissions(poll_messages=True)})
        await client.execute(c.CreateUser("reader", "secret", 1, Permissions(streams={0: reader})))
        await client.send("s", "t", [Message(b"x")], 0)
        async with await connect(url(iggy, "reader:secret")) as user:
            assert len(await user.poll("s", "t")) == 1
            for refused in (
                user.poll("s", "other"),
                user.send("s", "t", [Message(b"x")], 0),
                user.create_stream("more"),
                user.execute(c.GetUsers()),
                user.execute(c.GetStats()),
            ):
                with pytest.raises(IggyError, match="unauthorized 41"):
                    await refused
            await user.execute(c.ChangePassword(Identifier("reader"), "secret", "secret2"))
            await client.execute(c.UpdatePermissions(Identifier("reader"), Permissions(send_messages=True)))
            await user.send("s", "t", [Message(b"y")], 0)
            await client.execute(c.DeleteUser(Identifier("reader")))
            with pytest.raises(IggyError, match="unauthenticated"):
                await user.execute(c.GetStreams())
        with pytest.raises(IggyError, match="cannot_delete_user"):
            await client.execute(c.DeleteUser(Identifier("iggy")))

    serving(tmp_path, work)


def test_a_repeated_id_is_stored_once_also_after_a_restart(tmp_path: Path) -> None:
    wanted = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(unique_ids_seconds=600))

    async def main() -> None:
        async with asyncio.timeout(60):
            async with Iggy(wanted, tmp_path) as iggy, await connect(url(iggy)) as client:
                await client.create_stream("s")
                await client.create_topic("s", "t")
                batch = [Message(b"a", id=1), Message(b"b", TypedHeaders({"k": "v"}), id=2), Message(b"c")]
                assert (await client.send("s", "t", batch, 0)).base_offset == 0
                assert (await client.send("s", "t", batch[:2], 0)).base_offset == 0
                sent = await client.send(
                    "s", "t", [batch[0], Message(b"d", TypedHeaders({"k": "d"}), id=3), batch[2]], 0
                )
                assert sent.base_offset == 3
            async with Iggy(wanted, tmp_path) as iggy, await connect(url(iggy)) as client:
                await client.send("s", "t", [Message(b"d again", id=3), Message(b"e", id=4), Message(b"e", id=4)], 0)
                found = await client.poll("s", "t", strategy=PollingStrategy.first())
        shown = [(message.offset, message.payload, message.id) for message in found]
        assert shown == [(0, b"a", 1), (1, b"b", 2), (2, b"c", 0), (3, b"d", 3), (4, b"c", 0), (5, b"e", 4)]
        assert found[3].headers == TypedHeaders({"k": "d"})

    asyncio.run(main())


class FullDisk(OsFiles):
    """No room for documents, once a test sets it."""

    full = False

    def create(self, path: str) -> File:
        if self.full and "catalog" in path:
            raise OSError(28, "No space left on device", path)
        return super().create(path)


def test_a_send_that_the_disk_refuses_is_reported_to_operators(tmp_path: Path) -> None:
    async def work(iggy: Iggy, client: Client) -> None:
        noted: list[dict[str, object]] = []
        iggy.service.note = lambda kind, **fields: noted.append({"kind": kind, **fields})
        await client.create_stream("s")
        await client.create_topic("s", "t")
        (topic,) = iggy.service.topics.values()
        (partition,) = topic.partitions

        answers: list[StorageError | None] = []
        refused = DiskFull("no room to store offsets [0, 1)")
        for sends in ([answers.append], [answers.append, answers.append], []):
            partition._on_failed(sends, refused)
        assert answers == [refused] * 3
        reason = "no room on the server's disk"
        assert noted == [{"kind": "write_refused", "face": "iggy", "topic": "t", "reason": reason}] * 2

    serving(tmp_path, work)


def test_a_change_that_the_disk_refuses_is_undone(tmp_path: Path) -> None:
    async def main() -> None:
        files, noted = FullDisk(), list[tuple[str, str]]()
        service = Service(tmp_path, OPTIONS.service, files=files)
        service.note = lambda kind, **fields: noted.append((kind, fields["reason"]))
        await service.start()
        client = service.connect(TCP, "", Era.C3)
        client.user = service.catalog.users[0]
        await execute(service, client, c.CreateStream("kept"))
        files.full = True
        for command in (
            c.CreateStream("lost"),
            c.CreateTopic(Identifier("kept"), "t", 1),
            c.DeleteStream(Identifier("kept")),
        ):
            with pytest.raises(IggyError, match="io_error"):
                await execute(service, client, command)
        files.full = False
        assert noted == [("write_refused", "catalog not saved: No space left on device")] * 3
        assert [stream.name for stream in service.catalog.streams] == ["kept"]
        assert service.topics == {}
        await execute(service, client, c.CreateTopic(Identifier("kept"), "t", 1))
        await service.stop()

    asyncio.run(main())
