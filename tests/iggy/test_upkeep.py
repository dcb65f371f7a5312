"""What is too old or too much goes, and each look is followed by another, whatever goes wrong in it."""

import asyncio

import pytest

from headwater.iggy.upkeep import Housekeeper, surplus_end
from headwater.streams.log import Span

SPANS = [Span(0, 10, 100, 5), Span(10, 20, 100, 15), Span(20, 30, 100, 25)]


def test_nothing_goes_without_a_limit_or_within_it() -> None:
    assert surplus_end(SPANS, 1000, 0, 0) == 0
    assert surplus_end(SPANS, 30, 26, 300) == 0
    assert surplus_end([], 30, 1, 1) == 0


def test_old_segments_go_the_newest_too() -> None:
    assert surplus_end(SPANS, 30, 25, 0) == 10
    assert surplus_end(SPANS, 30, 15, 0) == 20
    assert surplus_end(SPANS, 30, 1, 0) == 30


def test_what_is_too_much_goes_but_never_the_newest() -> None:
    assert surplus_end(SPANS, 30, 0, 299) == 10
    assert surplus_end(SPANS, 30, 0, 1) == 20


def test_an_empty_segment_has_no_age() -> None:
    assert surplus_end([Span(0, 0, 100, None)], 30, 1, 0) == 0


def test_a_look_that_fails_is_logged_and_the_next_one_follows(caplog: pytest.LogCaptureFixture) -> None:
    third = asyncio.Event()
    looks: list[None] = []

    def fails() -> None:
        looks.append(None)
        if len(looks) == 3:
            third.set()
        raise KeyError("a fault of ours")

    async def main() -> None:
        housekeeper = Housekeeper({}, 0.001, lambda: 0, fails)
        housekeeper.start()
        async with asyncio.timeout(10):
            await third.wait()
        await housekeeper.stop()

    asyncio.run(main())
    assert [message.split()[0] for message in caplog.messages][:2] == ["housekeeping_failed"] * 2
