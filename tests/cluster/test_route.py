"""One route, driven by raw bytes: what is refused and how, what counts before a peer is registered, and recorded
diallers.
"""

import asyncio
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from support.clusters import (
    HELLO,
    HELLO_V1,
    Inbox,
    agreed,
    cluster_of,
    connect,
    meshed,
    run,
    spread,
    start_node,
    start_nodes,
    until,
)
from support.fake_link import FakeLink
from support.forwarding_bench import peers_want
from support.raw_wire import RawLink
from support.route_transcripts import streams

from headwater import Broker
from headwater.cluster.mesh import Protocol
from headwater.cluster.route import Route
from headwater.cluster.route_watch import RouteWatch
from headwater.exchange.sublist import Outlet
from headwater.net.limits import DEFAULTS, ROUTES
from headwater.options.cluster import ClusterOptions
from headwater.wire.memory import OutputBuffer

UNKNOWN = b"-ERR 'Unknown Protocol Operation'\r\n"
REFUSED = b"-ERR 'Authorization Violation'\r\n"


@pytest.mark.parametrize(
    ("protocol", "sent", "received"),
    [
        # CONNECT must be first; everything before it is refused
        ("v2", b'INFO {"server_id":"X"}\r\n', REFUSED),
        ("v2", b"RS+ $G >\r\n", REFUSED),
        ("v2", b"RMSG $G still 2\r\nhi\r\n", REFUSED),
        ("v2", b"PING\r\n", REFUSED),
        ("v2", b"PONG\r\n", REFUSED),
        ("v2", b"-ERR 'Invalid Subject'\r\n", REFUSED),
        ("v1", b"SUB >  RSID:1:1\r\n", REFUSED),
        ("v1", b"MSG still RSID:1:1 2\r\nhi\r\n", REFUSED),
        # identity
        ("v2", b"CONNECT {}\r\n", b'-ERR \'Rejecting connection, cluster name "" does not match "hw"\'\r\n'),
        ("v2", b'CONNECT {"lang":"python"}\r\n', b"-ERR 'attempted to connect to route port'\r\n"),
        ("v1", b'CONNECT {"lang":"go"}\r\n', b"-ERR 'attempted to connect to route port'\r\n"),
        ("v2", b'CONNECT {"cluster":"hw"}\r\nCONNECT [\r\n', b""),
        ("v2", b'CONNECT {"cluster":"hw"}\r\nINFO {"server_id":"X","cluster":"other"}\r\n', b""),
        ("v2", b'CONNECT {"cluster":"hw"}\r\nINFO {"server_id":""}\r\n', b""),
        # operations that do not exist, on routes or at all
        ("v2", b"HELLO\r\n", UNKNOWN),
        ("v2", HELLO + b"SUB foo  RSID:1:1\r\n", UNKNOWN),
        ("v1", HELLO_V1 + b"RS+ $G foo\r\n", UNKNOWN),
        ("v1", HELLO_V1 + b"HPUB foo 12 12\r\n", UNKNOWN),
        ("v2", HELLO + b"RMSG $G still 2\r\nlonger\r\n", UNKNOWN),
        ("v1", HELLO_V1 + b"MSG still RSID:1:1 2\r\nlonger\r\n", UNKNOWN),
        ("v2", HELLO + b"RS+ $G " + b"x" * 20_000 + b"\r\n", b"-ERR 'maximum control line exceeded'\r\n"),
        ("v2", HELLO + b"RMSG $G still 999999999\r\n", b"-ERR 'Maximum Payload Violation'\r\n"),
        # unreadable arguments: closed without -ERR
        ("v1", HELLO_V1 + b"MSG still 3\r\n", b""),
        ("v1", HELLO_V1 + b"MSG still RSID:1:1 x\r\n", b""),
        ("v2", HELLO + b"RMSG $G still x\r\n", b""),
        # any -ERR from the peer ends the route
        ("v2", HELLO + b"-ERR 'Invalid Subject'\r\n", b""),
        ("v1", HELLO_V1 + b"-ERR 'Slow Consumer'\r\n", b""),
    ],
)
def test_raw_peer_that_breaks_the_rules_hears_why_and_the_broker_goes_on(
    protocol: Protocol, sent: bytes, received: bytes
) -> None:
    async def test(stack: AsyncExitStack) -> None:
        brokers = await start_nodes(stack, 2, protocol=protocol)
        client, other = [await connect(stack, broker.url) for broker in brokers]
        inbox = Inbox()
        await other.subscribe("still", cb=inbox.take)
        await other.flush()
        await agreed(brokers)

        def talk() -> bytes:
            with RawLink(cluster_of(brokers[0]).port) as link:
                assert link.greeting.startswith(b"INFO {")
                link.send(sent)
                return link.receive_end()

        answer = await asyncio.to_thread(talk)
        if b"INFO" in sent and received != b"":  # it was registered: all interest was sent first
            assert answer.endswith(received)
        else:
            assert (answer[-len(received) :] if received else b"") == received
            assert b"-ERR" not in answer.removesuffix(received)
        await meshed(brokers, 1)
        await client.publish("still", b"here")
        await until(lambda: inbox.got == [("still", b"here")], "the message across the route")

    run(test)


def test_one_connection_too_many_gets_an_error() -> None:
    async def test(stack: AsyncExitStack) -> None:
        assert DEFAULTS[ROUTES].connections == 1024
        limits = {**DEFAULTS, ROUTES: DEFAULTS[ROUTES].replace(connections=1)}
        options = ClusterOptions(name="hw", host="127.0.0.1")
        broker = await stack.enter_async_context(Broker(cluster=options, connection_limits=limits))

        def talk() -> bytes:
            with RawLink(cluster_of(broker).port) as first, RawLink(cluster_of(broker).port) as second:
                assert first.greeting.startswith(b"INFO {")
                return second.greeting + second.receive_end()

        assert await asyncio.to_thread(talk) == b"-ERR 'maximum connections exceeded'\r\n"

    run(test)


def test_silent_peer_gets_an_authentication_timeout() -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0", auth_timeout=0.1)

        def talk() -> bytes:
            with RawLink(cluster_of(broker).port) as link:
                return link.receive_end()

        assert await asyncio.to_thread(talk) == b"-ERR 'Authentication Timeout'\r\n"

    run(test)


def test_peer_that_answers_no_ping_gets_stale_connection() -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0", ping_interval=0.1, ping_max=1)

        def talk() -> bytes:
            with RawLink(cluster_of(broker).port) as link:
                link.send(HELLO)
                return link.receive_end()

        assert (await asyncio.to_thread(talk)).endswith(b"PING\r\n-ERR 'Stale Connection'\r\n")
        assert cluster_of(broker).watch.stale == 1

    run(test)


def test_interest_before_info_counts_once_the_peer_is_in() -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0", protocol="v1")
        client = await connect(stack, broker.url)
        connect_op, info = HELLO_V1.split(b"\r\n")[:2]

        def talk() -> bytes:
            with RawLink(cluster_of(broker).port) as link:
                link.send(
                    connect_op + b"\r\nSUB foo  RSID:1:1\r\nSUB bar  RSID:1:2\r\nUNSUB RSID:1:2\r\n" + info + b"\r\n"
                )
                return link.receive_until(b"hi\r\n")

        talking = asyncio.ensure_future(asyncio.to_thread(talk))
        await spread({b"foo"}, [broker], 1)
        assert {subject for subject, _, _ in peers_want(cluster_of(broker).space("$G").forwarding)} == {b"foo"}
        await client.publish("bar", b"no")
        await client.publish("foo", b"hi")
        assert (await talking).endswith(b"MSG foo RSID:1:1 2\r\nhi\r\n")

    run(test)


def recorded_diallers() -> list[Any]:
    """The dialling side's bytes, from recorded conversations of real brokers."""
    found = []
    for file, parts, protocol in (("routes_v1_gnatsd.txt", (1, 3, 4), "v1"), ("routes_v2_nats_server.txt", (1,), "v2")):
        for part in parts:
            sent = [data for (_, way), data in streams(file, part).items() if data.startswith(b"CONNECT") and way]
            found += [pytest.param(protocol, data, id=f"{file[:9]}-{part}-{at}") for at, data in enumerate(sent)]
    return found


@pytest.mark.parametrize(("protocol", "sent"), recorded_diallers())
def test_recorded_dialler_is_registered_in_its_dialect_without_an_error(protocol: Protocol, sent: bytes) -> None:
    async def test(stack: AsyncExitStack) -> None:
        broker = await start_node(stack, "n0", protocol=protocol)

        def talk() -> bytes:
            with RawLink(cluster_of(broker).port) as link:
                link.send(sent + b"PING\r\n")
                return link.receive_until(b"PONG\r\n")

        assert b"-ERR" not in await asyncio.to_thread(talk)
        await meshed([broker], 0)

    run(test)


def test_a_route_that_the_router_cut_off_counts_as_a_slow_route() -> None:
    watch = SimpleNamespace(slow=0)
    cluster: Any = SimpleNamespace(clock=lambda: 7.0, route_lost=lambda route: None, watch=watch)
    for closed in (True, False):
        route = Route(cluster, 1)
        route.outlet = Outlet(FakeLink(), OutputBuffer())
        route.outlet.closed = closed
        route.lost(None)
    assert watch.slow == 1


def test_the_log_names_the_peer_that_read_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Between workers all addresses are alike."""
    cluster: Any = SimpleNamespace(clock=lambda: 7.0, find_peer=lambda route: SimpleNamespace(name="hw-2"))

    async def stick() -> None:
        watch = RouteWatch(
            ClusterOptions(),
            lambda route: None,
            lambda: None,
            ping_interval=2.0,
            ping_max=2,
            write_deadline=3.0,
            max_pending=1 << 20,
        )
        watch._stuck(Route(cluster, 1))

    asyncio.run(stick())
    assert [record.getMessage() for record in caplog.records] == ["slow_route peer= name=hw-2 deadline=3"]
