"""Streams of one node, used through their domain from every node of its cluster, of its hub and of its spoke; and
accounts.
"""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig
from support.clusters import connect, received_by_all, run
from support.leaf_clusters import PLACES, clients_of, clusters
from support.leafs import OURS, REAL, Inbox, until

pytestmark = pytest.mark.interop
JETSTREAM = "jetstream { domain: %s }"
WITHOUT = ""
CASES = {
    "at our hub": ((OURS, OURS, REAL, REAL), (JETSTREAM % "hub", WITHOUT, WITHOUT, WITHOUT), ["hub"]),
    "at our spoke": ((REAL, REAL, OURS, OURS), (WITHOUT, WITHOUT, JETSTREAM % "leafy", WITHOUT), ["leafy"]),
    "at both": (
        (OURS, OURS, OURS, OURS),
        (JETSTREAM % "hub", WITHOUT, WITHOUT, JETSTREAM % "leafy"),
        ["hub", "leafy"],
    ),
}


@pytest.mark.parametrize(("kinds", "more", "domains"), CASES.values(), ids=list(CASES))
def test_streams_are_used_by_their_domain_from_every_place(
    tmp_path: Path, kinds: tuple[str, ...], more: tuple[str, ...], domains: list[str]
) -> None:
    async def test(stack: AsyncExitStack) -> None:
        clients = await clients_of(stack, servers)
        for domain in domains:
            for place, client in zip(PLACES, clients, strict=True):
                stream = client.jetstream(domain=domain, timeout=10)
                name = f"{domain}{place}"
                made = await stream.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
                assert made.config.name == name
                await received_by_all(clients, clients)
                for sender in clients:
                    ack = await sender.jetstream(domain=domain, timeout=10).publish(f"{name}.x", b"1")
                    assert ack.domain == domain
                assert (await stream.stream_info(name)).state.messages == len(PLACES)
                pull = await stream.pull_subscribe(f"{name}.x", "durable")
                got = [each for _ in PLACES for each in await pull.fetch(1, timeout=10)]
                assert [each.metadata.sequence.stream for each in got] == [1, 2, 3, 4]
                for each in got:
                    await each.ack_sync(timeout=10)
                info = await stream.consumer_info(name, "durable")
                assert (info.ack_floor.stream_seq if info.ack_floor else 0) == 4
                assert info.num_redelivered == 0

    with clusters(tmp_path, kinds, more=more) as servers:
        run(test)


ACCOUNTS = "accounts { A { users: [ {user: a, password: p} ] }, B { users: [ {user: b, password: p} ] } }"


@pytest.mark.parametrize("kinds", [(OURS, OURS, REAL, REAL), (REAL, REAL, OURS, OURS)], ids=["our hubs", "our spokes"])
def test_accounts_stay_apart(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    async def test(stack: AsyncExitStack) -> None:
        inboxes: dict[tuple[str, str], Inbox] = {}
        by_user: dict[str, list[Client]] = {}
        for user in "ab":
            by_user[user] = [await connect(stack, server.url, user=user, password="p") for server in servers]
        await received_by_all(by_user["a"], by_user["a"])
        for user, clients in by_user.items():
            for place, client in zip(PLACES, clients, strict=True):
                inbox = inboxes[user, place] = Inbox()
                await client.subscribe("said.*", cb=inbox.take)
        await received_by_all(by_user["a"], by_user["a"])
        for first in (0, 2):  # account B joins no hub: it stays within its cluster
            side = by_user["b"][first : first + 2]
            await received_by_all(side, side)
        for user, clients in by_user.items():
            for place, client in zip(PLACES, clients, strict=True):
                await client.publish(f"said.{user}{place}", b"")
                await client.flush()
        await until(lambda: all(len(inboxes["a", place].got) >= 4 for place in PLACES), "all of a")
        await until(lambda: all(len(inboxes["b", place].got) >= 2 for place in PLACES), "all of b")
        await received_by_all(by_user["a"], by_user["a"])
        for place in PLACES:
            assert sorted(each.subject for each in inboxes["a", place].got) == [f"said.a{other}" for other in PLACES]
            near = [other for other in PLACES if other[0] == place[0]]
            assert sorted(each.subject for each in inboxes["b", place].got) == [f"said.b{other}" for other in near]

    with clusters(tmp_path, kinds, more=[ACCOUNTS] * 4, remote="account: A", user="a:p@") as servers:
        run(test)
