"""A client that loses its server: what survives, which events are reported, and that nothing comes twice or in pieces."""

import asyncio
import contextlib
import secrets
from pathlib import Path
from typing import Literal

import pytest
from support.both_servers import Serve
from support.nats_server import NatsServer, start_nats_server
from support.scripted_server import INFO, Peer, ScriptedServer, finish, until
from support.unruly_proxy import Mishap, UnrulyProxy

import headwater
from headwater.client.client import Client
from headwater.client_connection.events import (
    CallbackFailed,
    Closed,
    Disconnected,
    Discovered,
    Event,
    LameDuck,
    Reconnected,
)
from headwater.errors import (
    AuthorizationError,
    BufferFull,
    ConnectionClosed,
    HeaderError,
    RemoteProtocolError,
    TransportError,
)

AT_ONCE = {"reconnect_wait": 0.0, "reconnect_jitter": 0.0}


async def connected(server: ScriptedServer, **options: object) -> tuple[Client, Peer]:
    connecting = asyncio.create_task(headwater.connect(server.url, **AT_ONCE, **options))  # type: ignore[arg-type]
    peer = await server.accept()
    await peer.welcome()
    return await connecting, peer


def quiet(_: BaseException) -> None:
    """An error callback for tests in which the connection is lost on purpose."""


# ── through a proxy that cuts, delays and truncates ──


async def one_conversation(client: Client, proxy: UnrulyProxy, mishap: Mishap | None, subject: str) -> None:
    """Connect anew into the mishap, publish, and see that a message comes in the end."""
    proxy.plan(*([mishap] if mishap else []))
    subscription = await client.subscribe(f"{subject}.{mishap.after if mishap else 'none'}")
    await client.reconnect()
    while True:
        await client.publish(subscription.subject, b"whole and alone", headers={"K": "v"})
        try:
            await client.flush()
        except TransportError:
            continue
        if subscription.pending:
            break
    message = await subscription.next(5)
    assert (message.data, message.headers.multi_items()) == (b"whole and alone", [("K", "v")])
    subscription.unsubscribe()


@pytest.mark.parametrize("direction", ["to client", "to server"])
@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_mishap_at_any_byte_of_a_conversation_is_survived(
    serve: Serve, direction: Literal["to client", "to server"], turn: int
) -> None:
    """Each byte meets one kind of mishap; the three turns together, each byte all of them."""

    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        errors: list[BaseException] = []
        async with serve() as url, UnrulyProxy(url) as proxy:
            client = await headwater.connect(proxy.url, error_callback=errors.append, **AT_ONCE)  # type: ignore[arg-type]
            await one_conversation(client, proxy, None, subject)
            length = proxy.passed[direction]
            assert length > 200
            kinds: tuple[Literal["cut", "truncate", "delay"], ...] = ("cut", "truncate", "delay")
            for after in range(length):
                kind = kinds[(after + turn) % 3]
                await one_conversation(client, proxy, Mishap(kind, direction, after), subject)
            assert proxy.met > length * 0.9
            assert client.reconnects >= length
            assert not client._connection.queues
            assert {type(error) for error in errors} == {TransportError}
            await client.close()

    finish(main(), 120)


def test_everybody_is_subscribed_again_and_iterations_go_on(serve: Serve) -> None:
    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        async with serve() as url, UnrulyProxy(url) as proxy, await headwater.connect(url) as other:
            client = await headwater.connect(proxy.url, error_callback=quiet, **AT_ONCE)  # type: ignore[arg-type]
            plain = await client.subscribe(f"{subject}.*")
            member = await client.subscribe(f"{subject}.a", queue="q")
            received: list[bytes] = []
            await client.subscribe(f"{subject}.a", callback=lambda message: received.append(message.data))
            for number in range(20):
                await client.flush()
                other.publish(f"{subject}.a", b"%d" % number)
                assert (await plain.next(5)).data == b"%d" % number
                assert (await member.next(5)).data == b"%d" % number
                proxy.cut_all()
                async with asyncio.timeout(5):
                    await until(lambda: not client.is_connected)
                    await until(lambda: client.is_connected)
            assert received == [b"%d" % number for number in range(20)]
            assert client.reconnects == 20
            await client.close()

    finish(main(), 30)


def test_requests_wait_on_while_the_connection_is_made_anew(serve: Serve) -> None:
    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        async with serve() as url, UnrulyProxy(url) as proxy, await headwater.connect(url) as service:
            client = await headwater.connect(proxy.url, error_callback=quiet, **AT_ONCE)  # type: ignore[arg-type]
            requests = await service.subscribe(subject)
            await service.flush()
            waiting = asyncio.create_task(client.request(subject, timeout=20))
            question = await requests.next(5)
            proxy.cut_all()
            await until(lambda: client.reconnects == 1)
            await client.flush()
            await question.respond(b"late, but here")
            assert (await waiting).data == b"late, but here"
            await client.close()

    finish(main(), 30)


def test_a_server_that_dies_and_comes_back_on_its_port_is_found_again(tmp_path: Path) -> None:
    async def main() -> None:
        server = start_nats_server(tmp_path / "1", jetstream=False)
        events: list[Event] = []
        client = await headwater.connect(
            server.url, error_callback=quiet, event_callback=events.append, reconnect_wait=0.05, reconnect_jitter=0.0
        )
        try:
            subscription = await client.subscribe("a")
            await client.flush()
            server.kill()
            await until(lambda: not client.is_connected)
            for number in range(1000):
                await client.publish("a", b"%d" % number)
            server = await asyncio.to_thread(start_nats_server, tmp_path / "2", jetstream=False, port=server.port)
            await client.flush(20)
            assert [message.data for message in subscription.take(2000)] == [b"%d" % n for n in range(1000)]
            assert isinstance(events[0], Disconnected)
            assert f"the connection to 127.0.0.1:{server.port} was lost" in str(events[0].reason)
            assert isinstance(events[-1], Reconnected)
        finally:
            await client.close()
            server.stop()

    finish(main(), 40)


# ── to the byte, on a scripted server ──


def test_subscriptions_come_first_with_what_is_left_of_their_maximum_then_what_was_published() -> None:
    async def main() -> bytes:
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet)
            await client.subscribe("a", queue="q", max_messages=5)
            gone = await client.subscribe("b")
            await client.subscribe("c")
            gone.unsubscribe()
            peer.send(b"MSG a 1 1\r\nx\r\nMSG a 1 1\r\ny\r\n")
            flushing = asyncio.create_task(client.flush())
            for _ in range(5):
                await peer.receive_line()
            await peer.answer_ping()
            await flushing
            peer.cut()
            await until(lambda: not client.is_connected)
            client.publish("d", b"1")
            late = await client.subscribe("e", max_messages=2)
            client.publish("d", b"2", headers={"K": "v"})
            flushing = asyncio.create_task(client.flush())
            peer = await server.accept()
            await peer.welcome()
            wanted = (
                b"SUB a q 1\r\nUNSUB 1 3\r\nSUB c 3\r\nSUB e 4\r\nUNSUB 4 2\r\n"
                b"PUB d 1\r\n1\r\nHPUB d 18 19\r\nNATS/1.0\r\nK: v\r\n\r\n2\r\nPING\r\n"
            )
            output = await peer.receive(len(wanted))
            peer.send(b"PONG\r\n")
            await flushing
            late.unsubscribe(1)
            assert await peer.receive_line() == b"UNSUB 4 1"
            peer.hang_up()
            await client.close()
            assert output == wanted
            return output

    finish(main())


def test_a_maximum_that_is_set_after_a_reconnect_counts_from_the_new_subscription() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet)
            subscription = await client.subscribe("a")
            peer.send(b"MSG a 1 1\r\nx\r\n")
            await subscription.next(5)
            peer.cut()
            peer = await server.accept()
            await peer.welcome()
            assert await peer.receive_line() == b"SUB a 1"
            await until(lambda: client.is_connected)
            subscription.unsubscribe(3)
            assert await peer.receive_line() == b"UNSUB 1 2"
            peer.send(b"MSG a 1 1\r\ny\r\nMSG a 1 1\r\nz\r\n")
            assert [message.data async for message in subscription] == [b"y", b"z"]
            peer.hang_up()
            await client.close()

    finish(main())


def test_what_is_published_while_away_is_bounded_and_awaiting_it_waits() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet, reconnect_buffer=3 << 20)
            peer.cut()
            await until(lambda: not client.is_connected)
            await client.publish("a", bytes(1000))
            waiting = asyncio.ensure_future(client.publish("a", bytes(1 << 20)))
            client.publish("a", bytes(1 << 20))
            with pytest.raises(BufferFull) as full:
                client.publish("a", bytes(1 << 20))
            assert full.value.limit == 3 << 20
            assert full.value.retriable
            assert not waiting.done()
            peer = await server.accept()
            await peer.welcome()
            await waiting
            await peer.receive((2 << 20) + 1000)
            peer.hang_up()
            await client.close()

    finish(main())


def test_a_flush_that_waited_for_the_lost_link_raises_and_a_later_one_waits() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet)
            waiting = asyncio.create_task(client.flush())
            await peer.receive_line()
            peer.cut()
            with pytest.raises(TransportError, match="lost"):
                await waiting
            again = asyncio.create_task(client.flush())
            peer = await server.accept()
            await peer.welcome()
            await peer.answer_ping()
            await again
            peer.hang_up()
            await client.close()

    finish(main())


def test_a_garbled_op_ends_the_link_and_not_the_client() -> None:
    async def main() -> None:
        received: list[BaseException] = []
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=received.append)
            subscription = await client.subscribe("a")
            await peer.receive_line()
            peer.send(b"MSG a 1 1\r\nx\r\nMSG a one 2\r\nxx\r\n")
            peer = await server.accept()
            await peer.welcome()
            assert await peer.receive_line() == b"SUB a 1"
            peer.send(b"MSG a 1 1\r\ny\r\n")
            assert [(await subscription.next(5)).data for _ in range(2)] == [b"x", b"y"]
            assert [type(error).__name__ for error in received] == ["RemoteProtocolError"]
            peer.hang_up()
            await client.close()

    finish(main())


@pytest.mark.parametrize(
    "garbage",
    [
        b"NONSENSE\r\n",
        b"\x00\xff\r\n",
        b"MSG a 1\r\n",
        b"MSG a one 1\r\nx\r\n",
        b"MSG a 1 5\r\ntoo long\r\n",
        b"MSG a 1 99999999999\r\n",
        b"HMSG a 1 9 5\r\nxxxxx\r\n",
        b"INFO {no json\r\n",
        b"INFO " + b"x" * (1 << 20),
    ],
)
def test_what_is_no_protocol_is_reported_and_the_client_comes_back(garbage: bytes) -> None:
    async def main() -> None:
        errors: list[BaseException] = []
        events: list[Event] = []
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=errors.append, event_callback=events.append)
            stream = client.events()
            subscription = await client.subscribe("a")
            await peer.receive_line()
            peer.send(garbage)
            peer = await server.accept()
            await peer.welcome()
            assert await peer.receive_line() == b"SUB a 1"
            peer.send(b"MSG a 1 1\r\ny\r\n")
            assert (await subscription.next(5)).data == b"y"
            lost, back = events
            assert isinstance(lost, Disconnected)
            assert isinstance(lost.reason, RemoteProtocolError)
            assert isinstance(back, Reconnected)
            assert errors == [lost.reason]
            assert [await anext(stream), await anext(stream)] == events
            peer.hang_up()
            await client.close()

    finish(main())


def test_a_malformed_header_block_harms_only_who_looks_at_it() -> None:
    async def main() -> None:
        events: list[Event] = []
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet, event_callback=events.append)
            iterated = await client.subscribe("a")
            looked: list[bytes] = []

            def look(message: headwater.Message) -> None:
                looked.append(message.data)
                _ = message.headers

            await client.subscribe("b", callback=look)
            answering = asyncio.create_task(client.request("q"))
            for _ in range(4):
                inbox = await peer.receive_line()
            reply = inbox.split()[2]
            for subject, sid in ((b"a", 1), (b"b", 2), (reply, 3)):
                peer.send(b"HMSG %s %d 8 9\r\ngarbage!x\r\n" % (subject, sid))
            peer.send(b"MSG a 1 1\r\ny\r\n")
            first = await iterated.next(5)
            assert first.data == b"x"
            with pytest.raises(HeaderError):
                _ = first.headers
            assert (await iterated.next(5)).data == b"y"
            assert (await answering).data == b"x"
            await until(lambda: bool(events))
            assert looked == [b"x"]
            assert [type(event) for event in events] == [CallbackFailed]
            assert isinstance(events[0].error, HeaderError)  # type: ignore[attr-defined]
            assert (client.is_connected, client.reconnects) == (True, 0)
            peer.hang_up()
            await client.close()

    finish(main())


def test_close_while_away_ends_everything_at_once() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet)
            subscription = await client.subscribe("a")
            peer.cut()
            await server.accept()  # which says nothing, so the client hangs in the handshake
            await client.close()
            assert client.is_closed
            assert [message async for message in subscription] == []
            with pytest.raises(ConnectionClosed):
                client.publish("a")
            assert await client.wait_closed() is None

    finish(main())


def test_credentials_that_are_refused_twice_end_it() -> None:
    async def main() -> None:
        received: list[BaseException] = []
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=received.append)
            peer.cut()
            for _ in range(2):
                peer = await server.accept()
                peer.send(INFO)
                await peer.receive_line()
                peer.send(b"-ERR 'Authorization Violation'\r\n")
            assert isinstance(await client.wait_closed(), AuthorizationError)
            assert client.servers == []
            await client.close()

    finish(main())


def test_a_number_of_attempts_is_kept_to() -> None:
    async def main() -> None:
        events: list[Event] = []
        async with ScriptedServer() as server:
            client, peer = await connected(
                server, error_callback=quiet, reconnect_attempts=3, event_callback=events.append
            )
            peer.cut()
            for _ in range(3):
                (await server.accept()).cut()
            reason = await client.wait_closed()
            assert isinstance(reason, TransportError)
            names = [type(event).__name__ for event in events]
            assert names == ["Disconnected", "AttemptFailed", "AttemptFailed", "AttemptFailed", "Closed"]
            assert isinstance(events[-1], Closed)
            assert events[-1].reason is reason
            await client.close()

    finish(main())


def test_servers_that_info_names_are_tried_when_the_first_is_gone() -> None:
    async def main() -> None:
        events: list[Event] = []
        async with ScriptedServer() as second:
            async with ScriptedServer() as first:
                connecting = asyncio.create_task(
                    headwater.connect(
                        first.url.replace("//", "//u:p@"),
                        error_callback=quiet,
                        event_callback=events.append,
                        **AT_ONCE,  # type: ignore[arg-type]
                    )
                )
                peer = await first.accept()
                place = second.url.removeprefix("nats://").encode()
                await peer.welcome(INFO.replace(b"{", b'{"connect_urls":["%s","[::1"],' % place, 1))
                client = await connecting
                assert client.servers == [first.url, second.url]
                peer.send(INFO.replace(b"{", b'{"ldm":true,', 1))
                await until(lambda: any(isinstance(event, LameDuck) for event in events))
            peer = await second.accept()
            assert b'"user":"u"' in await peer.welcome()
            await until(lambda: client.server == second.url)
            peer.hang_up()
            await client.close()
        assert [type(event) for event in events if not isinstance(event, Closed)] == [
            LameDuck,
            Disconnected,
            Reconnected,
        ]

    finish(main())


def test_later_news_of_the_cluster_is_told_and_events_can_be_iterated() -> None:
    async def main() -> list[Event]:
        async with ScriptedServer() as server:
            client, peer = await connected(server)
            events = client.events()
            peer.send(INFO.replace(b"{", b'{"connect_urls":["10.0.0.9:4222"],', 1))
            await until(lambda: len(client.servers) == 2)
            peer.hang_up()
            with contextlib.suppress(TransportError):
                await client.close()
            return [event async for event in events]

    discovered, *_, closed = finish(main())
    assert discovered == Discovered(servers=("nats://10.0.0.9:4222",))
    assert closed == Closed(reason=None)


def test_a_real_server_in_lame_duck_mode_is_left_for_another(tmp_path: Path) -> None:
    async def main() -> None:
        events: list[Event] = []
        config = tmp_path / "lame.conf"
        config.write_text('lame_duck_duration: "30s"\nlame_duck_grace_period: "1s"\n')
        first = await asyncio.to_thread(start_nats_server, tmp_path / "1", "-c", str(config), jetstream=False)
        second: NatsServer = await asyncio.to_thread(start_nats_server, tmp_path / "2", jetstream=False)
        client = await headwater.connect(
            [first.url, second.url], event_callback=events.append, error_callback=quiet, reconnect_jitter=0.0
        )
        try:
            subscription = await client.subscribe("a")
            await client.flush()
            first.enter_lame_duck_mode()
            async with asyncio.timeout(30):
                await _reported(client, events, LameDuck)
                await client.reconnect()
            assert client.server == second.url
            client.publish("a", b"1")
            assert (await subscription.next(5)).data == b"1"
        finally:
            await client.close()
            first.kill()
            second.stop()

    finish(main(), 60)


async def _reported(client: Client, events: list[Event], kind: type[Event]) -> None:
    async for event in client.events():
        if isinstance(event, kind) or any(isinstance(each, kind) for each in events):
            return


# ── requests ──


def test_a_request_that_may_be_repeated_is_asked_again_and_another_waits_on(serve: Serve) -> None:
    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        async with serve() as url, UnrulyProxy(url) as proxy, await headwater.connect(url) as service:
            client = await headwater.connect(proxy.url, error_callback=quiet, **AT_ONCE)  # type: ignore[arg-type]
            requests = await service.subscribe(f"{subject}.*")
            await service.flush()
            once = asyncio.create_task(client.request(f"{subject}.once", timeout=20))
            again = asyncio.create_task(client.request(f"{subject}.again", b"?", headers={"K": "v"}, repeat=True))
            first = [await requests.next(5) for _ in range(2)]
            proxy.cut_all()
            repeated = await requests.next(5)
            assert (repeated.subject, repeated.data, repeated.headers["K"]) == (f"{subject}.again", b"?", "v")
            assert repeated.reply == next(one.reply for one in first if one.subject == repeated.subject)
            repeated.respond(b"to the second")
            assert (await again).data == b"to the second"
            assert not once.done()
            next(one for one in first if one.subject == f"{subject}.once").respond(b"to the first")
            assert (await once).data == b"to the first"
            assert not requests.pending
            await client.close()

    finish(main(), 30)


def test_a_request_that_was_asked_while_away_is_sent_once() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet)
            before = asyncio.create_task(client.request("q", b"1", repeat=True))
            await peer.receive_line()
            reply = (await peer.receive_line()).split()[2]
            await peer.receive_line()
            peer.cut()
            await until(lambda: not client.is_connected)
            meanwhile = asyncio.create_task(client.request("q", b"2", repeat=True))
            await asyncio.sleep(0)
            peer = await server.accept()
            await peer.welcome()
            assert (await peer.receive_line()).startswith(b"SUB ")
            output = [await peer.receive_line() for _ in range(4)]
            assert [output[1], output[3]] == [b"2", b"1"]
            assert output[2].split()[2] == reply
            for control, answer in ((output[0], b"b"), (output[2], b"a")):
                peer.send(b"MSG %s 1 1\r\n%s\r\n" % (control.split()[2], answer))
            assert [(await before).data, (await meanwhile).data] == [b"a", b"b"]
            peer.hang_up()
            await client.close()

    finish(main())


def test_requests_end_with_the_connection_at_once() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            client, peer = await connected(server, error_callback=quiet, reconnect_attempts=1)
            requests = [
                asyncio.create_task(client.request("q", timeout=600, repeat=repeat)) for repeat in (False, True)
            ]
            for _ in range(5):
                await peer.receive_line()
            peer.cut()
            (await server.accept()).cut()
            for one in requests:
                with pytest.raises(TransportError):
                    await one
            await client.close()

    finish(main())
