"""The timers of connections to other servers, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from simulator.virtual_loop import SimulatedLoop
from support.fake_link import FakeLink

from headwater.net.link import Link
from headwater.net.peer_timers import FIRST_PING_SECONDS, SWEEP_SECONDS, PeerTimers, address_of
from headwater.net.write_progress import Progress


class Neighbour:
    """A connection; `answers` is the number of PINGs that it answers."""

    def __init__(self, answers: int = 1000) -> None:
        self.fake = FakeLink("192.0.2.1:6222")
        self.link: Link | None = cast(Link, self.fake)
        self.joined = True
        self.answers = answers
        self.pings: list[float] = []
        self.on_close: Callable[[Neighbour], None] | None = None

    def ping(self, most: int, now: float) -> bool:
        if len(self.pings) >= self.answers + most:
            assert self.on_close is not None
            self.on_close(self)
            return False
        self.pings.append(now)
        return True


class Receivers:
    """Notes which peers are held."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.held: list[tuple[Link, list[str]]] = []

    def hold_route(self, route: Link, congested: list[str]) -> None:
        self.held.append((route, congested))


class Timers(PeerTimers[Neighbour]):
    """Notes what a subclass is called for."""

    def __init__(self, ping_interval: float = 2.0) -> None:
        self.receivers = Receivers()
        super().__init__(self.receivers, ping_interval=ping_interval, ping_max=2, write_deadline=3.0)
        self.missed: list[tuple[Neighbour, str, float]] = []
        self.stuck: list[tuple[Neighbour, float]] = []
        self.fails = False

    def _swept(self, now: float) -> None:
        if self.fails:
            raise ValueError("in a sweep")

    def _missed(self, peer: Neighbour, text: str) -> None:
        self.missed.append((peer, text, self._loop.time()))
        self.forget(peer)

    def _may_ping(self, peer: Neighbour) -> bool:
        return peer.joined

    def _stuck(self, peer: Neighbour) -> None:
        self.stuck.append((peer, self._loop.time()))
        self.forget(peer)


def run(test: Callable[[], Awaitable[None]]) -> SimulatedLoop:
    loop = SimulatedLoop(1)
    try:
        loop.run_until_complete(asyncio.ensure_future(test(), loop=loop))
    finally:
        loop.close()
    return loop


def test_a_connection_gets_a_ping_soon_and_then_at_the_interval() -> None:
    async def watched() -> None:
        timers, peer = Timers(), Neighbour()
        timers.start()
        begun = asyncio.get_running_loop().time()
        timers.begin(peer, 60.0, "late")
        timers.settled(peer)
        await asyncio.sleep(9.2)
        assert [round(at - begun) for at in peer.pings] == [1, 3, 5, 7, 9]
        assert FIRST_PING_SECONDS <= peer.pings[0] - begun <= FIRST_PING_SECONDS + 2 * SWEEP_SECONDS
        timers.stop()
        timers.stop()
        await asyncio.sleep(10)
        assert len(peer.pings) == 5

    run(watched)


def test_pings_come_at_least_every_half_minute_whatever_clients_have() -> None:
    async def watched() -> None:
        timers, peer = Timers(ping_interval=120.0), Neighbour()
        timers.start()
        timers.begin(peer, 600.0, "late")
        await asyncio.sleep(62.5)
        assert len(peer.pings) == 3

    run(watched)


def test_a_connection_that_has_not_joined_gets_no_ping() -> None:
    async def watched() -> None:
        timers, peer = Timers(), Neighbour()
        peer.joined = False
        timers.start()
        timers.begin(peer, 600.0, "late")
        await asyncio.sleep(10)
        assert peer.pings == []

    run(watched)


def test_too_many_unanswered_pings_are_counted_once_and_the_others_go_on() -> None:
    async def watched() -> None:
        timers, dead, good = Timers(), Neighbour(answers=0), Neighbour()
        timers.start()
        for peer in (dead, good):
            timers.begin(peer, 600.0, "late")
        dead.on_close = timers.forget
        await asyncio.sleep(20)
        assert (timers.stale, len(dead.pings)) == (1, 2)
        assert len(good.pings) > 5

    run(watched)


@pytest.mark.parametrize("waiting", [0, 5])
def test_one_that_answers_no_ping_is_logged_and_not_waited_for_while_it_reads_nothing(
    waiting: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def watched() -> None:
        timers, dead = Timers(ping_interval=0.5), Neighbour(answers=0)
        timers.start()
        timers.begin(dead, 600.0, "late")
        dead.on_close = timers.forget
        dead.fake.waiting = waiting
        await asyncio.sleep(2.9)
        assert (timers.stale, timers.stuck, dead.fake.aborted) == (1, [], waiting > 0)

    with caplog.at_level("WARNING"):
        run(watched)
    assert [record.getMessage() for record in caplog.records] == [
        "peer_stale peer=192.0.2.1:6222: it has answered none of 2 PINGs"
    ]


def test_a_connection_that_does_not_join_in_time_is_reported_once_with_its_error() -> None:
    async def watched() -> None:
        timers, slow, quick, patient = Timers(), Neighbour(), Neighbour(), Neighbour()
        timers.start()
        begun = asyncio.get_running_loop().time()
        timers.begin(slow, 2.0, "too slow")
        timers.begin(quick, 2.0, "too slow")
        timers.settled(quick)
        timers.begin(patient, 2.0, "too slow")
        timers.expect(patient, 5.0, "its second deadline")
        await asyncio.sleep(20)
        assert [(peer, text) for peer, text, _ in timers.missed] == [
            (slow, "too slow"),
            (patient, "its second deadline"),
        ]
        for (_, _, at), seconds in zip(timers.missed, (2.0, 5.0), strict=True):
            assert seconds < at - begun <= seconds + 2 * SWEEP_SECONDS

    run(watched)


@pytest.mark.parametrize("reads", [True, False])
def test_a_connection_whose_other_end_reads_nothing_is_aborted_after_the_write_deadline(reads: bool) -> None:
    async def watched() -> None:
        timers, peer = Timers(), Neighbour()
        timers.start()
        timers.begin(peer, 600.0, "late")
        begun = asyncio.get_running_loop().time()
        peer.fake.waiting = 100
        for _ in range(20):
            peer.fake.sent += reads
            await asyncio.sleep(SWEEP_SECONDS)
        assert peer.fake.aborted is not reads
        assert timers.slow == (not reads)
        for _, at in timers.stuck:
            assert 3.0 < at - begun <= 3.0 + 3 * SWEEP_SECONDS

    run(watched)


def test_a_peer_whose_receivers_are_behind_is_held_while_it_is_connected() -> None:
    async def held() -> None:
        timers, peer = Timers(), Neighbour()
        timers.hold(peer, ["behind"])
        assert timers.receivers.held == [(peer.link, ["behind"])]
        peer.link = None
        timers.hold(peer, ["behind"])
        assert len(timers.receivers.held) == 1

    run(held)


def test_an_error_in_one_sweep_does_not_stop_the_timers() -> None:
    async def watched() -> None:
        timers, peer = Timers(), Neighbour()
        timers.start()
        timers.begin(peer, 600.0, "late")
        timers.fails = True
        await asyncio.sleep(3)
        assert peer.pings == []
        timers.fails = False
        await asyncio.sleep(3)
        assert peer.pings

    assert run(watched).failures


def test_an_address_is_empty_before_the_connection_is_established() -> None:
    peer = Neighbour()
    assert address_of(peer) == "192.0.2.1:6222"
    peer.link = None
    assert address_of(peer) == ""
