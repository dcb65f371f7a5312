"""Which publishers are held for which receivers, and for how long; links are not real, and the test controls the clock."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from support.clusters import until
from support.fake_link import FakeLink, make_outlet

from headwater.exchange.backpressure import LONGEST_HOLD, STALL_SECONDS, Backpressure
from headwater.exchange.flusher import STALL_AT
from headwater.exchange.sublist import Outlet
from headwater.net.link import Link
from headwater.net.write_progress import GRACE_SECONDS, Progress

MAX_PENDING = 64 << 20


class Receiver:
    """A client or a peer that is behind."""

    def __init__(self, *, is_route: bool, waiting: int) -> None:
        self.link, self.outlet = make_outlet()
        self.link.waiting = waiting
        self.outlet.is_route = is_route


class Bench:
    def __init__(self) -> None:
        self.now = 100.0
        self.backpressure = Backpressure(lambda: self.now, MAX_PENDING)

    def hold(self, *receivers: Receiver) -> FakeLink:
        """Hold a publisher that has just published to `receivers`."""
        publisher = FakeLink()
        self.backpressure.hold_publisher(as_link(publisher), [receiver.outlet for receiver in receivers])
        return publisher

    def hold_route(self, *outlets: Outlet) -> FakeLink:
        route = FakeLink()
        self.backpressure.hold_route(as_link(route), list(outlets))
        return route


def as_link(link: FakeLink) -> Link:
    return cast(Link, link)


def run(test: Callable[[Bench], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await test(Bench())

    asyncio.run(bounded())


async def goes_on(publisher: FakeLink) -> None:
    await until(lambda: publisher.reading, "the publisher to go on")


def test_publisher_waits_for_a_peer_until_little_waits_for_it() -> None:
    async def test(bench: Bench) -> None:
        peer = Receiver(is_route=True, waiting=2 << 20)
        publisher = bench.hold(peer)
        assert not publisher.reading
        for _ in range(5):  # it keeps accepting bytes: the publisher waits
            peer.link.sent += 1000
            bench.now += 0.01
            await asyncio.sleep(0)
        assert not publisher.reading
        peer.link.drained()
        await goes_on(publisher)

    run(test)


def test_publisher_waits_no_longer_than_a_bound_for_a_peer_that_takes_bytes_slowly() -> None:
    async def test(bench: Bench) -> None:
        peer = Receiver(is_route=True, waiting=2 << 20)
        publisher = bench.hold(peer)

        def trickle() -> bool:
            peer.link.sent += 1
            bench.now += LONGEST_HOLD / 10
            return publisher.reading

        await until(trickle, "the publisher to go on")

    run(test)


def test_publisher_waits_only_a_moment_for_a_peer_that_reads_nothing() -> None:
    async def test(bench: Bench) -> None:
        peer = Receiver(is_route=True, waiting=2 << 20)
        publisher = bench.hold(peer)
        bench.now += 0.011
        await goes_on(publisher)

    run(test)


def test_many_publishers_wait_longer_for_a_peer_that_reads_nothing_so_that_memory_is_bounded() -> None:
    async def test(bench: Bench) -> None:
        peer = Receiver(is_route=True, waiting=MAX_PENDING // 2)
        publishers = [bench.hold(peer) for _ in range(100)]
        assert bench.backpressure.patience(as_link(peer.link)) == 0.01 * 50
        bench.now += 0.3
        await asyncio.sleep(0.02)
        assert not any(publisher.reading for publisher in publishers)
        bench.now += 0.3
        for publisher in publishers:
            await goes_on(publisher)
        assert bench.backpressure.patience(as_link(peer.link)) == 0.01

    run(test)


def test_lost_peer_lets_its_publishers_go() -> None:
    async def test(bench: Bench) -> None:
        peer = Receiver(is_route=True, waiting=2 << 20)
        publisher = bench.hold(peer)
        peer.link.fail(ConnectionResetError())
        await goes_on(publisher)

    run(test)


def test_publisher_is_held_for_a_client_only_while_that_takes_bytes() -> None:
    async def test(bench: Bench) -> None:
        slow, fine = Receiver(is_route=False, waiting=STALL_AT + 1), Receiver(is_route=False, waiting=STALL_AT)
        assert bench.hold(fine).reading
        publisher = bench.hold(slow)
        assert not publisher.reading
        await goes_on(publisher)
        assert not bench.hold(slow).reading  # it has accepted nothing since, but may do so soon
        bench.now += 2 * GRACE_SECONDS
        assert bench.hold(slow).reading
        slow.link.sent += 1
        assert not bench.hold(slow).reading

    run(test)


def test_publisher_waits_for_a_client_that_reads_and_would_soon_be_cut_off() -> None:
    async def test(bench: Bench) -> None:
        near = Receiver(is_route=False, waiting=MAX_PENDING // 2 + 1)
        publisher = bench.hold(near)
        for _ in range(5):  # checks, 5 ms apart
            near.link.sent += 1
            await asyncio.sleep(STALL_SECONDS)
            assert not publisher.reading
        near.link.waiting = MAX_PENDING // 2
        await goes_on(publisher)
        near.link.waiting += 1
        publisher = bench.hold(near)
        bench.now += LONGEST_HOLD
        near.link.sent += 1
        await goes_on(publisher)  # others must not wait for it for long

    run(test)


def test_publishers_are_held_above_a_share_of_the_configured_limit() -> None:
    async def test(bench: Bench) -> None:
        small = Backpressure(lambda: bench.now, 1 << 20)
        receiver, publisher = Receiver(is_route=False, waiting=(1 << 18) + 1), FakeLink()
        small.hold_publisher(as_link(publisher), [receiver.outlet])
        assert not publisher.reading
        assert bench.hold(receiver).reading
        await goes_on(publisher)

    run(test)


def test_no_publisher_is_held_for_itself_or_for_a_closed_receiver() -> None:
    async def test(bench: Bench) -> None:
        gone = Receiver(is_route=True, waiting=2 << 20)
        gone.outlet.closed = True
        assert bench.hold(gone).reading
        own = Receiver(is_route=False, waiting=STALL_AT + 1)
        bench.backpressure.hold_publisher(as_link(own.link), [own.outlet])
        assert own.link.reading

    run(test)


def test_route_is_held_back_only_for_a_client_that_would_soon_be_cut_off() -> None:
    async def test(bench: Bench) -> None:
        behind = Receiver(is_route=False, waiting=MAX_PENDING // 2)
        assert bench.hold_route(behind.outlet).reading
        behind.link.waiting += 1
        route = bench.hold_route(behind.outlet)
        assert not route.reading
        await goes_on(route)
        assert bench.hold_route(behind.outlet).reading  # stuck: others must not wait for it

    run(test)


def test_receiver_is_stuck_from_when_it_last_took_bytes() -> None:
    progress, link = Progress(), FakeLink()
    link.waiting = 5
    assert progress.stuck_seconds(as_link(link), 10.0) == 0.0
    assert progress.stuck_seconds(as_link(link), 13.0) == 3.0
    link.sent = 1
    assert progress.stuck_seconds(as_link(link), 14.0) == 0.0
    link.waiting = 0
    assert progress.stuck_seconds(as_link(link), 20.0) == 0.0
    link.waiting = 5
    assert progress.stuck_seconds(as_link(link), 21.0) == 0.0  # a new wait begins
    progress.forget(as_link(link))
    assert progress.moved(as_link(link), 22.0)


def test_only_receivers_that_read_nothing_for_longer_than_the_deadline_are_ended() -> None:
    progress, link = Progress(), FakeLink()
    assert not progress.end_stuck(None, 9.0, 0.0)
    assert not progress.end_stuck(as_link(link), 10.0, 2.0)
    link.waiting = 5
    assert [progress.end_stuck(as_link(link), now, 2.0) for now in (20.0, 22.0)] == [False, False]
    assert not link.aborted
    assert progress.end_stuck(as_link(link), 22.5, 2.0)
    assert link.aborted
