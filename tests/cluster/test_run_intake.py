"""Runs between two workers of one server: handed on unread or read, each client gets what it would get of one process."""

import asyncio
import random
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.certificates import make_certificates
from support.clusters import agreed, cluster_of, meshed, until
from support.monitored import ask
from support.tls_wire import trusting

import headwater
from headwater import Broker
from headwater.cluster.route import Route
from headwater.cluster.run_intake import RunIntake
from headwater.monitoring.server import Monitoring
from headwater.net.listener_options import MonitoringOptions, TlsOptions
from headwater.net.local_sockets import new_place
from headwater.options.cluster import ClusterOptions
from headwater.serving.event_loop import loop_factory
from headwater.wire.run_announcement import ANNOUNCED

CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":false}\r\nPING\r\n'
HAS_PAGES = headwater.__compiled__ and sys.platform == "linux"
Test = Callable[[AsyncExitStack, list[Broker]], Awaitable[None]]


class Client:
    """Speaks the protocol; `wanted` is what it is to receive, but for PING and PONG."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.received = bytearray()
        self.wanted = bytearray()
        self.sids: dict[bytes, bytes] = {}  # by subject

    def take(self, piece: bytes) -> None:
        """Keep what was received, but for the PING that a broker sends two seconds after CONNECT; no payload has one."""
        self.received += piece
        at = self.received.find(b"PING\r\n", max(0, len(self.received) - len(piece) - 5))
        if at >= 0:
            del self.received[at : at + 6]

    async def settle(self) -> None:
        """The broker has read all that was sent."""
        self.writer.write(b"PING\r\n")
        await self.writer.drain()
        while not self.received.endswith(b"PONG\r\n"):
            self.take(await self.reader.read(1 << 16))
        del self.received[-6:]

    async def subscribe(self, subject: bytes, sid: bytes, most: int = 0) -> None:
        self.sids[subject] = sid
        self.writer.write(b"SUB %b %b\r\n" % (subject, sid))
        if most:
            self.writer.write(b"UNSUB %b %d\r\n" % (sid, most))
        await self.settle()

    async def read_until(self, ending: bytes, most: int) -> None:
        while not self.received.endswith(ending):
            piece = await self.reader.read(most)
            assert piece, "the broker has closed the connection"
            self.take(piece)

    async def read_all(self) -> None:
        while len(self.received) < len(self.wanted):
            piece = await self.reader.read(1 << 20)
            assert piece, "the broker has closed the connection"
            self.take(piece)
        assert self.received == self.wanted


async def connect(
    stack: AsyncExitStack, broker: Broker, room: int = 0, context: ssl.SSLContext | None = None
) -> Client:
    """`room`: bytes that its socket receives before they are read, 0 for what the system gives it; `context`: for TLS."""
    link = socket.socket()
    if room:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    link.connect(("127.0.0.1", broker.port))
    reader, writer = await asyncio.open_connection(sock=link, limit=1 << 16)
    stack.callback(writer.close)
    await reader.readuntil(b"\r\n")
    if context is not None:
        await writer.start_tls(context, server_hostname="localhost")
    writer.write(CONNECT)
    await reader.readuntil(b"PONG\r\n")
    return Client(reader, writer)


def run(test: Test) -> None:
    """With two brokers that are joined as two workers are."""

    async def bounded() -> None:
        async with asyncio.timeout(90), AsyncExitStack() as stack:
            place = new_place()
            workers = []
            for number in (1, 2):
                routes = tuple(f"nats-route://127.0.0.1:{other}" for other in range(1, number))
                options = ClusterOptions(name="w", host="127.0.0.1", port=number, place=place, routes=routes)
                broker = Broker(server_name=f"w-{number}", cluster=options)
                workers.append(await stack.enter_async_context(broker))
            await meshed(workers, 1)
            await test(stack, workers)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(bounded())


def route_of(broker: Broker) -> Route:
    (found,) = [route for _, route in cluster_of(broker).routes()]
    return found


def intake_of(broker: Broker) -> RunIntake:
    intake = route_of(broker).intake
    assert intake is not None
    return intake


def ops(subject: bytes, payload: bytes, count: int) -> bytes:
    return b"PUB %b %d\r\n%b\r\n" % (subject, len(payload), payload) * count


def deliveries(subject: bytes, sid: bytes, payload: bytes, count: int) -> bytes:
    return b"MSG %b %b %d\r\n%b\r\n" % (subject, sid, len(payload), payload) * count


async def publish(publisher: Client, clients: list[Client], subject: bytes, payload: bytes, count: int) -> None:
    """Publish a run, and note who is to get it."""
    for client in clients:
        if subject in client.sids:
            client.wanted += deliveries(subject, client.sids[subject], payload, count)
    publisher.writer.write(ops(subject, payload, count))
    await publisher.writer.drain()


async def listening(stack: AsyncExitStack, workers: list[Broker], *sids: bytes) -> list[Client]:
    """Four clients of the first worker with sid 1, and those of the second one with these."""
    clients = [await connect(stack, workers[0]) for _ in range(4)]
    clients += [await connect(stack, workers[1]) for _ in sids]
    for client, sid in zip(clients, (b"1",) * 4 + sids, strict=True):
        await client.subscribe(b"a", sid)
    await agreed(workers)
    return clients


@pytest.mark.parametrize("seed", range(10))
def test_each_client_gets_what_one_process_would_bring_it(seed: int) -> None:
    chance = random.Random(seed)
    sids = chance.choice(((b"1",), (b"1",), (b"1", b"1", b"22"), (b"1", b"333")))

    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = [
            await connect(stack, chance.choice(workers) if at else workers[0], chance.choice((0, 0, 1 << 12, 1 << 16)))
            for at in range(9)
        ]
        for client in clients:
            for subject in (b"a", b"b"):
                if subject == b"a" or chance.random() < 0.5:
                    await client.subscribe(subject, chance.choice(sids) if subject == b"a" else b"7")
        await agreed(workers)
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.read_until(b"end\r\n", chance.choice((1000, 70_000, 1 << 20))))
            for number in range(30):
                payload = bytes([65 + number % 26]) * chance.choice((3, 130, 1500))
                count = chance.choice((1, chance.randrange(1, 500_000) // (len(payload) + 20) + 1))
                await publish(publisher, clients, chance.choice((b"a", b"a", b"a", b"b")), payload, count)
            await publish(publisher, clients, b"a", b"end", 1)
        for client in clients:
            assert client.received == client.wanted

    run(test)


@pytest.mark.parametrize(
    ("sids", "unread"), [((b"1",) * 4, True), ((b"1",), True), ((b"1", b"2"), False), ((b"11",) * 3, False)]
)
def test_pages_are_handed_on_unread_where_all_have_the_sid_of_the_run(sids: tuple[bytes, ...], unread: bool) -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, *sids)
        for _ in range(12):
            await publish(publisher, clients, b"a", b"x" * 128, 2000)
            for client in clients:
                await client.read_all()
        pages = intake_of(workers[1]).pages
        assert (pages.by_pages > 1 << 18) == (unread and HAS_PAGES)
        assert pages.size == 0
        assert route_of(workers[1]).traffic.messages == 12 * 2000
        assert route_of(workers[1]).traffic.bytes == 12 * 2000 * 128
        router = cluster_of(workers[1]).space("$G").router
        got = [subscription.outlet for subscription in router.sublist.match(b"a").plain if subscription.outlet]
        assert [(outlet.out_messages, outlet.out_bytes) for outlet in got] == [(24_000, 24_000 * 128)] * len(sids)

    run(test)


@pytest.mark.parametrize("length", [100, 190, 300])
def test_a_long_sid_makes_runs_that_are_longer_than_a_pipe_or_are_not_announced(length: int) -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = [await connect(stack, worker) for worker in workers * 3]
        for client in clients:
            await client.subscribe(b"a", b"1" * length)
        await agreed(workers)
        for _ in range(6):
            await publish(publisher, clients, b"a", b"x", 20_000)
            for client in clients:
                await client.read_all()

    run(test)


def test_a_limit_ends_a_subscription_at_its_message_and_the_others_get_the_rest() -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1")
        limited = await connect(stack, workers[1])
        await limited.subscribe(b"a", b"1", 3456)
        await agreed(workers)
        limited.wanted += deliveries(b"a", b"1", b"x" * 128, 3456)
        for _ in range(3):
            await publish(publisher, clients, b"a", b"x" * 128, 3000)
            for client in clients:
                await client.read_all()
        await limited.read_all()
        await limited.settle()
        assert limited.received == limited.wanted

    run(test)


def test_a_client_that_leaves_and_one_that_does_not_read_cost_the_others_nothing() -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1", b"1")
        slow = await connect(stack, workers[1], 1 << 12)
        await slow.subscribe(b"a", b"1")
        leaving = await connect(stack, workers[1])
        await leaving.subscribe(b"a", b"1")
        await agreed(workers)
        for number in range(12):
            await publish(publisher, [*clients, slow], b"a", b"x" * 128, 3000)
            if number == 5:
                leaving.writer.transport.abort()
            for client in clients:
                await client.read_all()
        await slow.read_all()

    run(test)


# A client that subscribes, says so, and reads until it is killed.
READER = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(b'CONNECT {"verbose":false}\\r\\nSUB a 1\\r\\nPING\\r\\n')
received = b""
while b"PONG\\r\\n" not in received:
    received += link.recv(65536)
print("subscribed", flush=True)
while piece := link.recv(65536):
    if b"now" in piece:
        print("reading", flush=True)
"""


def test_a_client_that_is_killed_in_the_middle_of_a_flood_costs_the_others_nothing() -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1", b"1")
        arguments = ("-c", READER, str(workers[1].port))
        victim = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
        stack.push_async_callback(victim.wait)
        assert victim.stdout is not None
        assert await victim.stdout.readline() == b"subscribed\n"
        router = cluster_of(workers[1]).space("$G").router
        await until(lambda: len(router.sublist.match(b"a").plain) == 4, "the subscription of the client that is killed")
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.read_until(b"end\r\n", 1 << 18))
            for number in range(40):
                await publish(publisher, clients, b"a", b"now" + b"x" * 125, 3000)
                if number == 5:
                    assert await victim.stdout.readline() == b"reading\n"
                    victim.kill()
            await publish(publisher, clients, b"a", b"end", 1)
        await until(lambda: len(router.sublist.match(b"a").plain) == 3, "the end of the client that was killed")
        for client in clients:
            assert client.received == client.wanted
        assert (intake_of(workers[1]).pages.by_pages > 1 << 20) == HAS_PAGES

    run(test)


def test_receivers_with_tls_get_among_plain_ones_what_these_are_handed_as_pages(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    tls = TlsOptions(cert_file=certificates.server_cert, key_file=certificates.server_key)

    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1", b"1")
        for worker in workers:
            worker.renew_certificates(tls)  # for new clients
            clients.append(await connect(stack, worker, 0, trusting(certificates)))
            await clients[-1].subscribe(b"a", b"1")
        await agreed(workers)
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.read_until(b"end\r\n", 1 << 18))
            for number in range(20):
                await publish(publisher, clients, b"a", bytes([65 + number]) * 128, 3000)
            await publish(publisher, clients, b"a", b"end", 1)
        for client in clients:
            assert client.received == client.wanted
        assert (intake_of(workers[1]).pages.by_pages > 1 << 20) == HAS_PAGES

    run(test)


def test_the_pages_of_monitoring_count_what_was_handed_on_unread() -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1", b"1")
        options = MonitoringOptions(host="127.0.0.1", port=0)
        monitoring = await stack.enter_async_context(Monitoring(workers[1], options, digest="sha256:x"))
        for _ in range(12):
            await publish(publisher, clients, b"a", b"x" * 128, 2000)
            for client in clients:
                await client.read_all()
        assert (intake_of(workers[1]).pages.by_pages > 1 << 18) == HAS_PAGES
        connz = (await asyncio.to_thread(ask, monitoring.port, "/connz")).document
        counted = [(one["out_msgs"], one["out_bytes"]) for one in connz["connections"]]
        assert counted == [(24_000, 24_000 * 128)] * 3
        varz = (await asyncio.to_thread(ask, monitoring.port, "/varz")).document
        assert (varz["out_msgs"], varz["out_bytes"]) == (72_000, 72_000 * 128)

    run(test)


def test_a_member_of_a_queue_group_gets_its_share_beside_them() -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1", b"1")
        member = await connect(stack, workers[1])
        member.writer.write(b"SUB a q 1\r\n")
        await member.settle()
        await agreed(workers)
        for _ in range(4):
            await publish(publisher, [*clients, member], b"a", b"x" * 128, 2000)
        member.wanted += deliveries(b"a", b"1", b"x" * 128, 8000)
        for client in [*clients, member]:
            await client.read_all()

    run(test)


def test_messages_with_headers_or_a_reply_cross_between_the_runs_in_their_order() -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1", b"1")
        for _ in range(4):
            await publish(publisher, clients, b"a", b"x" * 128, 2000)
            publisher.writer.write(
                b"HPUB a 20 23\r\nNATS/1.0\r\nA: bcd\r\n\r\nxyz\r\n" * 1000 + b"PUB a r 3\r\nxyz\r\n" * 1500
            )
            for client in clients:
                client.wanted += b"HMSG a 1 20 23\r\nNATS/1.0\r\nA: bcd\r\n\r\nxyz\r\n" * 1000
                client.wanted += b"MSG a 1 r 3\r\nxyz\r\n" * 1500
        for client in clients:
            await client.read_all()

    run(test)


def test_a_link_that_ends_in_the_middle_of_a_run_cuts_no_message_and_the_next_one_has_runs_again() -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        publisher = await connect(stack, workers[0])
        clients = await listening(stack, workers, b"1", b"1", b"1")
        before = route_of(workers[1])
        publisher.writer.write(ops(b"a", b"x" * 128, 20_000))
        await until(lambda: before.traffic.messages >= 3000, "a part of the messages")
        assert before.link is not None
        before.link.abort()
        await until(
            lambda: all(route is not before for _, route in cluster_of(workers[1]).routes()), "the end of a link"
        )
        await meshed(workers, 1)
        await agreed(workers)
        await publisher.settle()
        for client in clients[4:]:
            await client.settle()
            one = deliveries(b"a", b"1", b"x" * 128, 1)
            assert client.received == one * (len(client.received) // len(one))
            del client.received[:]
        for _ in range(8):
            await publish(publisher, clients[4:], b"a", b"y" * 128, 2000)
        for client in clients[4:]:
            await client.read_until(bytes(client.wanted), 1 << 20)
            assert client.received == client.wanted
        assert (intake_of(workers[1]).pages.by_pages > 1 << 18) == HAS_PAGES

    run(test)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"!RUN $G a 1 3", "no announcement of a run"),
        (b"!RUN $G a 1 -3 5", "no announcement of a run"),
        (b"!RUN $G a 1 3 0", "a run of 0 messages of 3 bytes"),
    ],
)
def test_an_announcement_that_cannot_be_read_ends_the_link_and_says_why(
    sent: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        before = route_of(workers[1])
        route_of(workers[0]).send(sent.ljust(ANNOUNCED - 2) + b"\r\n")
        await until(
            lambda: all(route is not before for _, route in cluster_of(workers[1]).routes()), "the end of a link"
        )
        assert reason in caplog.text and "route_failed" in caplog.text

    run(test)


def test_a_run_that_is_not_as_announced_reaches_nobody_and_ends_the_link(caplog: pytest.LogCaptureFixture) -> None:
    async def test(stack: AsyncExitStack, workers: list[Broker]) -> None:
        clients = await listening(stack, workers, b"2")
        before = route_of(workers[1])
        body = b"MSG a 1 3\r\nabc\r\n" + b"MSG b 1 3\r\nabc\r\n"
        route_of(workers[0]).send(b"!RUN $G a 1 3 2".ljust(ANNOUNCED - 2) + b"\r\n" + body)
        await until(
            lambda: all(route is not before for _, route in cluster_of(workers[1]).routes()), "the end of a link"
        )
        assert "a run that is not as announced" in caplog.text
        await clients[-1].settle()
        assert clients[-1].received == b""

    run(test)
