"""Which requests wait for a reader that is behind. Over sockets: tests/jetstream/test_slow_clients.py."""

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import cast

from headwater.exchange.router import Router
from headwater.jetstream_timing.slow_readers import MOST_FROM_PEERS, SlowReaders


class PeersBehind:
    """A router whose peers have not taken what was sent to them."""

    def __init__(self) -> None:
        self.publisher = None  # the request came through a peer
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
