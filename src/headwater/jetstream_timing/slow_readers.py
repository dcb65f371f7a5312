"""Requests of clients that have not read their earlier answers: these wait, and no other requests do.

    request ─▶ is its client far behind? ─┬─ no ──▶ served at once
                                          └─ yes ─▶ waits, and the client's later requests behind it ─▶ served as it reads

One read of 64 KiB holds a thousand gets, and their answers may be 500 MB. Served in a row they kept everybody waiting for
seconds, and the client was cut off as a slow consumer, however fast it read: nothing is read or written meanwhile.

Gets of a client that has left are dropped; other requests are served, since they may change something. What waits when the
service stops, which it does alone where a reload takes JetStream from its account, is refused.

A client with many waiting requests is not read from. A peer is, for others depend on it: of the requests that come through
peers, those beyond MOST_FROM_PEERS are served at once, and a peer that does not take the answers ends as a slow consumer.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import cast

from headwater.exchange.router import Router
from headwater.exchange.sublist import Outlet
from headwater.net.link import Link

logger = logging.getLogger(__name__)

LINK_HIGH_WATER = 4 << 20  # bytes of pending output above which a client's link gets no more
LINK_RETRY = 0.005  # seconds until such a link is checked again
TURN_REQUESTS = 64  # of one client, then the next has its turn
TURN_BYTES = 1 << 20  # of answers
MOST_WAITING = 1024  # requests of one client, some 300 bytes each; then it is not read from
MOST_FROM_PEERS = 1 << 16  # requests that came through peers, of all together: some 20 MB

Request = tuple[bytes, bytes, bytes, bytes]  # subject, reply, header block, payload


def high_water(router: Router) -> int:
    """Bytes of pending output above which a client gets no answers."""
    return min(LINK_HIGH_WATER, router.flusher.stall_at)


async def give_way(router: Router, reply: bytes) -> None:
    """Let others be served, and those who get an answer read it; nothing is pending for one that is gone."""
    await asyncio.sleep(0)
    while router.pending(reply) > high_water(router):  # noqa: ASYNC110  (no event tells it of every peer)
        await asyncio.sleep(LINK_RETRY)


class SlowReaders:
    """`serve(subject, reply, header_block, payload)` serves a request, which `holds` lets pass. `is_get(subject)`: whether
    it only reads."""

    def __init__(
        self,
        router: Router,
        serve: Callable[[bytes, bytes, bytes, bytes], None],
        is_get: Callable[[bytes], bool],
        spawn: Callable[[Coroutine[object, object, None]], None],
    ) -> None:
        self.waiting: dict[Outlet | None, deque[Request]] = {}  # None: clients of peers
        self._router = router
        self._serve = serve
        self._is_get = is_get
        self._spawn = spawn
        self._high_water = high_water(router)
        self._running = self._serving = False
        self._gets: dict[asyncio.Task[None], Request] = {}
        # Clients that are not read from; others pause clients for reasons of their own.
        self._paused: set[Outlet] = set()

    def holds(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Whether the request of the router's current publisher waits, and is served later."""
        if self._serving:
            return False
        client = self._router.publisher
        waiting = self.waiting.get(client)
        if waiting is None:
            if not self._is_behind(client, reply):
                return False
            waiting = self.waiting[client] = deque()
            if not self._running:
                self._running = True
                self._spawn(self._serve_all())
        if client is None and len(waiting) >= MOST_FROM_PEERS:
            return False
        waiting.append((subject, reply, header_block, payload))
        if client is not None and len(waiting) > MOST_WAITING:
            self._paused.add(client)
            cast(Link, client.link).pause_reading()
        return True

    def follow(self, get: asyncio.Task[None], request: Request) -> None:
        """Remember a get that gives way, to end it at the stop."""
        self._gets[get] = request
        get.add_done_callback(lambda _: self._gets.pop(get, None))

    def stop(self, refuse: Callable[[bytes, bytes, bytes, bytes], None]) -> list[asyncio.Task[None]]:
        """Wait no more: `refuse` what waits, and the gets that give way. Returns their tasks, which are about to end."""
        waiting = [request for requests in self.waiting.values() for request in requests]
        self.waiting.clear()
        for client in [*self._paused]:
            self._resume(client)
        gets = {**self._gets}
        for request in [*waiting, *(request for get, request in gets.items() if get.cancel())]:  # not those that ended
            refuse(*request)
        return [*gets]

    def _resume(self, client: Outlet) -> None:
        if client in self._paused:
            self._paused.discard(client)
            cast(Link, client.link).resume_reading()

    def _is_behind(self, client: Outlet | None, reply: bytes) -> bool:
        if client is None:
            return self._router.pending(reply) > self._high_water
        return not client.closed and bool(client.link.pending > self._high_water)

    async def _serve_all(self) -> None:
        try:
            while self.waiting:
                served = sum([self._serve_some(client) for client in list(self.waiting)])
                await asyncio.sleep(0 if served else LINK_RETRY)
        finally:
            self._running = False

    def _serve_some(self, client: Outlet | None) -> int:
        """Serve a client's next requests as far as it reads; returns their number."""
        waiting, router = self.waiting[client], self._router
        before, served = client.out_bytes if client is not None else 0, 0
        while waiting and served < TURN_REQUESTS and not self._is_behind(client, waiting[0][1]):
            request = waiting.popleft()
            served += 1
            if client is not None and client.closed and self._is_get(request[0]):
                continue
            router.publisher, self._serving = client, True  # the service asks who it is
            try:
                self._serve(*request)
            except Exception:  # as in `Router.call_one`: the other requests do not wait for ever
                logger.exception("waiting_request_failed subject=%r", request[0])
            finally:
                router.publisher, self._serving = None, False
            if client is not None and client.out_bytes - before > TURN_BYTES:
                break
        if not waiting:
            self.waiting.pop(client, None)
        if client is not None and len(waiting) <= MOST_WAITING:
            self._resume(client)
        return served
