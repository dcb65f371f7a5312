"""The timers of clients, in virtual time: PINGs, the write deadline, and clients that have nothing due."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from simulator.virtual_loop import SimulatedLoop
from support.fake_link import FakeLink
from support.session_desk import PLAIN, Desk

from headwater.exchange.client_watch import FIRST_PING_SECONDS, SWEEP_SECONDS, WRITE_DEADLINE, ClientWatch
from headwater.exchange.session import Session
from headwater.options.broker import BrokerOptions

OPTIONS = BrokerOptions(ping_interval=10.0, ping_max=2, write_deadline=3.0)


class Watched:
    """A watch in a loop without a clock, its clients, and what it notes."""

    def __init__(self, options: BrokerOptions = OPTIONS) -> None:
        self.loop = asyncio.get_running_loop()
        self.desk = Desk()
        self.noted: list[tuple[Session, str]] = []
        self.watch = ClientWatch(options, self.loop.time, lambda session, kind, **_: self.noted.append((session, kind)))

    def connect(self) -> tuple[Session, Any]:
        """A client with CONNECT; its link, whose `looked_at` counts who asked what is pending."""
        register = self.desk.register
        session, link = Session(register, self.desk.router, register.gate), CountingLink()  # type: ignore[arg-type]
        link.owner = session
        session.attach(link)  # type: ignore[arg-type]
        self.watch.begin(session)
        self.watch.logged_in(session)
        self.desk.feed(session, PLAIN)
        link.take_flushed()
        return session, link

    async def pings(self, link: Any, seconds: float, answer: Callable[[], None] = lambda: None) -> list[float]:
        """When PINGs arrive in so many seconds; `answer` is called after each."""
        begun, found = self.loop.time(), list[float]()
        while self.loop.time() - begun < seconds:
            await asyncio.sleep(0.1)
            for function in self.desk.scheduled:
                function()
            self.desk.scheduled.clear()
            if b"PING" in link.take_flushed():
                found.append(self.loop.time() - begun)
                answer()
        return found


class CountingLink(FakeLink):
    def __init__(self) -> None:
        super().__init__()
        self.owner: object = None
        self.joins: dict[Any, None] | None = None
        self.looked_at = 0

    @property
    def pending(self) -> int:
        self.looked_at += 1
        return super().pending


def run(test: Callable[[], Awaitable[None]]) -> None:
    loop = SimulatedLoop(1)
    try:
        loop.run_until_complete(asyncio.ensure_future(test(), loop=loop))
    finally:
        loop.close()


def test_a_client_gets_a_ping_soon_after_connect_and_then_at_the_interval() -> None:
    async def watched() -> None:
        room = Watched()
        session, link = room.connect()
        found = await room.pings(link, 45, lambda: room.desk.feed(session, b"PONG\r\n"))
        assert [round(at - found[0], -1) for at in found] == [0, 10, 20, 30, 40]
        assert FIRST_PING_SECONDS <= found[0] <= FIRST_PING_SECONDS + SWEEP_SECONDS + 0.2

    run(watched)


def test_a_client_that_answers_no_ping_is_stale() -> None:
    async def watched() -> None:
        room = Watched()
        session, link = room.connect()
        assert len(await room.pings(link, 30)) == 2
        assert (room.watch.stale, room.noted, link.closed) == (1, [(session, "stale_connection")], True)

    run(watched)


def test_a_shorter_interval_is_that_of_clients_who_are_there_and_of_new_ones_alike() -> None:
    async def watched() -> None:
        room = Watched(replace(OPTIONS, ping_interval=1000.0))
        old, link = room.connect()
        assert len(await room.pings(link, 5, lambda: room.desk.feed(old, b"PONG\r\n"))) == 1
        room.watch.reload(OPTIONS)
        new, other = room.connect()
        assert len(await room.pings(other, 15, lambda: room.desk.feed(new, b"PONG\r\n"))) == 2
        assert b"PING" in link.take_flushed()

    run(watched)


@pytest.mark.parametrize("reads", [True, False])
def test_a_client_that_takes_nothing_is_cut_off_after_the_write_deadline(reads: bool) -> None:
    async def watched() -> None:
        room = Watched()
        session, link = room.connect()
        await asyncio.sleep(5)
        link.joins[link] = None
        link.waiting = 100
        for _ in range(6):
            link.sent += reads
            await asyncio.sleep(1)
            if link.aborted:
                room.watch.forget(session)
        assert link.aborted is not reads
        assert room.watch.slow_consumers == (not reads)
        if not reads:
            assert (room.noted, session.end_reason) == ([(session, "slow_consumer")], WRITE_DEADLINE)

    run(watched)


def test_no_sweep_looks_at_a_client_that_has_taken_all_and_one_that_is_behind_again_is_looked_at_again() -> None:
    async def watched() -> None:
        room = Watched(replace(OPTIONS, ping_interval=1000.0))
        _, link = room.connect()
        await asyncio.sleep(5)
        looked_at = link.looked_at
        await asyncio.sleep(100)
        assert link.looked_at == looked_at
        link.joins[link] = None
        link.waiting = 100
        await asyncio.sleep(5)
        assert link.aborted

    run(watched)


def test_a_client_that_is_gone_is_forgotten_and_the_last_one_ends_the_sweep() -> None:
    async def watched() -> None:
        room = Watched()
        session, link = room.connect()
        link.joins[link] = None
        room.watch.forget(session)
        assert link.joins is None
        link.waiting = 100
        await asyncio.sleep(20)
        assert not link.aborted
        session, link = room.connect()
        assert len(await room.pings(link, 5)) == 1

    run(watched)
