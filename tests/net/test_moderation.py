"""Pauses between reads, by simulated arrivals: a flood gets them, a client that waits for its answers does not."""

from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.net.moderation import Moderation

US = 1_000
MS = 1_000_000
PAUSE = 100 * US  # what the kernel makes of the loop's pause
ROUND = 4 * US  # what one round of a read and a write takes
WAKING = 5 * US  # CPU time of a pause
BYTES = 5  # that are carried on in 1 ns
LARGE = 16_384  # bytes; a read of these is worth its system call
ROOM = 1 << 16  # bytes that a read takes at most


class Flood:
    """A publisher that waits for no answer: `size` bytes every `interval` ns, the last at `end`."""

    def __init__(self, interval: int, size: int = 150, end: int = 1 << 62) -> None:
        self._interval, self._size, self._end = interval, size, end
        self._next = 1

    def arrive(self, now: int) -> list[tuple[int, int]]:
        arrived = []
        while self._next <= min(now, self._end):
            arrived.append((self._next, self._size))
            self._next += self._interval
        return arrived

    def following(self) -> int:
        """When the next bytes arrive if nothing is answered."""
        return self._next if self._next <= self._end else 1 << 62

    def answer(self, now: int, count: int) -> None:
        """Nobody waits for it."""


class Bursts(Flood):
    """A publisher of many connections that reads what others have sent for 2 ms of each 16."""

    def arrive(self, now: int) -> list[tuple[int, int]]:
        arrived = super().arrive(now)
        if self._next % (16 * MS) > 14 * MS:
            self._next += 2 * MS
        return arrived


class Conversation(Flood):
    """A client with `outstanding` requests of a write each; it sends the next `think` ns after an answer."""

    def __init__(self, outstanding: int, think: int, size: int = 150, start: int = 1) -> None:
        super().__init__(1, size)
        self._due = deque([start] * outstanding)
        self._think = think

    def arrive(self, now: int) -> list[tuple[int, int]]:
        arrived = []
        while self._due and self._due[0] <= now:
            arrived.append((self._due.popleft(), self._size))
        return arrived

    def following(self) -> int:
        return self._due[0] if self._due else 1 << 62

    def answer(self, now: int, count: int) -> None:
        self._due.extend([now + self._think] * count)


class Loop:
    """A loop of one link over simulated time, with the delays of what it read; `pauses` by the moment they began."""

    def __init__(self, moderation: Moderation | None = None) -> None:
        self.moderation = moderation
        self.room = ROOM
        self.now = 1
        self.cpu = 0
        self.served = 0
        self.rounds = 0
        self.slowest = 0
        self.pauses: list[int] = []

    def run(self, flow: Flood, until: int) -> None:
        waiting: list[tuple[int, int]] = []
        pause = False
        while True:
            if pause:
                self.pauses.append(self.now)
                self.now += PAUSE
                self.cpu += WAKING
            waiting += flow.arrive(self.now)
            if not waiting:
                self.now = max(self.now, flow.following())
                if self.now > until:
                    return
                waiting += flow.arrive(self.now)
            pause = False
            size = sum(size for _, size in waiting)
            if self.moderation is not None and self.moderation.wants_look(1):
                pause = self.moderation.look(self.now, self.cpu, 1, size, self.room)
            self.slowest = max(self.slowest, self.now - waiting[0][0])
            self.now += ROUND + size // BYTES
            self.cpu += ROUND + size // BYTES
            self.rounds += 1
            self.served += len(waiting)
            flow.answer(self.now, len(waiting))
            waiting = []
            if self.now > until:
                return


def both(flow: "type[Flood]", until: int, *arguments: int) -> tuple[Loop, Loop]:
    """The same flow with and without moderation."""
    moderated, plain = Loop(Moderation()), Loop()
    for loop in (moderated, plain):
        loop.run(flow(*arguments), until)
    return moderated, plain


@given(interval=st.integers(1 * US, 10 * US), size=st.integers(20, 1000))
@settings(max_examples=15, deadline=None)
def test_a_flood_of_small_writes_is_read_many_at_a_time(interval: int, size: int) -> None:
    moderated, plain = both(Flood, 120 * MS, interval, size)
    assert moderated.rounds < plain.rounds / 2
    assert moderated.served >= 0.99 * plain.served
    assert moderated.slowest <= plain.slowest + 1.4 * PAUSE  # and the round before, which has more to carry on


@given(outstanding=st.integers(1, 2), think=st.integers(1 * US, 300 * US), size=st.integers(20, 5000))
@settings(max_examples=12, deadline=None)
def test_a_client_that_waits_for_its_answers_loses_less_than_a_hundredth(
    outstanding: int, think: int, size: int
) -> None:
    moderated, plain = both(Conversation, 500 * MS, outstanding, think, size)
    assert moderated.served >= 0.99 * plain.served
    assert len(moderated.pauses) <= 20


@given(outstanding=st.integers(3, 64), think=st.integers(1 * US, 300 * US))
@settings(max_examples=12, deadline=None)
def test_clients_with_many_requests_keep_seven_eighths_of_their_rate(outstanding: int, think: int) -> None:
    moderated, plain = both(Conversation, 300 * MS, outstanding, think)
    assert moderated.served >= 0.87 * plain.served


@given(interval=st.integers(3 * US, 8 * US), size=st.integers(20, 1280))
@settings(max_examples=10, deadline=None)
def test_a_flood_in_bursts_is_paused_most_of_the_time(interval: int, size: int) -> None:
    moderated, plain = both(Bursts, 400 * MS, interval, size)
    assert len(moderated.pauses) * (PAUSE + ROUND) > 0.7 * 400 * MS
    assert moderated.served >= 0.99 * plain.served


def test_what_counts_is_what_a_round_finds_in_all_links_and_not_in_each() -> None:
    moderation = Moderation()
    now = cpu = 1
    while not moderation.pausing:
        now, cpu = now + 10 * US, cpu + 10 * US
        if moderation.wants_look(1):
            moderation.look(now, cpu, 1, 2600, ROOM)
    for _ in range(1000):
        now, cpu = now + 150 * US, cpu + 75 * US
        assert moderation.wants_look(12)
        assert moderation.look(now, cpu, 12, 12 * 3250, 12 * ROOM)


def test_pauses_after_which_a_byte_costs_as_much_end_with_the_trial() -> None:
    moderation = Moderation()
    now = cpu = 1
    while not moderation.pausing:
        now, cpu = now + 10 * US, cpu + 10 * US
        if moderation.wants_look(1):
            moderation.look(now, cpu, 1, 2600, ROOM)
    rounds = 0
    while moderation.pausing:
        now, cpu, rounds = now + 150 * US, cpu + 140 * US, rounds + 1
        if moderation.wants_look(12):
            moderation.look(now, cpu, 12, 12 * 3250, 12 * ROOM)
    assert rounds == 64


@pytest.mark.parametrize(("interval", "size"), [(60 * US, 150), (20 * US, LARGE)])
def test_a_slow_flood_and_one_of_large_writes_are_not_paused(interval: int, size: int) -> None:
    loop = Loop(Moderation())
    loop.run(Flood(interval, size), 300 * MS)
    assert not loop.pauses


def test_trials_that_fail_are_made_twice_as_seldom_each_time_until_there_are_ten_a_second() -> None:
    loop = Loop(Moderation())
    loop.run(Conversation(1, 10 * US), 2_000 * MS)
    gaps = [after - before for before, after in zip(loop.pauses[::2], loop.pauses[2::2], strict=False)]
    assert gaps == sorted(gaps)
    assert 14 * MS < gaps[0] < 18 * MS
    assert 100 * MS <= gaps[-1] < 110 * MS


def test_the_end_of_a_flood_is_held_for_one_pause_and_a_conversation_after_it_for_eight() -> None:
    loop = Loop(Moderation())
    loop.run(Flood(4 * US, end=50 * MS), 50 * MS + 1)
    assert len(loop.pauses) > 100
    loop.slowest = 0
    before = len(loop.pauses)
    loop.run(Conversation(1, 10 * US, start=60 * MS), 90 * MS)
    assert len(loop.pauses) - before <= 12  # eight, and two trials of two
    assert loop.slowest <= PAUSE + ROUND


def test_a_flood_after_many_failed_trials_is_paused_within_a_tenth_of_a_second() -> None:
    loop = Loop(Moderation())
    loop.run(Conversation(1, 10 * US), 2_500 * MS)
    before = len(loop.pauses)
    began = loop.now
    flood = Flood(4 * US)
    flood._next = loop.now
    loop.run(flood, loop.now + 300 * MS)
    assert len(loop.pauses) - before > 1000
    assert loop.pauses[before] < began + 110 * MS


def test_pauses_are_doubted_after_a_while_even_where_reads_stay_large() -> None:
    moderation = Moderation()
    loop = Loop(moderation)
    loop.run(Flood(20 * US, 50), 50 * MS)
    assert moderation.pausing
    larger = Conversation(1, 1 * US, 2000, start=loop.now)
    before = loop.now
    loop.run(larger, loop.now + 600 * MS)
    assert len([moment for moment in loop.pauses if moment > before + 220 * MS]) <= 20
    assert not moderation.pausing


def arrivals_of(moderation: Moderation, room: int, cpu_paused: int, until: int) -> list[int]:
    """Three bytes a ns arrive, and a read finds 45,000; after a pause 360,000 if it has room. Begins of pauses."""
    now = cpu = 1
    began: list[int] = []
    was = False
    while now < until:
        was = moderation.pausing
        now += PAUSE + 20 * US if was else 15 * US
        cpu += cpu_paused if was else 8 * US
        if moderation.wants_look(1):
            moderation.look(now, cpu, 1, min(360_000 if was else 45_000, room), room)
        if moderation.pausing and not was:
            began.append(now)
    return began


def test_large_reads_are_paused_if_far_larger_ones_cost_less_and_there_is_room_for_them() -> None:
    roomy, narrow = Moderation(), Moderation()
    arrivals_of(roomy, 1 << 20, 30 * US, 100 * MS)
    assert roomy.pausing
    assert not arrivals_of(narrow, 256 << 10, 30 * US, 1_000 * MS)
    assert not narrow.pausing


def test_trials_with_large_reads_that_fail_are_made_twice_a_second_at_last() -> None:
    moderation = Moderation()
    began = arrivals_of(moderation, 1 << 20, 60 * US, 5_000 * MS)
    gaps = [after - before for before, after in pairwise(began)]
    assert gaps == sorted(gaps)
    assert 400 * MS < gaps[-1] < 430 * MS


def test_small_writes_after_a_flood_of_large_ones_that_was_not_paused_are_not_measured_by_its_rate() -> None:
    moderation = Moderation()
    arrivals_of(moderation, 1 << 20, 60 * US, 1_000 * MS)
    loop = Loop(moderation)
    loop.now = 1_000 * MS
    flood = Flood(4 * US)
    flood._next = loop.now
    loop.run(flood, loop.now + 500 * MS)
    assert len(loop.pauses) > 100
