"""Requests over one inbox: whose answer is whose, and what ends the waiting."""

import asyncio
import logging

import pytest
from support.scripted_server import Peer, conversation, finish

from headwater.client_connection.requests import is_no_responders, new_inbox
from headwater.errors import NoResponders, PayloadTooLarge, RequestTimeout, SubjectError
from headwater.model.message import Message


async def receive_request(peer: Peer) -> tuple[bytes, bytes]:
    """The reply subject and the payload of the next request."""
    control = (await peer.receive_line()).split()
    payload = await peer.receive(int(control[-1]) + 2)
    return control[2], payload[:-2]


def send(peer: Peer, reply: bytes, payload: bytes) -> None:
    peer.send(b"MSG %s 1 %d\r\n%s\r\n" % (reply, len(payload), payload))


def test_the_first_request_subscribes_once_for_all_of_them() -> None:
    async def main() -> None:
        async with conversation(inbox_prefix="_INBOX.mine") as (client, peer):
            pending = [asyncio.create_task(client.request("q", b"%d" % n)) for n in range(3)]
            sub = (await peer.receive_line()).split()
            assert sub[0] == b"SUB"
            assert sub[1].startswith(b"_INBOX.mine.")
            assert sub[1].endswith(b".*")
            received = [await receive_request(peer) for _ in pending]
            assert len({reply for reply, _ in received}) == 3
            for reply, payload in reversed(received):
                send(peer, reply, b"answer to " + payload)
            assert [(await one).data for one in pending] == [b"answer to 0", b"answer to 1", b"answer to 2"]
            assert client._requests.outstanding == 0

    finish(main())


def test_a_request_times_out_naming_what_was_asked_and_a_late_answer_harms_nobody() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            with pytest.raises(RequestTimeout, match=r"'q\.slow' within 0\.01 s"):
                await client.request("q.slow", timeout=0.01)
            await peer.receive_line()
            late, _ = await receive_request(peer)
            second = asyncio.create_task(client.request("q"))
            reply, _ = await receive_request(peer)
            send(peer, late, b"late")
            send(peer, late + b".x", b"strange")
            send(peer, reply, b"first")
            send(peer, reply, b"second")
            assert (await second).data == b"first"
            assert client._requests.outstanding == 0
            assert client.is_connected

    finish(main())


def test_a_cancelled_request_is_forgotten() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            pending = asyncio.create_task(client.request("q"))
            await peer.receive_line()
            pending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pending
            assert client._requests.outstanding == 0

    finish(main())


def test_a_refused_request_is_forgotten_too() -> None:
    async def main() -> None:
        async with conversation() as (client, _):
            with pytest.raises(SubjectError):
                await client.request("q q")
            with pytest.raises(PayloadTooLarge):
                await client.request("q", bytes(2 << 20))
            assert client._requests.outstanding == 0

    finish(main())


def test_no_responders_is_known_at_once() -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            pending = asyncio.create_task(client.request("q", timeout=60))
            await peer.receive_line()
            reply, _ = await receive_request(peer)
            peer.send(b"HMSG %s 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n" % reply)
            with pytest.raises(NoResponders, match="'q'"):
                await pending

    finish(main())


def test_losing_the_connection_with_many_requests_out_leaves_no_unheard_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with conversation(error_callback=lambda _: None) as (client, peer):
            pending = [asyncio.create_task(client.request("q")) for _ in range(5)]
            await peer.receive_line()
            pending[0].cancel()
            peer.hang_up()
            outcomes = await asyncio.gather(*pending, return_exceptions=True)
            assert isinstance(outcomes[0], asyncio.CancelledError)
            assert all("lost" in str(outcome) for outcome in outcomes[1:])

    with caplog.at_level(logging.WARNING):
        finish(main())
    assert "never retrieved" not in caplog.text


@pytest.mark.parametrize(
    ("block", "data", "says"),
    [
        (b"NATS/1.0 503\r\n\r\n", b"", True),
        (b"NATS/1.0 503 No Responders\r\nNats-Subject: q\r\n\r\n", b"", True),
        (b"NATS/1.0 503\r\n\r\n", b"data", False),
        (b"NATS/1.0\r\nStatus: 503\r\n\r\n", b"", False),
        (b"NATS/1.0 404\r\n\r\n", b"", False),
        (b"garbage", b"", False),
        (b"", b"", False),
    ],
)
def test_only_a_status_line_without_data_says_no_responders(block: bytes, data: bytes, says: bool) -> None:
    assert is_no_responders(Message("r", data, "", block)) is says


def test_inboxes_differ() -> None:
    assert len({new_inbox("_INBOX") for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    "status", [b"100 Idle Heartbeat", b"200 OK", b"404 Not Found", b"408 Timeout", b"409 Conflict"]
)
def test_any_status_but_503_is_an_answer_and_tells_itself(status: bytes) -> None:
    async def main() -> None:
        async with conversation() as (client, peer):
            answering = asyncio.create_task(client.request("q"))
            await peer.receive_line()
            reply, _ = await receive_request(peer)
            block = b"NATS/1.0 " + status + b"\r\n\r\n"
            peer.send(b"HMSG %s 1 %d %d\r\n%s\r\n" % (reply, len(block), len(block), block))
            answer = await answering
            code, _, description = status.decode().partition(" ")
            assert answer.status == (int(code), description)
            assert not answer.headers

    finish(main())
