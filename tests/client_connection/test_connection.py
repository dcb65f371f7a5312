"""A connection against a server that misbehaves: no call hangs, each gets the right error, once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from support.scripted_server import INFO, Peer, ScriptedServer, conversation, finish, until

import headwater
from headwater.client.client import Client
from headwater.client_connection import connection as connection_module
from headwater.errors import (
    AuthorizationError,
    ConfigError,
    ConnectionClosed,
    HeadwaterError,
    RemoteProtocolError,
    RequestTimeout,
    ServerError,
    TransportError,
)

GARBAGE = b"GET / HTTP/1.1\r\n"


def test_connect_says_who_it_is_in_one_line_before_its_ping() -> None:
    async def main() -> bytes:
        async with ScriptedServer() as server:
            url = server.url.replace("//", "//alice:s3cret@")
            connecting = asyncio.create_task(headwater.connect(url, name="me"))
            peer = await server.accept()
            output = await peer.welcome()
            await (await connecting).close()
            return output

    output = finish(main())
    assert output.startswith(b"CONNECT {")
    for part in (b'"name":"me"', b'"user":"alice"', b'"pass":"s3cret"', b'"headers":true', b'"no_responders":true'):
        assert part in output
    assert b'"verbose":false' in output
    assert b"auth_token" not in output


async def refused(script: Callable[[Peer], Coroutine[Any, Any, object]], **options: Any) -> BaseException:
    """What `connect` raises when the server follows `script`."""
    async with ScriptedServer() as server:
        connecting = asyncio.create_task(headwater.connect(server.url, **options))
        await script(await server.accept())
        with pytest.raises(HeadwaterError) as caught:
            await connecting
        return caught.value


def test_refused_credentials_are_an_authorization_error_with_the_servers_text() -> None:
    async def script(peer: Peer) -> None:
        peer.send(INFO)
        await peer.receive_line()
        peer.send(b"-ERR 'Authorization Violation'\r\n")
        peer.hang_up()

    error = finish(refused(script))
    assert isinstance(error, AuthorizationError)
    assert "Authorization Violation" in str(error)


def test_an_error_in_place_of_info_is_the_reason() -> None:
    async def script(peer: Peer) -> None:
        peer.send(b"-ERR 'maximum connections exceeded'\r\n")
        peer.hang_up()

    error = finish(refused(script))
    assert type(error) is ServerError
    assert "maximum connections exceeded" in str(error)


def test_an_error_right_behind_info_is_the_reason_too() -> None:
    async def script(peer: Peer) -> None:
        peer.send(INFO + b"-ERR 'Authorization Violation'\r\n")
        peer.hang_up()

    assert isinstance(finish(refused(script)), AuthorizationError)


def test_any_error_during_the_handshake_ends_it_even_if_the_server_stays() -> None:
    async def script(peer: Peer) -> None:
        peer.send(INFO)
        await peer.receive_line()
        peer.send(b"-ERR 'maximum account active connections exceeded'\r\n")
        await peer.receive_end()

    assert "account active" in str(finish(refused(script)))


@pytest.mark.parametrize("output", [GARBAGE, b"INFO nonsense\r\n", b"\x16\x03\x01\x02\x00\r\n"])
def test_what_is_no_nats_server_is_a_protocol_error_of_the_peer(output: bytes) -> None:
    async def script(peer: Peer) -> None:
        peer.send(output)
        await peer.receive_end()

    assert isinstance(finish(refused(script)), RemoteProtocolError)


def test_a_server_that_hangs_up_at_once_is_a_transport_error() -> None:
    async def script(peer: Peer) -> None:
        peer.hang_up()

    assert type(finish(refused(script))) is TransportError


@pytest.mark.parametrize("output", [b"", INFO])
def test_a_silent_server_is_given_up_and_the_socket_closed(output: bytes) -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            connecting = asyncio.create_task(headwater.connect(server.url, connect_timeout=0.1))
            peer = await server.accept()
            peer.send(output)
            with pytest.raises(TransportError, match=r"handshake within 0\.1 s"):
                await connecting
            await peer.receive_end()  # which comes only when the client has closed

    finish(main())


def test_a_cancelled_connect_leaves_no_connection_behind() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            connecting = asyncio.create_task(headwater.connect(server.url))
            peer = await server.accept()
            peer.send(INFO)
            await peer.receive_line()
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await peer.receive(1_000)

    finish(main())


def test_the_next_server_is_tried_after_any_failure_of_the_one_before() -> None:
    async def main() -> None:
        async with ScriptedServer() as garbage, ScriptedServer() as strict, ScriptedServer() as good:
            servers = ["nats://127.0.0.1:1", garbage.url, strict.url, good.url]
            connecting = asyncio.create_task(headwater.connect(servers))
            (await garbage.accept()).send(GARBAGE)
            (await strict.accept()).send(b"-ERR 'Authorization Violation'\r\n")
            await (await good.accept()).welcome()
            client = await connecting
            assert client.is_connected
            await client.close()

    finish(main())


@pytest.mark.parametrize("option", ["ping_interval", "connect_timeout"])
def test_a_time_of_zero_is_a_configuration_error(option: str) -> None:
    with pytest.raises(ConfigError, match="more than 0"):
        finish(headwater.connect("127.0.0.1:1", **{option: 0.0}))  # type: ignore[arg-type]


# ── the end of a connection, in every place where a task waits ──


async def wait_in_flush(client: Client) -> None:
    await client.flush()


async def wait_in_request(client: Client) -> object:
    return await client.request("q", timeout=60)


async def wait_in_iteration(client: Client) -> object:
    return [message async for message in await client.subscribe("a")]


async def wait_in_batches(client: Client) -> object:
    return [batch async for batch in (await client.subscribe("a")).batches()]


async def wait_in_next(client: Client) -> object:
    return await (await client.subscribe("a")).next()


async def wait_in_next_with_a_timeout(client: Client) -> object:
    return await (await client.subscribe("a")).next(60)


async def wait_in_drain(client: Client) -> None:
    await client.subscribe("a")
    await client.drain(60)


async def wait_in_drain_of_one(client: Client) -> None:
    await (await client.subscribe("a")).drain(60)


async def wait_in_acknowledgements(client: Client) -> None:
    async with client.jetstream(timeout=60).publisher() as publisher:
        await publisher.publish("a", b"")


async def wait_in_a_full_window(client: Client) -> None:
    async with client.jetstream(timeout=60).publisher(window=1) as publisher:
        await publisher.publish("a", b"")
        await publisher.publish("a", b"")


async def wait_in_fetch(client: Client) -> object:
    return await client.jetstream().pull_consumer("S", "C").fetch(timeout=60)


async def wait_for_room(client: Client) -> object:
    while True:
        await client.publish("a", bytes(1 << 19))


WAITING = [
    wait_in_flush,
    wait_in_request,
    wait_in_iteration,
    wait_in_batches,
    wait_in_next,
    wait_in_next_with_a_timeout,
    wait_in_drain,
    wait_in_drain_of_one,
    wait_in_acknowledgements,
    wait_in_a_full_window,
    wait_in_fetch,
    wait_for_room,
]


async def started(
    waiting: Callable[[Client], Coroutine[Any, Any, object]], client: Client, peer: Peer
) -> "asyncio.Task[object]":
    """`waiting` as a task, once it has logged its first line, or has filled every buffer on the way."""
    if waiting is not wait_for_room:
        task = asyncio.create_task(waiting(client))
        await peer.receive_line()
        return task
    peer.stop_reading()
    task = asyncio.create_task(waiting(client))
    link = client._connection.link
    assert link is not None
    await until(lambda: link.pending >= 1 << 20)
    return task


async def ended_while(waiting: Callable[[Client], Coroutine[Any, Any, object]], end: Callable[[Peer], None]) -> Any:
    """What `waiting` raises when the server does `end` while it waits."""
    received: list[BaseException] = []
    async with conversation(error_callback=received.append) as (client, peer):
        task = await started(waiting, client, peer)
        end(peer)
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert await client.wait_closed() is received[0]
        assert len(received) == 1
        return outcome


@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("end", [Peer.hang_up, Peer.cut])
def test_a_lost_connection_reaches_whoever_waits(
    waiting: Callable[[Client], Coroutine[Any, Any, object]], end: Callable[[Peer], None]
) -> None:
    assert isinstance(finish(ended_while(waiting, end)), TransportError)


@pytest.mark.parametrize("waiting", [one for one in WAITING if one is not wait_for_room])
def test_garbage_from_the_server_reaches_whoever_waits(
    waiting: Callable[[Client], Coroutine[Any, Any, object]],
) -> None:
    error = finish(ended_while(waiting, lambda peer: peer.send(b"+OK\r\nMSG a one 2\r\nxx\r\n")))
    assert isinstance(error, RemoteProtocolError) or isinstance(error.__cause__, RemoteProtocolError)


@pytest.mark.parametrize("waiting", [one for one in WAITING if one is not wait_for_room])
def test_an_error_that_ends_the_connection_reaches_whoever_waits(
    waiting: Callable[[Client], Coroutine[Any, Any, object]],
) -> None:
    error = finish(ended_while(waiting, lambda peer: peer.send(b"-ERR 'Stale Connection'\r\n")))
    reason = error if isinstance(error, ServerError) else error.__cause__
    assert isinstance(reason, ServerError)
    assert reason.value == "Stale Connection"


@pytest.mark.parametrize(
    "waiting", [one for one in WAITING if one not in (wait_for_room, wait_in_iteration, wait_in_batches)]
)
def test_our_own_close_reaches_whoever_waits(waiting: Callable[[Client], Coroutine[Any, Any, object]]) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            task = asyncio.create_task(waiting(client))
            await peer.receive_line()
            await client.close()
            with pytest.raises(ConnectionClosed):
                await task

    finish(main())


@pytest.mark.parametrize("waiting", [wait_in_iteration, wait_in_batches])
def test_our_own_close_ends_an_iteration_in_order(waiting: Callable[[Client], Coroutine[Any, Any, object]]) -> None:
    async def main() -> object:
        async with conversation() as (client, peer):
            task = asyncio.create_task(waiting(client))
            await peer.receive_line()
            await client.close()
            return await task

    assert finish(main()) == []


@pytest.mark.parametrize("waiting", WAITING)
def test_a_cancelled_wait_is_cancelled_and_harms_nobody(
    waiting: Callable[[Client], Coroutine[Any, Any, object]],
) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            task = await started(waiting, client, peer)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            if waiting not in (wait_for_room, wait_in_drain):
                assert client.is_connected

    finish(main())


def test_after_the_end_every_use_says_closed_and_why() -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None) as (client, peer):
            peer.hang_up()
            await client.wait_closed()
            assert not client.is_connected
            for use in (client.flush(), client.request("a"), client.subscribe("a"), client.drain()):
                with pytest.raises(ConnectionClosed, match="the server closed it"):
                    await use
            with pytest.raises(ConnectionClosed, match="the server closed it"):
                client.publish("a")
            await client.close()

    finish(main())


def test_the_reason_is_told_to_on_closed_and_can_be_taken_back() -> None:
    async def main() -> list[object]:
        reported: list[object] = []
        async with conversation() as (client, _):
            client.on_closed(reported.append)
            client.on_closed(lambda _: reported.append("never"))()
            await client.close()
            await asyncio.sleep(0)
        return reported

    assert finish(main()) == [None]


# ── errors that end nothing ──


def test_a_missing_permission_is_reported_and_the_connection_goes_on() -> None:
    async def main() -> list[BaseException]:
        received: list[BaseException] = []
        async with conversation(error_callback=received.append) as (client, peer):
            peer.send(b"-ERR 'Permissions Violation for Publish to \"a.b\"'\r\n-ERR 'Invalid Subject'\r\n")
            flushing = asyncio.create_task(client.flush())
            await peer.answer_ping()
            with pytest.raises(AuthorizationError):
                await flushing
            assert client.is_connected
        return received

    permission, subject = finish(main())
    assert isinstance(permission, AuthorizationError)
    assert permission.value == 'Permissions Violation for Publish to "a.b"'
    assert type(subject) is ServerError


def test_an_error_callback_that_raises_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        def fail(error: BaseException) -> None:
            raise RuntimeError("mine")

        async with conversation(error_callback=fail) as (client, peer):
            peer.send(b"-ERR 'Invalid Subject'\r\n")
            flushing = asyncio.create_task(client.flush())
            await peer.answer_ping()
            await flushing

    finish(main())
    assert "error_callback_failed" in caplog.text


# ── PING and PONG ──


def test_a_ping_of_the_server_is_answered() -> None:
    async def main() -> bytes:
        async with conversation() as (_, peer):
            peer.send(b"PING\r\nPING\r\n")
            return await peer.receive(12)

    assert finish(main()) == b"PONG\r\nPONG\r\n"


def test_pongs_answer_flushes_in_order_also_after_one_gave_up() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            with pytest.raises(RequestTimeout, match="no PONG"):
                await client.flush(0.01)
            second = asyncio.create_task(client.flush())
            assert await peer.receive(12) == b"PING\r\nPING\r\n"
            peer.send(b"PONG\r\n")
            await until(lambda: len(client._connection.flushes) == 1)
            assert not second.done()
            peer.send(b"PONG\r\nPONG\r\n")  # the last one answers nothing
            await second
            assert client.is_connected

    finish(main())


def test_a_server_that_answers_no_pings_is_taken_for_dead() -> None:
    async def main() -> HeadwaterError | None:
        async with conversation(ping_interval=0.01, error_callback=lambda _: None) as (client, _):
            return await client.wait_closed()

    reason = finish(main())
    assert isinstance(reason, TransportError)
    assert "has not answered 2 pings" in str(reason)


def test_a_server_that_answers_pings_lives_on() -> None:
    async def main() -> None:
        async with conversation(ping_interval=0.005) as (client, peer):
            for _ in range(10):
                await peer.answer_ping()
            assert client.is_connected

    finish(main())


def test_a_later_info_takes_the_place_of_the_first() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            peer.send(b'INFO {"max_payload":4,"ldm":true}\r\n')
            flushing = asyncio.create_task(client.flush())
            await peer.answer_ping()
            await flushing
            assert client.server_info.ldm
            with pytest.raises(headwater.HeadwaterError, match="the server takes 4"):
                client.publish("a", b"12345")

    finish(main())


# ── closing ──


def test_close_writes_what_is_buffered_first() -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):
            client.publish("a", b"last words")
            closing = asyncio.create_task(client.close())
            output = await peer.receive_end()
            peer.hang_up()
            await closing
            await client.close()
            return output

    assert finish(main()) == b"PUB a 10\r\nlast words\r\n"


def test_close_does_not_wait_for_ever_for_a_server_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "CLOSE_SECONDS", 0.05)

    async def main() -> None:
        async with conversation() as (client, peer):
            peer.stop_reading()
            for _ in range(40):
                client.publish("a", bytes(1 << 20))
            await client.close()
            assert not client.is_connected

    finish(main())


def test_leaving_the_context_flushes_and_closes() -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):

            async def leave() -> None:
                async with client:
                    client.publish("a", b"1")

            leaving = asyncio.create_task(leave())
            output = await peer.receive(len(b"PUB a 1\r\n1\r\nPING\r\n"))
            peer.send(b"PONG\r\n")
            assert await peer.receive_end() == b""
            peer.hang_up()
            await leaving
            return output

    assert finish(main()) == b"PUB a 1\r\n1\r\nPING\r\n"


# ── draining ──


def test_drain_delivers_what_is_on_its_way_then_ends_and_closes() -> None:
    async def main() -> list[bytes]:
        async with conversation() as (client, peer):
            subscription = await client.subscribe("a")
            assert await peer.receive_line() == b"SUB a 1"
            draining = asyncio.create_task(client.drain())
            assert await peer.receive_line() == b"UNSUB 1"
            peer.send(b"MSG a 1 1\r\n1\r\nMSG a 1 1\r\n2\r\n")
            await peer.answer_ping()
            await peer.answer_ping()
            assert await peer.receive_end() == b""
            peer.hang_up()
            await draining
            return [message.data async for message in subscription]

    assert finish(main()) == [b"1", b"2"]


def test_drain_ends_subscriptions_and_closes_also_when_the_server_is_silent() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            subscription = await client.subscribe("a")
            with pytest.raises(RequestTimeout):
                await client.drain(0.02)
            assert subscription.ended
            assert not client.is_connected

    finish(main())


def test_drain_waits_for_callbacks_which_may_still_publish() -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):
            go = asyncio.Event()

            async def answer(message: headwater.Message) -> None:
                await go.wait()
                await message.respond(b"ok")

            await client.subscribe("a", callback=answer)
            assert await peer.receive_line() == b"SUB a 1"
            draining = asyncio.create_task(client.drain())
            assert await peer.receive_line() == b"UNSUB 1"
            peer.send(b"MSG a 1 r 1\r\n1\r\n")
            await peer.answer_ping()
            await asyncio.sleep(0.01)
            assert not draining.done()
            go.set()
            output = await peer.receive(len(b"PUB r 2\r\nok\r\n"))
            await peer.answer_ping()
            peer.hang_up()
            await draining
            return output

    assert finish(main()) == b"PUB r 2\r\nok\r\n"
