"""A hub and a leaf node, each real or ours: what crosses, and what does not. The real pair proves the expectations."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NoAnswer
from support.clusters import connect, run
from support.leafs import HUB, PAIR_NAMES, PAIRS, Inbox, LeafServer, both_cross, serve, spoke_config, until
from support.raw_wire import dial, still_open

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=PAIRS, ids=PAIR_NAMES)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LeafServer, LeafServer]]:
    hub_kind, leaf_kind = request.param
    directory = tmp_path_factory.mktemp("leafs")
    with (
        serve(hub_kind, directory / "hub", HUB) as hub,
        serve(leaf_kind, directory / "leaf", spoke_config(hub)) as leaf,
    ):
        yield hub, leaf


Pair = tuple[LeafServer, LeafServer]


def has(inbox: Inbox, count: int) -> bool:
    return len(inbox.got) == count


def test_a_message_reaches_the_other_side_once_with_its_headers_as_they_were(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        hub, leaf = [await connect(stack, server.url) for server in pair]
        for sender, receiver in ((hub, leaf), (leaf, hub)):
            inbox = Inbox()
            for pattern in ("orders.*", "orders.>"):  # one frame for both
                await receiver.subscribe(pattern, cb=inbox.take)
            await both_cross(hub, leaf)
            await sender.publish("orders.eu", b"1", headers={"X-a": "Grüße", "x-A": "2"})
            await sender.publish("orders.eu", b"2")
            await sender.flush()
            await until(partial(has, inbox, 4), "both messages on both subscriptions")
            await both_cross(hub, leaf)
            assert sorted(inbox.data) == [b"1", b"1", b"2", b"2"]
            assert inbox.got[0].headers == {"X-a": "Grüße", "x-A": "2"}

    run(test)


def test_repeated_headers_keep_their_order_and_case(pair: Pair) -> None:
    block = b"NATS/1.0\r\nA: 1\r\na: 2\r\nA:  3 \r\nK\xc3\xb6: \xff\r\n\r\n"
    frame = b"HPUB blocks %d %d\r\n%bhi\r\n" % (len(block), len(block) + 2, block)
    for publisher, subscriber in (pair, pair[::-1]):
        with dial(subscriber.port) as there, dial(publisher.port) as here:
            assert there.answer(b"SUB blocks 1\r\n") == still_open()
            received = b""
            for _ in range(4000):  # until the other side knows the interest
                here.answer(frame)
                received = there.settle()
                if received:
                    break
            assert received.startswith(b"HMSG blocks 1 %d %d\r\n%bhi\r\n" % (len(block), len(block) + 2, block))


def test_a_request_is_answered_from_the_other_side(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = [await connect(stack, server.url) for server in pair]
        for requester, serving in (clients, clients[::-1]):

            async def answer(message: object) -> None:
                await message.respond(b"pong")  # type: ignore[attr-defined]

            await serving.subscribe("service", cb=answer)
            await both_cross(*clients)
            assert (await requester.request("service", b"ping", timeout=10)).data == b"pong"

    run(test)


def test_a_request_at_the_leaf_without_interest_anywhere_has_no_responders(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = [await connect(stack, server.url) for server in pair]
        await both_cross(*clients)
        for client in clients:
            with pytest.raises(NoRespondersError):
                await client.request("nobody.home", b"", timeout=10)

    run(test)


def test_members_of_a_queue_group_at_the_publishers_side_come_first(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = [await connect(stack, server.url) for server in pair]
        inboxes = [Inbox(), Inbox()]
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("work", "group", cb=inbox.take)
        await both_cross(*clients)
        for client in clients:
            for _ in range(20):
                await client.publish("work", b"")
            await client.flush()
        await until(lambda: sum(len(inbox.got) for inbox in inboxes) >= 40, "every message at a member")
        await both_cross(*clients)
        assert [len(inbox.got) for inbox in inboxes] == [20, 20]

    run(test)


def test_a_group_with_members_on_the_other_side_alone_gets_each_message_once(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = [await connect(stack, server.url) for server in pair]
        for sender, receiver in (clients, clients[::-1]):
            first, second, plain = Inbox(), Inbox(), Inbox()
            await receiver.subscribe("far.*", "g", cb=first.take)
            await receiver.subscribe("far.away", "g", cb=second.take)
            await receiver.subscribe("far.>", cb=plain.take)
            await both_cross(*clients)
            for number in range(50):
                await sender.publish("far.away", b"%d" % number, reply="answers" if number % 2 else "")
            await sender.flush()
            await until(partial(has, plain, 50), "all of them")
            await both_cross(*clients)
            assert len(first.got) + len(second.got) == 50
            assert plain.data == [b"%d" % number for number in range(50)]
            assert {message.reply for message in plain.got} == {"", "answers"}
            for inbox in (first, second, plain):
                inbox.got.clear()
            for subscription in list(receiver._subs.values()):
                await subscription.unsubscribe()

    run(test)


def test_unsub_ends_the_interest_on_the_other_side(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = [await connect(stack, server.url) for server in pair]
        for requester, serving in (clients, clients[::-1]):
            subscription = await serving.subscribe("short.lived")
            await both_cross(*clients)
            with pytest.raises(NoAnswer):
                await requester.request("short.lived", b"", timeout=0.05)
            await subscription.unsubscribe()
            async with asyncio.timeout(20):
                while True:
                    try:
                        await requester.request("short.lived", b"", timeout=0.05)
                    except NoRespondersError:
                        break
                    except NoAnswer:
                        continue

    run(test)


def test_both_sides_receive_a_publishers_messages_in_order(pair: Pair) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = [await connect(stack, server.url) for server in pair]
        inboxes = [Inbox(), Inbox()]
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("stream.of.many", cb=inbox.take)
        await both_cross(*clients)
        for client in clients:
            for number in range(2000):
                await client.publish("stream.of.many", b"%d" % number)
            await client.flush()
            await until(lambda: all(len(inbox.got) >= 2000 for inbox in inboxes), "all of them at both")
            await both_cross(*clients)
            for inbox in inboxes:
                assert inbox.data == [b"%d" % number for number in range(2000)]
                inbox.got.clear()

    run(test)
