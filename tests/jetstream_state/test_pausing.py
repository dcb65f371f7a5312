"""What holds deliveries back: a pause until a time of day, and time stamps under the replay policy `original`."""

from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_state.pausing import OriginalPace, Pause
from headwater.model.timestamps import SECOND, ZERO, parse_time
from headwater.streams.log import StoredRecord


def test_a_pause_holds_until_its_time_and_is_over_then() -> None:
    clock = [parse_time("2030-01-01T00:00:00Z")]
    pause = Pause(lambda: clock[0])
    assert (pause.holds(), pause.remaining) == (False, 0)
    pause.configure(ConsumerConfig(pause_until="2030-01-01T00:00:02Z"))
    assert (pause.holds(), pause.remaining) == (True, 2 * SECOND)
    clock[0] += 2 * SECOND - 1
    assert (pause.holds(), pause.remaining) == (True, 1)
    clock[0] += 1
    assert not pause.holds()
    clock[0] -= SECOND  # a clock that is set back does not begin the pause anew
    assert (pause.holds(), pause.remaining) == (False, 0)


def test_the_zero_time_is_no_pause() -> None:
    pause = Pause(lambda: 1)
    pause.configure(ConsumerConfig(pause_until=ZERO))
    assert not pause.holds()


def test_messages_follow_each_other_as_their_time_stamps_do() -> None:
    def record(seconds: int) -> StoredRecord:
        return StoredRecord(0, seconds * SECOND, b"s", b"", b"")

    pace = OriginalPace()
    assert pace.held_back(record(100), 7) == 0
    pace.note(record(100), 7 * SECOND)
    assert pace.held_back(record(103), 8 * SECOND) == 2.0
    assert pace.held_back(record(103), 10 * SECOND) == 0
    assert pace.held_back(record(90), 8 * SECOND) == 0, "a clock that was set back holds nothing up"
