"""Traces that continue over a route: one report from each server, linked by the hop. Real and ours, in both directions."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from support.clusters import connect, meshed, route_url, run, start_node, start_nodes
from support.nats_server import NatsServer, start_nats_server
from support.traces import Report, read_report

from headwater.model.message_trace import ONLY_UNSUPPORTED, UNSUPPORTED
from headwater.testing.ports import free_port

pytestmark = pytest.mark.interop

PATIENCE = 20.0
TRACED = {"Nats-Trace-Dest": "tr.1"}


class Pair:
    """Two servers of a cluster, by name, each with a client."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self.clients = clients

    async def trace(self, at: str, subject: str, count: int = 2, **more: str) -> dict[str, Report]:
        """The reports of both servers on a message published at one of them, by server name."""
        publisher, reports = self.clients[at], asyncio.Queue[Report]()

        async def take(message: Msg) -> None:
            reports.put_nowait(read_report(message.data))

        watching = await publisher.subscribe("tr.1", cb=take)
        await publisher.flush()
        await self.known("tr.1", at)
        headers = {**TRACED, **{name.replace("_", "-"): value for name, value in more.items()}}
        await publisher.publish(subject, b"hi", headers=headers)
        async with asyncio.timeout(PATIENCE):
            found = [await reports.get() for _ in range(count)]
        await watching.unsubscribe()
        return {report.server: report for report in found}

    async def known(self, subject: str, at: str) -> None:
        """Return once the other server knows the interest."""
        inbox = asyncio.Event()

        async def take(_: Msg) -> None:
            inbox.set()

        probe = self.clients[at].new_inbox()
        watching = await self.clients[at].subscribe(probe, cb=take)
        await self.clients[at].flush()
        (other,) = (client for name, client in self.clients.items() if name != at)
        async with asyncio.timeout(PATIENCE):
            while not inbox.is_set():
                await other.publish(probe, b"")
                await other.flush()
                await asyncio.sleep(0.005)
        await watching.unsubscribe()


PAIRS = ["real", "real-and-ours", "ours"]


async def start(stack: AsyncExitStack, kind: str, directory: Path) -> Pair:
    """Servers named A and B, connected to each other."""

    async def real(name: str, route: str = "") -> NatsServer:
        flags = ["--name", name, "--cluster", f"nats://127.0.0.1:{ports[name]}", "--cluster_name", "hw"]
        flags += ["--routes", route] if route else []
        server = await asyncio.to_thread(start_nats_server, directory / name, *flags, jetstream=False)
        stack.callback(server.stop)
        return server

    ports = {"A": free_port(), "B": free_port()}
    if kind == "real":
        urls = [(await real("A")).url, (await real("B", f"nats://127.0.0.1:{ports['A']}")).url]
    else:
        ours = await start_node(stack, "A")
        other = await (start_node(stack, "B", [route_url(ours)]) if kind == "ours" else real("B", route_url(ours)))
        await meshed([ours], 1)
        urls = [ours.url, other.url]
    clients = [await connect(stack, url, name=f"at{name}") for url, name in zip(urls, "AB", strict=True)]
    return Pair(dict(zip("AB", clients, strict=True)))


@pytest.mark.parametrize("kind", PAIRS)
def test_both_servers_report_and_the_hop_links_them(kind: str, tmp_path: Path) -> None:
    async def test(stack: AsyncExitStack) -> None:
        pair = await start(stack, kind, tmp_path)
        got: dict[str, list[Msg]] = {"A": [], "B": []}
        for name, client in pair.clients.items():
            for queue in ("", "grp"):

                async def take(message: Msg, received: list[Msg] = got[name]) -> None:
                    received.append(message)

                await client.subscribe("orders.*", queue, cb=take)
            await client.flush()
            await pair.known("orders.*", name)
        for near, far in ("AB", "BA"):
            await check(pair, near, far)
            await check(pair, near, far, Nats_Trace_Only="true")
        for name, client in pair.clients.items():
            await client.flush()
            plain = [message for message in got[name] if (message.headers or {}).get("Nats-Trace-Only")]
            assert not plain
        hops = sorted((message.headers or {}).get("Nats-Trace-Hop", "") for message in got["A"] + got["B"])
        assert hops.count("1") >= 2 and set(hops) == {"", "1"}  # delivered over the route once each way, and locally

    run(test)


async def check(pair: Pair, near: str, far: str, **more: str) -> None:
    reports = await pair.trace(near, "orders.1", 2, **more)
    first, second = reports[near], reports[far]
    assert first.events[0] == f"in client name=at{near} acc=$G subj=orders.1"
    assert first.events[1] == f"eg client name=at{near} sub=orders.*"
    assert first.events[-1] == f"eg route name={far} hop=1"
    assert second.events[:2] == [
        f"in route name={near} acc=$G subj=orders.1",
        f"eg client name=at{far} sub=orders.*",
    ]
    queued = [line for line in first.events + second.events if line.endswith("queue=grp")]
    assert len(queued) == 1
    assert (first.hops, first.hop, second.hops, second.hop) == (1, "", 0, "1")


def test_a_peer_that_continues_no_traces_gets_nothing_that_is_only_traced(tmp_path: Path) -> None:
    """Dialect v1 has no headers, and its servers trace nothing."""

    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 2, protocol="v1")
        clients = [await connect(stack, broker.url, name=f"at{broker.options.server_name}") for broker in brokers]
        pair = Pair(dict(zip(("n0", "n1"), clients, strict=True)))
        received = await clients[1].subscribe("orders.*")
        await clients[1].flush()
        await pair.known("orders.*", "n1")
        only = await pair.trace("n0", "orders.1", count=1, Nats_Trace_Only="1")
        both = await pair.trace("n0", "orders.1", count=1)
        lines = [reports["n0"].events[-1] for reports in (only, both)]
        assert [line.partition(" error=")[2] for line in lines] == [ONLY_UNSUPPORTED, UNSUPPORTED]
        assert (await received.next_msg(timeout=PATIENCE)).data == b"hi"
        assert received.pending_msgs == 0

    run(test)
