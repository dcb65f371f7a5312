"""A cluster of hubs and a spoke that is a cluster, of nats-servers, ours or both: what crosses, and what does not.

Every node of the spoke has its own link to one node of the hub. Real servers alone prove the expectations.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from nats.errors import NoRespondersError
from support.clusters import received_by_all, run
from support.leaf_clusters import PLACES, clients_of, clusters
from support.leafs import OURS, REAL, Inbox, LeafServer, until
from support.traces import read_report

pytestmark = pytest.mark.interop
KINDS = {
    "real": (REAL, REAL, REAL, REAL),
    "our hubs": (OURS, OURS, REAL, REAL),
    "our spokes": (REAL, REAL, OURS, OURS),
    "mixed": (OURS, REAL, REAL, OURS),
    "ours": (OURS, OURS, OURS, OURS),
}
MEMBERS = ["0123", "01", "23", "02", "12", "3"]


@pytest.fixture(scope="module", params=KINDS.values(), ids=list(KINDS))
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LeafServer]]:
    with clusters(tmp_path_factory.mktemp("clusters"), request.param) as started:
        yield started


def test_every_message_arrives_everywhere_once(servers: list[LeafServer]) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = await clients_of(stack, servers)
        inboxes = [Inbox() for _ in clients]
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("all.*", cb=inbox.take)
        await received_by_all(clients, clients)
        for at, client in enumerate(clients):
            for number in range(20):
                headers = {"x": "1"} if number % 3 == 1 else None
                await client.publish(f"all.{at}", b"%d" % number, reply="r" if number % 3 == 2 else "", headers=headers)
            await client.flush()
        await until(lambda: all(len(inbox.got) >= 80 for inbox in inboxes), "all at all")
        await received_by_all(clients, clients)
        for inbox in inboxes:
            for at in range(4):
                got = [message for message in inbox.got if message.subject == f"all.{at}"]
                assert [message.data for message in got] == [b"%d" % number for number in range(20)]
                assert [message.headers for message in got[:3]] == [None, {"x": "1"}, None]
                assert [message.reply for message in got[:3]] == ["", "", "r"]

    run(test)


def test_a_queue_group_gets_each_message_once_in_the_publishers_cluster_first(servers: list[LeafServer]) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = await clients_of(stack, servers)
        inboxes = {(members, int(place)): Inbox() for members in MEMBERS for place in members}
        for (members, place), inbox in inboxes.items():
            await clients[place].subscribe(f"work.{members}", "group", cb=inbox.take)
        await received_by_all(clients, clients)
        for at, client in enumerate(clients):
            for members in MEMBERS:
                for number in range(20):
                    await client.publish(f"work.{members}", b"%d %d" % (at, number), reply="r" if number % 2 else "")
            await client.flush()
        await until(lambda: sum(len(inbox.got) for inbox in inboxes.values()) >= 80 * len(MEMBERS), "all of them")
        await received_by_all(clients, clients)
        for members in MEMBERS:
            places = [int(place) for place in members]
            got = [(place, message.data) for place in places for message in inboxes[members, place].got]
            assert sorted(data for _, data in got) == sorted(b"%d %d" % (at, n) for at in range(4) for n in range(20))
            for place, data in got:
                at = int(data.split()[0])
                if any(other // 2 == at // 2 for other in places):
                    assert place // 2 == at // 2, f"a message from {PLACES[at]} left its cluster"

    run(test)


def test_a_request_is_answered_from_anywhere_and_no_responders_is_reported(servers: list[LeafServer]) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = await clients_of(stack, servers)
        for serving in clients:

            async def answer(message: object) -> None:
                await message.respond(b"pong")  # type: ignore[attr-defined]

            subscription = await serving.subscribe("service", cb=answer)
            await received_by_all(clients, clients)
            for requester in clients:
                assert (await requester.request("service", b"ping", timeout=10)).data == b"pong"
            await subscription.unsubscribe()
            await received_by_all(clients, clients)
        for requester in clients:
            async with asyncio.timeout(20):
                while True:
                    try:
                        await requester.request("service", b"", timeout=0.05)
                    except NoRespondersError:
                        break
                    except TimeoutError:
                        continue

    run(test)


WAYS = {
    0: {"H1": {"H2", "S1"}, "H2": {"S2"}, "S1": set(), "S2": set()},
    2: {"S1": {"S2", "H1"}, "S2": set(), "H1": {"H2"}, "H2": set()},
}
"""The servers to which each server sends a message that is published at H1, or at S1."""


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("at", WAYS)
def test_a_trace_follows_a_message_over_routes_and_leaf_links(servers: list[LeafServer], at: int, only: bool) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = await clients_of(stack, servers)
        inboxes, reports = [Inbox() for _ in clients], Inbox()
        for client, inbox in zip(clients, inboxes, strict=True):
            await client.subscribe("traced.*", cb=inbox.take)
            await client.subscribe("traced.*", "grp", cb=inbox.take)
        await clients[at].subscribe("tr.1", cb=reports.take)
        await received_by_all(clients, clients)
        traced = {"Nats-Trace-Dest": "tr.1", **({"Nats-Trace-Only": "1"} if only else {})}
        await clients[at].publish("traced.1", b"hi", headers=traced)
        await until(lambda: len(reports.got) >= len(PLACES), "a report of each server")
        found = {report.server: report for report in (read_report(message.data) for message in reports.got)}
        sent: dict[str, set[str]] = {}
        for name, report in found.items():
            lines = [line.split() for line in report.events if " hop=" in line]
            sent[name] = {words[2].removeprefix("name=") for words in lines}
            for words in lines:  # nats-server counts its peers in any order
                assert found[words[2].removeprefix("name=")].hop == words[3].removeprefix("hop=")
                assert words[3].removeprefix("hop=").startswith(report.hop)
        assert sent == WAYS[at]
        taken = [line for report in found.values() for line in report.events if line.startswith("eg client")]
        assert sorted(taken) == ["eg client sub=traced.*"] * 4 + ["eg client sub=traced.* queue=grp"]
        if only:
            await clients[at].publish("traced.end", b"")
        await until(lambda: sum(len(inbox.got) for inbox in inboxes) >= 5, "what is delivered")
        await received_by_all(clients, clients)
        subjects = [message.subject for inbox in inboxes for message in inbox.got]
        assert subjects == ["traced.end" if only else "traced.1"] * 5

    run(test)
