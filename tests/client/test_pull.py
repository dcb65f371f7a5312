"""Fetching: every status that can end a batch."""

import asyncio

import msgspec
import pytest
from support.scripted_server import Peer, ScriptedServer, conversation, finish, until

import headwater
from headwater.client import pull
from headwater.client.stream_message import StreamMessage
from headwater.errors import HeadwaterError, JetStreamError, LocalProtocolError, NoResponders, RequestTimeout


async def receive_fetch(peer: Peer) -> bytes:
    """The inbox of a fetch, and what it asks, checked for its form."""
    sub = (await peer.receive_line()).split()
    pub = (await peer.receive_line()).split()
    assert pub[1:3] == [b"$JS.API.CONSUMER.MSG.NEXT.S.C", sub[1]]
    await peer.receive(int(pub[-1]) + 2)
    return sub[1]


def send_status(peer: Peer, inbox: bytes, status: bytes) -> None:
    block = b"NATS/1.0 " + status + b"\r\n\r\n"
    peer.send(b"HMSG %s 1 %d %d\r\n%s\r\n" % (inbox, len(block), len(block), block))


def send_message(peer: Peer, number: int) -> None:
    peer.send(b"MSG events.a 1 $JS.ACK.S.C.1.%d.%d.1700000000000000000.0 1\r\nx\r\n" % (number, number))


async def fetched(*statuses: bytes, messages: int = 0) -> list[StreamMessage]:
    async with conversation() as (client, peer):
        fetching = asyncio.create_task(client.jetstream().pull_consumer("S", "C").fetch(10))
        inbox = await receive_fetch(peer)
        for number in range(1, messages + 1):
            send_message(peer, number)
        for status in statuses:
            send_status(peer, inbox, status)
        outcome = (await asyncio.gather(fetching, return_exceptions=True))[0]
        assert await peer.receive_line() == b"UNSUB 1"
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


@pytest.mark.parametrize(
    "status",
    [
        b"404 No Messages",
        b"408 Request Timeout",
        b"408 Interest Expired",
        b"409 Batch Completed",
        b"409 Message Size Exceeds MaxBytes",
    ],
)
@pytest.mark.parametrize("messages", [0, 2])
def test_a_status_that_ends_a_batch_gives_what_came(status: bytes, messages: int) -> None:
    assert [one.metadata.stream_seq for one in finish(fetched(status, messages=messages))] == [1, 2][:messages]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (b"409 Consumer Deleted", JetStreamError),
        (b"409 Exceeded MaxRequestBatch of 5", JetStreamError),
        (b"400 Bad Request - whatever", JetStreamError),
        (b"503", NoResponders),
    ],
)
def test_a_status_that_ends_more_raises_only_when_nothing_came(status: bytes, kind: type[HeadwaterError]) -> None:
    with pytest.raises(kind):
        finish(fetched(status))
    assert len(finish(fetched(status, messages=2))) == 2


def test_heartbeats_are_passed_over() -> None:
    assert len(finish(fetched(b"100 Idle Heartbeat", b"404 No Messages", messages=1))) == 1


@pytest.mark.parametrize("messages", [0, 2])
def test_a_status_that_lost_its_headers_on_the_way_ends_the_batch(messages: int) -> None:
    """A route of the first cluster protocol carries none: what was a 408 comes as an empty message."""

    async def main() -> list[StreamMessage]:
        async with conversation() as (client, peer):
            fetching = asyncio.create_task(client.jetstream().pull_consumer("S", "C").fetch(10))
            inbox = await receive_fetch(peer)
            for number in range(messages):
                send_message(peer, number)
            peer.send(b"MSG %s 1 0\r\n\r\n" % inbox)
            return await fetching

    assert len(finish(main())) == messages


def test_a_200_is_a_message_like_any_other() -> None:
    (message,) = finish(fetched(b"200 OK", b"404 No Messages"))
    assert message.message.status == (200, "OK")


def test_a_batch_that_is_full_needs_no_status() -> None:
    assert len(finish(fetched(messages=10))) == 10


def test_a_stored_message_that_looks_like_a_status_is_a_message() -> None:
    async def main() -> list[StreamMessage]:
        async with conversation() as (client, peer):
            fetching = asyncio.create_task(client.jetstream().pull_consumer("S", "C").fetch(1))
            await receive_fetch(peer)
            peer.send(b"HMSG a 1 %s 16 16\r\nNATS/1.0 404\r\n\r\n\r\n" % b"$JS.ACK.S.C.1.10.5.1700000000000000000.3")
            return await fetching

    assert len(finish(main())) == 1


def test_a_silent_server_is_a_timeout_and_what_came_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull, "GRACE_SECONDS", 0.02)

    async def main(messages: int) -> list[StreamMessage]:
        async with conversation() as (client, peer):
            fetching = asyncio.create_task(client.jetstream().pull_consumer("S", "C").fetch(10, timeout=0.01))
            for number in range(messages):
                send_message(peer, number)
            return await fetching

    with pytest.raises(RequestTimeout, match=r"S\.C"):
        finish(main(0))
    assert len(finish(main(1))) == 1


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"timeout": 2.5}, b'{"batch":7,"expires":2500000000}'),
        ({"no_wait": True}, b'{"batch":7,"no_wait":true}'),
        ({"timeout": 0.0}, b'{"batch":7,"no_wait":true}'),
    ],
)
def test_what_a_fetch_asks_for(options: dict[str, float], sent: bytes) -> None:
    async def main() -> bytes:
        async with conversation() as (client, peer):
            consumer = client.jetstream().pull_consumer("S", "C")
            fetching = asyncio.create_task(consumer.fetch(7, **options))  # type: ignore[arg-type]
            await peer.receive_line()
            size = int((await peer.receive_line()).split()[-1])
            body = await peer.receive(size)
            fetching.cancel()
            return body

    assert finish(main()) == sent


def test_after_a_reconnect_the_rest_is_asked_for_again() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            connecting = asyncio.create_task(
                headwater.connect(server.url, reconnect_wait=0.0, reconnect_jitter=0.0, error_callback=lambda _: None)
            )
            peer = await server.accept()
            await peer.welcome()
            client = await connecting
            fetching = asyncio.create_task(client.jetstream().pull_consumer("S", "C").fetch(3, timeout=500.0))
            await receive_fetch(peer)
            send_message(peer, 1)
            await asyncio.sleep(0)
            async with asyncio.timeout(5):
                await until(lambda: any(queue.received for queue in client._connection.queues.values()))
            peer.cut()
            peer = await server.accept()
            await peer.welcome()
            assert (await peer.receive_line()).startswith(b"SUB ")
            size = int((await peer.receive_line()).split()[-1])
            body = msgspec.json.decode(await peer.receive(size))
            await peer.receive(2)
            assert body["batch"] == 2
            assert 400e9 < body["expires"] < 500e9
            for number in (2, 3):
                send_message(peer, number)
            assert [message.metadata.stream_seq for message in await fetching] == [1, 2, 3]
            peer.hang_up()
            await client.close()

    finish(main())


def test_a_batch_of_nothing_is_refused() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            with pytest.raises(LocalProtocolError):
                await client.jetstream().pull_consumer("S", "C").fetch(0)

    finish(main())


def test_every_way_to_settle_a_message_on_the_wire() -> None:
    async def main() -> list[bytes]:
        async with conversation() as (client, peer):
            fetching = asyncio.create_task(client.jetstream().pull_consumer("S", "C").fetch(1))
            await receive_fetch(peer)
            send_message(peer, 1)
            (message,) = await fetching
            await peer.receive_line()
            await message.ack()
            await message.nak()
            await message.nak(1.5)
            await message.term()
            await message.in_progress()
            bodies = []
            for _ in range(5):
                control = (await peer.receive_line()).split()
                assert control[1].startswith(b"$JS.ACK.S.C.")
                bodies.append((await peer.receive(int(control[-1]) + 2))[:-2])
            confirming = asyncio.create_task(message.ack(confirm=5))
            await peer.receive_line()
            control = (await peer.receive_line()).split()
            bodies.append((await peer.receive(int(control[-1]) + 2))[:-2])
            peer.send(b"MSG %s 2 0\r\n\r\n" % control[2])
            await confirming
            return bodies

    assert finish(main()) == [b"+ACK", b"-NAK", b'-NAK {"delay":1500000000}', b"+TERM", b"+WPI", b"+ACK"]


def test_one_strange_reply_subject_does_not_spoil_the_batch() -> None:
    async def main() -> list[StreamMessage]:
        async with conversation() as (client, peer):
            fetching = asyncio.create_task(client.jetstream().pull_consumer("S", "C").fetch(2))
            await receive_fetch(peer)
            peer.send(b"MSG a 1 strange 1\r\nx\r\n")
            send_message(peer, 1)
            return await fetching

    strange, good = finish(main())
    with pytest.raises(LocalProtocolError):
        _ = strange.metadata
    assert good.metadata.stream_seq == 1
