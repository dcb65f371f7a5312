"""Which requests wait for a reader that is behind. Over sockets: tests/jetstream/test_slow_clients.py."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import cast

import pytest

from headwater.exchange.router import Router
from headwater.jetstream_timing.slow_readers import MOST_FROM_PEERS, MOST_WAITING, SlowReaders


class SlowClient:
    """A client that is far behind, and its link."""

    def __init__(self) -> None:
        self.link = self
        self.closed = False
        self.out_bytes = 0
        self.pending = 2 << 20
        self.is_read_from = True

    def pause_reading(self) -> None:
        self.is_read_from = False

    def resume_reading(self) -> None:
        self.is_read_from = True


class PeersBehind:
    """A router whose peers have not taken what was sent to them. `publisher`: None, the request came through a peer."""

    def __init__(self, publisher: SlowClient | None = None) -> None:
        self.publisher = publisher
        self.flusher = SimpleNamespace(stall_at=1 << 20)
        self.unread = 2 << 20

    def pending(self, reply: bytes) -> int:
        return self.unread


def leave(coroutine: Coroutine[object, object, None]) -> None:
    """Waiting requests stay where they are."""
    coroutine.close()


def readers(router: PeersBehind, served: list[bytes]) -> SlowReaders:
    return SlowReaders(cast(Router, router), lambda *request: served.append(request[1]), lambda subject: True, leave)


def test_a_request_through_a_peer_that_reads_does_not_wait() -> None:
    router = PeersBehind()
    router.unread = 0
    assert not readers(router, []).holds(b"get", b"reply", b"", b"")


def test_requests_through_peers_that_do_not_read_wait_up_to_a_limit() -> None:
    slow = readers(PeersBehind(), [])
    for number in range(MOST_FROM_PEERS):
        assert slow.holds(b"get", b"%d" % number, b"", b"")
    assert not slow.holds(b"get", b"one more", b"", b"")
    assert len(slow.waiting[None]) == MOST_FROM_PEERS


def test_a_waiting_request_that_fails_is_logged_and_keeps_no_other_waiting(caplog: pytest.LogCaptureFixture) -> None:
    router, served, work = PeersBehind(), list[bytes](), list[Coroutine[object, object, None]]()

    def serve(subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None:
        assert reply != b"bad", "this one cannot be served"
        served.append(reply)

    slow = SlowReaders(cast(Router, router), serve, lambda subject: True, work.append)
    for reply in (b"one", b"bad", b"two"):
        assert slow.holds(b"get", reply, b"", b"")
    router.unread = 0
    asyncio.run(work[0])
    assert served == [b"one", b"two"]
    assert "waiting_request_failed subject=b'get'" in caplog.text


def test_a_client_with_many_waiting_requests_is_read_from_again_when_the_service_stops() -> None:
    client = SlowClient()
    slow = readers(PeersBehind(client), [])
    for _ in range(MOST_WAITING):
        slow.holds(b"get", b"reply", b"", b"")
    assert client.is_read_from
    slow.holds(b"get", b"reply", b"", b"")
    assert not client.is_read_from
    refused = list[bytes]()
    slow.stop(lambda *request: refused.append(request[1]))
    assert client.is_read_from
    assert refused == [b"reply"] * (MOST_WAITING + 1)


def test_a_get_that_has_ended_is_not_refused_when_the_service_stops() -> None:
    async def main() -> list[bytes]:
        slow, refused = readers(PeersBehind(), []), list[bytes]()
        ended, under_way = (asyncio.get_running_loop().create_task(asyncio.sleep(delay)) for delay in (0, 60))
        # The service stops in the same turn of the loop in which the get ends, before `follow` is called back.
        ended.add_done_callback(lambda _: slow.stop(lambda *request: refused.append(request[1])))
        slow.follow(ended, (b"get", b"ended", b"", b""))
        slow.follow(under_way, (b"get", b"under way", b"", b""))
        await asyncio.wait([ended, under_way])
        return refused

    assert asyncio.run(main()) == [b"under way"]


def test_a_client_that_others_have_paused_stays_so_when_its_requests_are_served() -> None:
    client, served, work = SlowClient(), list[bytes](), list[Coroutine[object, object, None]]()
    router = PeersBehind(client)
    slow = SlowReaders(
        cast(Router, router), lambda *request: served.append(request[1]), lambda subject: True, work.append
    )
    slow.holds(b"get", b"reply", b"", b"")
    client.pause_reading()
    client.pending = 0
    asyncio.run(work[0])
    assert served == [b"reply"]
    assert not client.is_read_from
