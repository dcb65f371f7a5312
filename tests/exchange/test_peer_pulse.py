import asyncio
from collections.abc import Callable

from headwater.exchange.peer_pulse import PeerPulse


def with_loop(test: Callable[[], None]) -> None:
    async def body() -> None:
        test()

    asyncio.run(body())


def test_the_pong_of_an_older_ping_settles_nothing() -> None:
    def test() -> None:
        pulse = PeerPulse()
        assert pulse.beat(2, 1.0)
        settled = pulse.settle(2.0)
        pulse.answered(3.0)
        assert not settled.done()
        pulse.answered(4.0)
        assert settled.done()

    with_loop(test)


def test_two_waits_are_settled_by_the_second_pong() -> None:
    def test() -> None:
        pulse = PeerPulse()
        both = [pulse.settle(1.0), pulse.settle(2.0)]
        pulse.answered(3.0)
        assert not any(settled.done() for settled in both)
        pulse.answered(4.0)
        assert all(settled.done() for settled in both)

    with_loop(test)


def test_the_end_of_the_connection_settles_and_a_later_wait_starts_anew() -> None:
    def test() -> None:
        pulse = PeerPulse()
        settled = pulse.settle(1.0)
        pulse.end()
        assert settled.done()
        assert not pulse.settle(2.0).done()

    with_loop(test)


def test_a_peer_with_too_many_unanswered_pings_is_stale_until_one_pong_comes() -> None:
    pulse = PeerPulse()
    assert [pulse.beat(2, 1.0), pulse.beat(2, 2.0), pulse.beat(2, 3.0)] == [True, True, False]
    pulse.answered(3.5)
    assert pulse.heartbeat.round_trip == 1.5
    assert pulse.beat(2, 4.0)


def test_an_unsolicited_pong_changes_no_count() -> None:
    def test() -> None:
        pulse = PeerPulse()
        pulse.answered(1.0)
        settled = pulse.settle(2.0)
        assert not settled.done()
        pulse.answered(3.0)
        assert settled.done()

    with_loop(test)
