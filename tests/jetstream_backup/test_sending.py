"""Chunks to a receiver that confirms them, to one that does not, and to one that goes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.jetstream_backup import sending
from headwater.jetstream_backup.sending import ChunkSender


class Receiver:
    """Confirms the first `confirmed` chunks, and leaves after `stays` messages."""

    def __init__(self, router: Router, confirmed: int = 1 << 30, stays: int = 1 << 30) -> None:
        self.received: list[tuple[bytes, bytes, bytes]] = []
        self._router = router
        self._confirmed = confirmed
        self._stays = stays
        self._subscription = router.subscribe_internal(b"to.me", self._on_chunk)

    def _on_chunk(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        self.received.append((reply, header_block, payload))
        if reply and len(self.received) <= self._confirmed:
            asyncio.get_running_loop().call_soon(self._router.publish, reply, b"", b"", b"")
        if len(self.received) == self._stays:
            self._router.unsubscribe(self._subscription)


async def some(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def send(receiver_confirms: int, stays: int, *pieces: bytes) -> tuple[str, list[tuple[bytes, bytes, bytes]]]:
    router = Router(asyncio.get_running_loop().call_soon, 1)
    receiver = Receiver(router, receiver_confirms, stays)
    sender = ChunkSender(router, b"to.me", "$JS.SNAPSHOT.ACK.S.id", 4, 12, patience=0.05)
    failure = await sender.run(some(*pieces))
    assert not router.has_interest(b"$JS.SNAPSHOT.ACK.S.id.4.1")
    return failure, receiver.received


def test_full_chunks_ask_for_a_confirmation_and_the_rest_follows() -> None:
    failure, received = asyncio.run(send(99, 99, b"abc", b"defgh" * 4, b"", b"z"))
    assert failure == ""
    assert b"".join(payload for _, _, payload in received) == b"abc" + b"defgh" * 4 + b"z"
    assert [reply for reply, _, _ in received[:2]] == [b"$JS.SNAPSHOT.ACK.S.id.4.1", b"$JS.SNAPSHOT.ACK.S.id.4.2"]
    assert received[-1] == (b"", b"NATS/1.0 204\r\n\r\n", b"")


def test_without_a_full_chunk_the_end_has_no_header() -> None:
    failure, received = asyncio.run(send(99, 99, b"abc"))
    assert (failure, received) == ("", [(b"", b"", b"abc"), (b"", b"", b"")])


def test_no_more_than_the_window_goes_out_unconfirmed() -> None:
    failure, received = asyncio.run(send(0, 99, b"x" * 40))
    assert failure == "408 No Flow Response"
    assert [len(payload) for _, _, payload in received] == [4, 4, 4, 0]
    assert received[-1][1] == b"NATS/1.0 408 No Flow Response\r\n\r\n"


def test_a_receiver_that_has_gone_ends_it() -> None:
    failure, received = asyncio.run(send(99, 2, b"x" * 40))
    assert failure == "408 No Interest"
    assert len(received) == 2


def test_a_disk_that_cannot_be_read_is_said_to_the_receiver() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 5
        raise StorageError("the disk is gone")

    async def scenario() -> None:
        router = Router(asyncio.get_running_loop().call_soon, 1)
        receiver = Receiver(router)
        assert await ChunkSender(router, b"to.me", "acks", 4, 12).run(broken()) == "500 the disk is gone"
        assert receiver.received[-1][1] == b"NATS/1.0 500 the disk is gone\r\n\r\n"

    asyncio.run(scenario())


def test_it_waits_for_the_receiver_although_a_wildcard_would_take_it() -> None:
    async def scenario() -> None:
        router = Router(asyncio.get_running_loop().call_soon, 1)
        lost: list[bytes] = []
        router.subscribe_internal(b"to.*", lambda subject, reply, header_block, payload: lost.append(payload))
        run = asyncio.create_task(ChunkSender(router, b"to.me", "acks", 4, 12).run(some(b"abc")))
        await asyncio.sleep(sending.INTEREST_PAUSE)
        assert lost == []
        receiver = Receiver(router)
        assert await run == ""
        assert receiver.received == [(b"", b"", b"abc"), (b"", b"", b"")]

    asyncio.run(scenario())


def test_it_is_sent_also_where_nobody_listens_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "INTEREST_PATIENCE", 0.04)

    async def scenario() -> None:
        router = Router(asyncio.get_running_loop().call_soon, 1)
        assert await ChunkSender(router, b"to.nobody", "acks", 4, 12, patience=0.05).run(some(b"abc")) == ""

    asyncio.run(scenario())
