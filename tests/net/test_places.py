"""The connections of a listener are counted in total and by address, and refusals are logged at a bounded rate."""

import pytest

from headwater.net.limits import Limits
from headwater.net.places import SECONDS_BETWEEN_LINES, Places, RateLimitedLog


def test_room_is_counted_in_all_and_by_address() -> None:
    places = Places(Limits(connections=3, per_address=2), lambda: 0.0)
    taken = [places.take("a"), places.take("a")]
    assert places.refusal("a") == "there are 2 from this address"
    assert places.refusal("b") == ""
    taken.append(places.take("b"))
    assert places.refusal("c") == "there are 3"
    for place in taken:
        place.leave()
        place.leave()  # leaving twice frees one place only
    assert (places.connections, places.by_host) == (0, {})
    assert places.refusal("a") == ""


def test_without_limits_there_is_always_room() -> None:
    places = Places(Limits(), lambda: 0.0)
    for _ in range(1000):
        places.take("a")
    assert places.refusal("a") == ""


def test_each_refused_connection_is_counted_and_reported_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    now, received = [0.0], []
    places = Places(Limits(connections=1), lambda: now[0])
    places.on_turned_away = lambda address, reason: received.append((address, reason))
    for _ in range(3):
        places.note_refusal(4222, "a", "there are 1")
    now[0] = SECONDS_BETWEEN_LINES
    places.note_refusal(4222, "b", "there are 1")
    assert places.turned_away == len(received) == 4
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split("times=")[1] for line in lines] == ["1", "3"]
    assert "port=4222 address=b" in lines[1]


def test_a_rate_limited_log_gives_the_number_of_suppressed_lines(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = RateLimitedLog(lambda: now[0])
    for _ in range(5):
        log.log(30, "times=%d")
    now[0] = SECONDS_BETWEEN_LINES
    log.log(30, "times=%d")
    assert [record.getMessage() for record in caplog.records] == ["times=1", "times=5"]
