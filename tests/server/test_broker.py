"""The broker as a whole, over TCP: starting, serving, protecting itself, stopping."""

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from headwater.errors import EnvironmentProblem, LocalProtocolError
from headwater.net.listener_options import WebSocketOptions
from headwater.options.access import AccountOptions, Permissions, SubjectRules, UserOptions
from headwater.options.broker import BrokerOptions
from headwater.server.broker import Broker
from headwater.server.broker_arguments import AllBrokerArguments, BrokerArguments

PLAIN = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":0}\r\n'


class Client:
    """A raw connection that has been greeted."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, info: dict[str, object]) -> None:
        self.reader = reader
        self.writer = writer
        self.info = info

    async def ask(self, data: bytes) -> bytes:
        """Send `data` and a PING; returns what came before the PONG."""
        self.writer.write(data + b"PING\r\n")
        return (await self.reader.readuntil(b"PONG\r\n")).removesuffix(b"PONG\r\n")


opened: list[asyncio.StreamWriter] = []


async def dial(broker: Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(broker.host, broker.port, limit=1 << 24)
    opened.append(writer)
    return reader, writer


async def connect(broker: Broker, first: bytes = PLAIN) -> Client:
    reader, writer = await dial(broker)
    info = json.loads((await reader.readline()).removeprefix(b"INFO "))
    writer.write(first)
    return Client(reader, writer, info)


def serve(test: Callable[[Broker], Coroutine[None, None, None]], options: BrokerOptions | None = None) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Broker(options=options or BrokerOptions()) as broker:
            try:
                await test(broker)
            finally:
                for writer in opened:
                    writer.transport.abort()
                opened.clear()

    asyncio.run(main())


def test_info_tells_what_clients_decide_by() -> None:
    async def conversation(broker: Broker) -> None:
        first, second = await connect(broker), await connect(broker)
        assert first.info["headers"] is True
        assert first.info["proto"] == 1
        assert first.info["port"] == broker.port
        assert first.info["max_payload"] == 1 << 20
        assert first.info["client_ip"] == "127.0.0.1"
        assert first.info["client_id"] != second.info["client_id"]
        assert str(first.info["server_id"]).startswith("N")

    serve(conversation)


def test_messages_travel_between_clients_in_order() -> None:
    async def conversation(broker: Broker) -> None:
        subscriber, publisher = await connect(broker), await connect(broker)
        await subscriber.ask(b"SUB a.> 7\r\n")
        await publisher.ask(b"".join(b"PUB a.%d 3\r\nabc\r\n" % number for number in range(1000)))
        expected = b"".join(b"MSG a.%d 7 3\r\nabc\r\n" % number for number in range(1000))
        assert await subscriber.reader.readexactly(len(expected)) == expected

    serve(conversation)


def test_each_of_thousands_of_subjects_reaches_its_own_subscription_when_published_to_again() -> None:
    async def conversation(broker: Broker) -> None:
        subscriber, publisher = await connect(broker), await connect(broker)
        await subscriber.ask(b"".join(b"SUB far.%d.a %d\r\n" % (number, number) for number in range(7000)))
        order = [position * 7919 % 7000 for position in range(7000)]
        expected = b"".join(b"MSG far.%d.a %d 3\r\nabc\r\n" % (number, number) for number in order)
        for _ in range(3):
            await publisher.ask(b"".join(b"PUB far.%d.a 3\r\nabc\r\n" % number for number in order))
            assert await subscriber.reader.readexactly(len(expected)) == expected

    serve(conversation)


def test_garbage_from_one_client_does_not_disturb_another() -> None:
    async def conversation(broker: Broker) -> None:
        good = await connect(broker)
        await good.ask(b"SUB a 1\r\n")
        for garbage in (b"\x00\xff\xfe" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"PUB a 5\r\nlonger\r\n", b"CONNECT [\r\n"):
            bad = await connect(broker, garbage)
            await bad.reader.read()
            assert await good.ask(b"PUB a 2\r\nok\r\n") == b"MSG a 1 2\r\nok\r\n"

    serve(conversation)


def test_a_client_that_never_reads_does_not_stop_those_who_do(caplog: pytest.LogCaptureFixture) -> None:
    async def conversation(broker: Broker) -> None:
        stuck, good, publisher = await connect(broker), await connect(broker), await connect(broker)
        await stuck.ask(b"SUB a 1\r\n")
        await good.ask(b"SUB a 1\r\n")
        stuck.reader._transport.pause_reading()  # type: ignore[attr-defined]
        payload = bytes(1 << 16)
        op = b"PUB a %d\r\n%b\r\n" % (len(payload), payload)
        received = 0
        for _ in range(40):
            await publisher.ask(op * 16)
            received += len(await good.reader.readexactly(16 * (len(op) + 2)))
        assert received > 40 << 20
        assert broker.router is not None
        assert broker.router.flusher.slow_consumers == 1
        assert broker.sessions is not None
        assert len(broker.sessions) == 2
        reason = "more than max_pending waits for it"
        (event,) = [event for event in broker.journal.events if event["kind"] == "slow_consumer"]
        host, port = stuck.writer.get_extra_info("sockname")
        address = f"{host}:{port}"
        assert (event["account"], event["address"], event["reason"]) == ("$G", address, reason)
        (line,) = [line for line in caplog.messages if "slow_consumer" in line]
        assert f"address='{address}' reason='{reason}'" in line

    serve(conversation, BrokerOptions(max_pending=16 << 20))


def test_connections_beyond_the_limit_are_refused_and_others_served() -> None:
    async def conversation(broker: Broker) -> None:
        first = await connect(broker)
        reader, _ = await dial(broker)
        assert (await reader.readline()).startswith(b"INFO ")
        assert await reader.read() == b"-ERR 'maximum connections exceeded'\r\n"
        assert await first.ask(b"") == b""

    serve(conversation, BrokerOptions(max_connections=1))


def test_a_silent_client_is_pinged_and_found_stale() -> None:
    async def conversation(broker: Broker) -> None:
        client = await connect(broker)
        output = await client.reader.read()
        assert output == b"PING\r\nPING\r\n-ERR 'Stale Connection'\r\n"

    serve(conversation, BrokerOptions(ping_interval=0.1, ping_max=2))


def test_a_port_in_use_is_told_and_nothing_is_left_behind() -> None:
    async def main() -> None:
        async with Broker() as broker:
            with pytest.raises(EnvironmentProblem, match=str(broker.port)):
                await Broker(port=broker.port).start()

    asyncio.run(main())


def test_starting_twice_is_the_callers_fault_and_stopping_twice_is_none() -> None:
    async def main() -> None:
        broker = Broker()
        await broker.start()
        with pytest.raises(LocalProtocolError):
            await broker.start()
        await broker.stop()
        await broker.stop()

    asyncio.run(main())


def test_stopping_ends_the_connections_without_an_error_op() -> None:
    async def conversation(broker: Broker) -> None:
        client = await connect(broker)
        await client.ask(b"")
        await broker.stop()
        assert await client.reader.read() == b""

    serve(conversation)


def test_a_stop_leaves_no_connection_open_though_its_peer_never_closes_it() -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Broker(options=BrokerOptions()) as broker:
            client = await connect(broker)
            assert await client.ask(b"") == b""
            assert broker.sessions is not None
            (session,) = broker.sessions.all()
            link = session.link
        assert link is not None
        assert link.when_gone is not None
        assert link.when_gone.done()
        for writer in opened:
            writer.transport.abort()
        opened.clear()

    asyncio.run(main())


def test_an_embedded_broker_takes_every_option_as_a_keyword(tmp_path: Path) -> None:
    async def main() -> None:
        users = (
            UserOptions(username="derek", password="p", permissions=Permissions(publish=SubjectRules(deny=("no",)))),
        )
        broker = Broker(
            store_dir=tmp_path,
            jetstream=True,
            accounts=(AccountOptions(name="A", users=users),),
            max_payload=1000,
            websocket=WebSocketOptions(no_tls=True),
        )
        async with asyncio.timeout(30), broker:
            assert broker.websocket_url == f"ws://127.0.0.1:{broker.websocket_port}"
            assert not broker.jetstreams, "there are accounts, and none of them asks for streams"
            client = await connect(broker, PLAIN.replace(b"{", b'{"user":"derek","pass":"p",', 1))
            assert client.info["max_payload"] == 1000
            assert client.info["auth_required"] is True
            assert await client.ask(b"PUB no 1\r\nx\r\n") == b"-ERR 'Permissions Violation for Publish to \"no\"'\r\n"
            client.writer.transport.abort()
            opened.clear()

    asyncio.run(main())
    with pytest.raises(TypeError, match="max_payload"):
        Broker(options=BrokerOptions(), max_payload=5)


def test_a_start_that_fails_leaves_no_listener_behind() -> None:
    async def main() -> None:
        async with Broker() as other:
            taken = WebSocketOptions(no_tls=True, port=other.port)
            broker = Broker(websocket=taken)
            with pytest.raises(EnvironmentProblem, match=str(other.port)):
                await broker.start()
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", broker.port)

    asyncio.run(main())


def test_type_checkers_know_every_keyword_of_a_broker() -> None:
    named = {"host", "port", "store_dir"}
    assert set(BrokerArguments.__annotations__) == {name for name, _ in BrokerOptions().items()} - named
    rest = set(AllBrokerArguments.__annotations__) - set(BrokerArguments.__annotations__)
    assert rest == set(inspect.signature(Broker).parameters) - {"fields"}
