"""The clock that is read for every message: as the functions that it stands for."""

import time

import pytest

from headwater.group_commit.clock import Clock


@pytest.mark.parametrize("read", [time.time_ns, time.monotonic_ns])
def test_a_system_clock_is_read_as_its_function_would(read: object) -> None:
    assert callable(read)
    before = read()
    found = Clock(read).now()
    assert before <= found <= read()


def test_any_other_clock_is_called() -> None:
    times = iter([5, -7])
    clock = Clock(lambda: next(times))
    assert (clock.now(), clock.now()) == (5, -7)


def test_what_a_clock_raises_reaches_the_caller() -> None:
    def broken() -> int:
        raise OSError("no clock")

    with pytest.raises(OSError, match="no clock"):
        Clock(broken).now()


def test_a_function_that_a_simulation_puts_in_their_place_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 5)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 7)
    assert (Clock(time.time_ns).now(), Clock(time.monotonic_ns).now()) == (5, 7)
