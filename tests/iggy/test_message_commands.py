"""Sends and polls: whose turn it is, what is committed, and how each era counts partitions."""

from pathlib import Path

import pytest
from support.iggy_service import Desk, G, S, T, at_desk

from headwater.errors import IggyError
from headwater.iggy import message_commands
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import NO_PARTITION, Permissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.monitoring.steps import at_once

ME, GROUP, NEXT = Consumer.single("me"), Consumer.group("g"), PollingStrategy.next()


def test_a_partition_has_the_number_that_the_client_counts(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(2)
        old = desk.client(Era.B)
        for client, number in ((desk.root, 1), (old, 2)):
            sent = await desk.send(b"%d" % number, to=number, client=client)
            assert sent.partition == number
        assert desk.poll(1) == (1, [b"1", b"2"])
        assert desk.poll(2, client=old) == (2, [b"1", b"2"])
        assert desk.poll(None) == (0, []) and desk.poll(None, client=old) == (1, [])
        for client, number in ((desk.root, 2), (old, 0), (old, 3)):
            with pytest.raises(IggyError, match="partition_not_found"):
                desk.poll(number, client=client)
            with pytest.raises(IggyError, match="partition_not_found"):
                await desk.send(b"x", to=number, client=client)

    at_desk(tmp_path, work)


def test_balanced_sends_take_turns_and_keyed_ones_stay(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(3)
        turns = [await desk.send(b"x", to=Partitioning.balanced()) for _ in range(6)]
        assert [(sent.partition, sent.base_offset) for sent in turns] == [
            (0, 0),
            (1, 0),
            (2, 0),
            (0, 1),
            (1, 1),
            (2, 1),
        ]
        old = desk.client(Era.C1)
        keyed = [await desk.send(b"x", to=Partitioning.key("k"), client=client) for client in (desk.root, old)]
        assert keyed[0].partition + 1 == keyed[1].partition, "one partition, which the older client calls by one more"

    at_desk(tmp_path, work)


def test_a_poll_with_automatic_commit_goes_on_where_it_ended(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.send(b"a", b"b", b"c")
        await desk.send(b"d", b"e")
        turns = [desk.poll(0, NEXT, ME, commit=True, count=2)[1] for _ in range(4)]
        assert turns == [[b"a", b"b"], [b"c", b"d"], [b"e"], []]
        view = await desk.do(c.GetOffset(ME, S, T, 0))
        assert view.stored_offset == 4, "a poll that found nothing commits nothing"
        for _ in range(2):
            assert desk.poll(0, NEXT, Consumer.single("you"), count=2)[1] == [b"a", b"b"], "nothing was committed"
        assert desk.poll(0, PollingStrategy.last(), ME, count=2)[1] == [b"d", b"e"]
        assert desk.poll(0, PollingStrategy.offset(3), ME, count=1)[1] == [b"d"]
        assert desk.poll(0, PollingStrategy.timestamp(desk.now + 1), ME)[1] == []

    at_desk(tmp_path, work)


def test_a_member_of_today_polls_the_partitions_that_are_its_own(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(2)
        for number in (0, 1):
            await desk.send(b"%d" % number, to=number)
        a, b = desk.client(), desk.client()
        assert desk.poll(0, NEXT, GROUP, client=a) == (NO_PARTITION, []), "not in the group: ask for an assignment"
        for client in (a, b):
            await desk.do(c.JoinGroup(S, T, G), client)
        assert desk.poll(0, NEXT, GROUP, client=a, commit=True) == (0, [b"0"])
        assert desk.poll(1, NEXT, GROUP, client=a) == (NO_PARTITION, []), "the other one's"
        assert desk.poll(1, NEXT, GROUP, client=b, commit=True) == (1, [b"1"])
        await desk.do(c.LeaveGroup(S, T, G), a)
        assert desk.poll(0, NEXT, GROUP, client=b) == (0, []), "committed by the group, whoever it was"
        with pytest.raises(IggyError, match="consumer_group_name_not_found"):
            desk.poll(0, NEXT, Consumer.group("nobody"))

    at_desk(tmp_path, work)


def test_an_older_member_names_none_and_takes_turns_through_its_own(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(3)
        for number in range(3):
            await desk.send(b"%d" % number, to=number)
        a, b = desk.client(Era.C3), desk.client(Era.C1)
        assert desk.poll(None, NEXT, GROUP, client=b) == (1, []), "in no group: nothing"
        for client in (a, b):
            await desk.do(c.JoinGroup(S, T, G), client)
        assert [desk.poll(None, NEXT, GROUP, client=a) for _ in range(3)] == [(0, [b"0"]), (2, [b"2"]), (0, [b"0"])]
        assert desk.poll(None, NEXT, GROUP, client=b) == (2, [b"1"])

    at_desk(tmp_path, work)


def test_what_is_not_there_or_not_allowed_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make(1)
        await desk.do(c.CreateUser("reader", "secret", 1, Permissions(poll_messages=True)))
        reader, stranger = desk.client(user="reader"), desk.client(user=None)
        for client, name in ((reader, "unauthorized"), (stranger, "unauthenticated")):
            with pytest.raises(IggyError, match=name):
                await desk.send(b"x", client=client)
        with pytest.raises(IggyError, match="topic_name_not_found"):
            await desk.send(b"x", topic=Identifier("nothing"))
        with pytest.raises(IggyError, match="stream_name_not_found"):
            await desk.send(b"x", stream=Identifier("nothing"))
        with pytest.raises(IggyError, match="stream_id_not_found"):
            desk.poll(0, stream=Identifier(9))
        assert desk.poll() == (0, [])

    at_desk(tmp_path, work)


@pytest.mark.parametrize("ranges", [False, True])
def test_a_large_poll_takes_many_turns_and_finds_what_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranges: bool
) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        for number in range(30):
            await desk.send(b"%d" % number, b"x" * 500)
        command = c.PollMessages(ME, S, T, 0, PollingStrategy.first(), 45, True)
        whole = at_once(message_commands.poll(desk.service, desk.root, command, ranges)).polled
        monkeypatch.setattr(message_commands, "TURN_BYTES", 2000)
        polling = message_commands.poll(desk.service, desk.root, command, ranges)
        turns = 0
        with pytest.raises(StopIteration) as ended:
            while True:
                next(polling)
                turns += 1
        found = ended.value.value.polled
        assert (found.read(), found[1:]) == (whole.read(), whole[1:])
        assert found.messages == 45
        assert turns >= 5
        assert (await desk.do(c.GetOffset(ME, S, T, 0))).stored_offset == 44
        monkeypatch.setattr(message_commands, "MAX_POLL_BYTES", 5000)
        bounded = at_once(message_commands.poll(desk.service, desk.root, command, ranges)).polled
        assert 3000 < bounded.size <= 5000
        assert bounded.last_offset == bounded.messages - 1

    at_desk(tmp_path, work)
