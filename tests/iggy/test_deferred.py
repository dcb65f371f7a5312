"""Polls that wait, of protocol 0.12: answered when there is enough, when the time is over, or when they are cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.iggy_service import Desk, G, S, T, at_desk

from headwater.errors import IggyError
from headwater.iggy.clients import Client
from headwater.iggy.deferred import (
    LEAST_BYTES,
    MOST_AT_ONCE,
    Section,
    Wait,
    Waits,
    fetch,
    poll_deferred,
    wait_for_messages,
)
from headwater.iggy.message_commands import Found
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import messages
from headwater.iggy_wire.commands import FetchTarget, WaitTarget
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Consumer, PollingStrategy

MINUTE = 60_000_000
NEXT, FIRST = PollingStrategy.next(), PollingStrategy.first()
ME = Consumer.single()


def polling(
    wait_us: int = MINUTE,
    min_count: int = 1,
    *,
    strategy: PollingStrategy = NEXT,
    most: int = 1 << 20,
    count: int = 100,
    consumer: Consumer = ME,
    commit: bool = False,
) -> c.PollDeferred:
    return c.PollDeferred(consumer, S, T, 0, strategy, count, commit, wait_us, min_count, most, 2 * MINUTE)


def fetching(
    *targets: FetchTarget, wait_us: int = MINUTE, min_count: int = 1, count: int = 100, most: int = 1 << 20
) -> c.FetchMessages:
    return c.FetchMessages(ME, S, T, wait_us, 2 * MINUTE, min_count, count, most, True, list(targets))


def target(partition: int, offset: int | None = None, incarnation: int = 0, most: int = 1 << 20) -> FetchTarget:
    return FetchTarget(partition, NEXT if offset is None else PollingStrategy.offset(offset), most, incarnation, 0)


def texts(found: Found | None) -> list[bytes]:
    assert found is not None
    return [message.payload for message in messages(b"".join(found.polled.read()))]


async def begun(work: Awaitable[Any]) -> "asyncio.Future[Any]":
    """A wait that has begun."""
    task = asyncio.ensure_future(work)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


def at_desk_with(tmp_path: Path, work: Callable[[Desk, Client], Awaitable[None]]) -> None:
    async def main(desk: Desk) -> None:
        await desk.make()
        await work(desk, desk.client(Era.X))

    at_desk(tmp_path, main)


def test_a_poll_is_answered_when_there_are_as_many_as_it_wants(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        await desk.send(b"0")
        task = await begun(poll_deferred(desk.service, client, polling(min_count=3, commit=True), Wait()))
        await desk.send(b"1")
        await desk.send(b"elsewhere", to=1)
        assert not task.done()
        await desk.send(b"2", b"3")
        assert texts(await task) == [b"0", b"1", b"2", b"3"]
        task = await begun(poll_deferred(desk.service, client, polling(), Wait()))
        await desk.send(b"4")
        assert texts(await task) == [b"4"], "behind what the poll before has committed"

    at_desk_with(tmp_path, work)


def test_a_wait_that_is_over_gives_what_there_is(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        await desk.send(b"0")
        assert texts(await poll_deferred(desk.service, client, polling(1, 5), Wait())) == [b"0"]
        assert (
            texts(await poll_deferred(desk.service, client, polling(0, strategy=PollingStrategy.offset(1)), Wait()))
            == []
        )
        assert await wait_for_messages(desk.service, client, waiting(0, 1, wait_us=1), Wait()) == [0]

    at_desk_with(tmp_path, work)


def waiting(*partitions: int, wait_us: int = MINUTE) -> c.WaitForMessages:
    return c.WaitForMessages(ME, S, T, wait_us, 2 * MINUTE, [WaitTarget(number, NEXT) for number in partitions])


def test_a_wait_names_the_partitions_that_have_something(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        task = await begun(wait_for_messages(desk.service, client, waiting(0, 1), Wait()))
        await desk.send(b"0", to=1)
        assert await task == [1]

    at_desk_with(tmp_path, work)


def test_who_cancels_gets_an_answer_without_messages_and_nothing_is_committed(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        waits = Waits()
        task = await begun(poll_deferred(desk.service, client, polling(min_count=9, commit=True), waits.begin(5)))
        await desk.send(b"0")
        waits.cancel(4)
        assert not task.done()
        waits.cancel(5)
        found = await task
        assert (texts(found), found.partition, found.incarnation > 0) == ([], 0, True)
        assert await desk.do(c.GetOffset(ME, S, T, 0)) is None

    at_desk_with(tmp_path, work)


def test_one_answer_has_what_there_is_in_all_partitions(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        await desk.send(b"a0", b"a1")
        task = await begun(fetch(desk.service, client, fetching(target(1), target(0, 1), min_count=2), Wait()))
        await desk.send(b"b0", to=1)
        sections: list[Section] = await task
        assert [(one.partition, one.status, texts(one.found), one.next_offset) for one in sections] == [
            (1, 0, [b"b0"], 1),
            (0, 0, [b"a1"], 2),
        ]
        assert (await desk.do(c.GetOffset(ME, S, T, 0))).stored_offset == 1
        empty = await fetch(desk.service, client, fetching(target(1), wait_us=0), Wait())
        assert [(one.status, texts(one.found), one.next_offset) for one in empty] == [(0, [], 1)]

    at_desk_with(tmp_path, work)


def test_a_target_that_cannot_be_read_says_so_at_once_beside_the_others(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        await desk.send(b"0")
        request = fetching(target(0), target(7), target(1, incarnation=4711), min_count=50)
        sections = await fetch(desk.service, client, request, Wait())
        assert [(one.partition, one.status) for one in sections] == [(0, 0), (7, 3007), (1, 87)]
        assert texts(sections[0].found) == [b"0"]

    at_desk_with(tmp_path, work)


def test_no_answer_is_larger_than_the_client_reads_but_one_message_always_comes(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        big = [bytes([number]) * 1000 for number in range(5)]
        await desk.send(*big)
        await desk.send(*big, to=1)
        found = await poll_deferred(desk.service, client, polling(most=2500, commit=True, strategy=FIRST), Wait())
        assert texts(found) == big[:2] and found.polled.size <= 2500 - 40
        assert (await desk.do(c.GetOffset(ME, S, T, 0))).stored_offset == 1, "no more than was sent is committed"
        one = await poll_deferred(desk.service, client, polling(most=LEAST_BYTES), Wait())
        assert texts(one) == big[2:3]
        sections = await fetch(desk.service, client, fetching(target(0, 0), target(1, 0), most=3000), Wait())
        assert [texts(section.found) for section in sections] == [big[:2], []]
        few = await fetch(desk.service, client, fetching(target(0, 0), target(1, 0), count=3), Wait())
        assert [texts(section.found) for section in few] == [big[:3]], "for the rest there was no room"

    at_desk_with(tmp_path, work)


def test_a_member_is_told_that_a_partition_is_not_its_own(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        group = Consumer.group("g")
        with pytest.raises(IggyError) as caught:
            await poll_deferred(desk.service, client, polling(consumer=group), Wait())
        assert caught.value.name == "consumer_group_partition_not_owned"
        await desk.do(c.JoinGroup(S, T, G), client)
        await desk.send(b"0")
        found = await poll_deferred(desk.service, client, polling(consumer=group), Wait())
        assert (texts(found), found.owner) == ([b"0"], 1)

    at_desk_with(tmp_path, work)


def test_a_wait_goes_on_in_the_partition_that_replaces_its_own(tmp_path: Path) -> None:
    async def work(desk: Desk, client: Client) -> None:
        task = await begun(poll_deferred(desk.service, client, polling(), Wait()))
        before = desk.service.topic(S, T)[1].partitions[0]
        await desk.do(c.PurgeTopic(S, T))
        await desk.send(b"fresh")
        before.watchers[0]()  # or a second later
        assert texts(await task) == [b"fresh"]
        assert before.watchers == [] == desk.service.topic(S, T)[1].partitions[0].watchers

    at_desk_with(tmp_path, work)


@pytest.mark.parametrize(
    "command",
    [
        polling(601 * MINUTE),
        polling(min_count=0),
        polling(min_count=101),
        polling(most=LEAST_BYTES - 1),
        fetching(),
        fetching(target(0), target(0)),
        waiting(),
        waiting(1, 1),
    ],
)
def test_an_impossible_wait_is_refused(command: Any) -> None:
    handlers: dict[type, Any] = {
        c.PollDeferred: poll_deferred,
        c.FetchMessages: fetch,
        c.WaitForMessages: wait_for_messages,
    }
    no_client: Any = None
    with pytest.raises(IggyError) as caught:
        asyncio.run(handlers[type(command)](no_client, no_client, command, no_client))
    assert caught.value.name == "invalid_command"


def test_a_connection_has_so_many_waits_and_no_two_of_one_number() -> None:
    waits = Waits()
    for number in range(MOST_AT_ONCE):
        waits.begin(number)
    for number in (MOST_AT_ONCE, 0):
        with pytest.raises(IggyError) as caught:
            waits.begin(number)
        assert caught.value.name == "deferred_poll_capacity_exceeded"
    waits.end(0)
    waits.begin(0)
