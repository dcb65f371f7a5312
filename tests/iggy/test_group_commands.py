"""Groups and committed offsets, command by command, for clients of several eras."""

from pathlib import Path

import pytest
from support.iggy_service import Desk, G, S, T, at_desk

from headwater.iggy_wire import commands as c
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier

ME, GROUP = Consumer.single("me"), Consumer.group("g")


def test_groups_are_made_shown_and_removed(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(3)
        assert await desk.refused(c.CreateGroup(S, T, "g")) == "consumer_group_name_already_exists"
        assert await desk.refused(c.CreateGroup(S, T, "g" * 256)) == "invalid_consumer_group_name"
        second = await desk.do(c.CreateGroup(S, T, "h"))
        assert (second.id, second.partitions, second.members) == (1, 3, 0)
        assert [group.name for group in await desk.do(c.GetGroups(S, T))] == ["g", "h"]
        await desk.do(c.DeleteGroup(S, T, Identifier("g")))
        assert await desk.do(c.GetGroup(S, T, G)) is None
        assert await desk.refused(c.DeleteGroup(S, T, G)) == "consumer_group_name_not_found"
        assert (await desk.do(c.CreateGroup(S, T, "again"))).id == 0

    at_desk(tmp_path, work)


def test_the_seeds_groups_have_a_number_and_no_name(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        seed = desk.client(Era.S, user=None)
        s, t = Identifier(1), Identifier(1)
        await desk.do(c.CreateStream("s", id=1), seed)
        await desk.do(c.CreateTopic(s, "t", 2, id=1), seed)
        assert await desk.refused(c.CreateGroup(s, t), seed) == "invalid_consumer_group_id"
        await desk.do(c.CreateGroup(s, t, id=4), seed)
        assert await desk.refused(c.CreateGroup(s, t, "b", id=4), seed) == "consumer_group_id_already_exists"
        await desk.do(c.JoinGroup(s, t, Identifier(4)), seed)
        (member,) = (await desk.do(c.GetGroup(s, t, Identifier(4)), seed)).details
        assert member.partitions == [1, 2], "counted from 1"

    at_desk(tmp_path, work)


def test_members_share_the_partitions_and_hear_of_every_change(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(3)
        a, b = desk.client(), desk.client()
        await desk.do(c.JoinGroup(S, T, G), a)
        first = await desk.do(c.SyncGroup(S, T, G), a)
        assert first.partitions == [0, 1, 2]
        await desk.do(c.JoinGroup(S, T, G), b)
        await desk.do(c.JoinGroup(S, T, G), b)
        shared = [await desk.do(c.SyncGroup(S, T, G), client) for client in (a, b)]
        assert [share.partitions for share in shared] == [[0, 2], [1]]
        assert shared[0].generation == shared[1].generation > first.generation
        shown = {member.id: member.partitions for member in (await desk.do(c.GetGroup(S, T, G))).details}
        assert shown == {a.id: [0, 2], b.id: [1]}
        desk.service.disconnect(a)
        assert (await desk.do(c.SyncGroup(S, T, G), b)).partitions == [0, 1, 2], "who is gone has left"
        await desk.do(c.LeaveGroup(S, T, G), b)
        assert await desk.refused(c.LeaveGroup(S, T, G), b) == "consumer_group_member_not_found"
        assert await desk.do(c.SyncGroup(S, T, G), b) is None, "as Apache's server tells a client that it is no member"

    at_desk(tmp_path, work)


def test_a_group_that_is_removed_takes_offsets_and_memberships_along(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.send(b"a", b"b")
        await desk.do(c.JoinGroup(S, T, G))
        await desk.do(c.StoreOffset(GROUP, S, T, 0, 1))
        await desk.do(c.DeleteGroup(S, T, G))
        assert desk.root.memberships == set()
        await desk.do(c.CreateGroup(S, T, "g"))
        await desk.do(c.JoinGroup(S, T, G))
        assert await desk.do(c.GetOffset(GROUP, S, T, 0)) is None

    at_desk(tmp_path, work)


def test_an_offset_is_kept_by_consumer_and_partition_until_it_is_deleted(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.send(b"a", b"b", b"c", to=1)
        assert await desk.do(c.GetOffset(ME, S, T, 1)) is None
        await desk.do(c.StoreOffset(ME, S, T, 1, 1))
        view = await desk.do(c.GetOffset(ME, S, T, 1))
        assert (view.partition, view.current_offset, view.stored_offset) == (1, 2, 1)
        old = await desk.do(c.GetOffset(ME, S, T, 2), desk.client(Era.B))
        assert (old.partition, old.stored_offset) == (2, 1), "counted from 1"
        for other in (c.GetOffset(ME, S, T, 0), c.GetOffset(Consumer.single("you"), S, T, 1)):
            assert await desk.do(other) is None
        assert await desk.refused(c.StoreOffset(ME, S, T, 1, 3)) == "invalid_offset"
        assert await desk.refused(c.StoreOffset(ME, S, T, 2, 0)) == "partition_not_found"
        await desk.do(c.DeleteOffset(ME, S, T, 1))
        assert await desk.refused(c.DeleteOffset(ME, S, T, 1)) == "consumer_offset_not_found"

    at_desk(tmp_path, work)


def test_an_offset_is_on_disk_when_it_is_answered_unless_nobody_waits(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.send(b"a", b"b")
        uid = desk.service.catalog.streams[0].topics[0].uid
        await desk.do(c.StoreOffset(ME, S, T, 0, 1))
        assert list(desk.service.store.load_offsets(uid).stored[0].values()) == [1]
        await desk.do(c.StoreOffset(ME, S, T, 0, 0, False))
        assert list(desk.service.store.load_offsets(uid).stored[0].values()) == [1], "soon"
        assert (await desk.do(c.GetOffset(ME, S, T, 0))).stored_offset == 0
        await desk.service.saver.stop()
        assert list(desk.service.store.load_offsets(uid).stored[0].values()) == [0]

    at_desk(tmp_path, work)


@pytest.mark.parametrize(("era", "number", "meant"), [(Era.V, None, 1), (Era.C1, 0, 1), (Era.V, 0, 0), (Era.C1, 1, 0)])
def test_a_member_that_names_no_partition_means_its_own(
    tmp_path: Path, era: Era, number: int | None, meant: int
) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(2)
        for partition in (0, 1):
            await desk.send(b"x", to=partition)
        await desk.do(c.JoinGroup(S, T, G))
        member = desk.client(era)
        await desk.do(c.JoinGroup(S, T, G), member)
        await desk.do(c.StoreOffset(GROUP, S, T, number, 0), member)
        for partition in (0, 1):
            found = await desk.do(c.GetOffset(GROUP, S, T, partition))
            assert (found is not None) == (partition == meant)
        view = await desk.do(c.GetOffset(GROUP, S, T, number), member)
        assert (view.partition, view.stored_offset) == (meant + era.first_id, 0)

    at_desk(tmp_path, work)


def test_who_reads_nothing_has_no_offset_to_speak_of(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        for command in (c.StoreOffset(GROUP, S, T, None, 0), c.DeleteOffset(GROUP, S, T, None)):
            assert await desk.refused(command) == "consumer_group_member_not_found"
        assert await desk.do(c.GetOffset(GROUP, S, T, None)) is None
        seed = await desk.do(c.GetOffset(Consumer.single(7), S, T, 1), desk.client(Era.S, user=None))
        assert (seed.consumer_id, seed.offset) == (7, 0), "the seed has no word for none"

    at_desk(tmp_path, work)


def test_what_is_not_there_is_answered_as_upstream_does(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        none, of_none = Identifier("none"), Consumer.group("none")
        assert await desk.do(c.GetGroup(S, T, none)) is None
        assert await desk.refused(c.GetGroup(none, T, G)) == "stream_name_not_found"
        assert await desk.refused(c.GetGroup(S, none, G)) == "topic_name_not_found"
        assert await desk.do(c.GetOffset(of_none, S, T, 0)) is None
        assert await desk.do(c.GetOffset(Consumer.single(), none, T, 0)) is None
        assert await desk.refused(c.DeleteOffset(of_none, S, T, 0)) == "resource_not_found"
        assert await desk.refused(c.DeleteOffset(Consumer.single(), none, T, 0)) == "resource_not_found"
        old = desk.client(Era.C3)
        assert await desk.do(c.GetGroup(S, none, G), old) is None
        assert await desk.refused(c.GetOffset(of_none, S, T, 0), old) == "consumer_group_name_not_found"

    at_desk(tmp_path, work)


def test_a_client_of_0_12_commits_only_what_is_its_own_and_still_there(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.send(b"0")
        client, group = desk.client(Era.X), Consumer.group("g")
        before = (await desk.do(c.GetPartitionRoute(S, T, 0), client)).incarnation
        store = c.StoreOffset(group, S, T, 0, 0, incarnation=before)
        assert await desk.refused(store, client) == "consumer_group_partition_not_owned"
        await desk.do(c.JoinGroup(S, T, G), client)
        await desk.do(store, client)
        assert (await desk.do(c.GetOffset(group, S, T, 0, incarnation=before), client)).stored_offset == 0
        await desk.do(c.PurgeTopic(S, T))
        for command in (store, c.GetOffset(group, S, T, 0, before), c.DeleteOffset(group, S, T, 0, incarnation=before)):
            assert await desk.refused(command, client) == "history_unavailable"

    at_desk(tmp_path, work)
