"""The schedules of a stream: what is due when, what it brings, and when a schedule is over."""

import pytest

from headwater.errors import StorageError
from headwater.jetstream_state.schedules import FIRST_RETRY, ProducedMessage, Schedules, ended_by, with_rollup
from headwater.model.timestamps import SECOND, format_time
from headwater.streams.log import StoredRecord


def block(**headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


class Bench:
    """Messages that are durable at once."""

    def __init__(self) -> None:
        self.records: dict[int, StoredRecord] = {}
        self.broken = False
        self.schedules = Schedules(self._load, self._last)

    def _load(self, sequence: int) -> StoredRecord | None:
        if self.broken:
            raise StorageError("broken")
        return self.records.get(sequence)

    def _last(self, subject: bytes) -> int:
        return max((number for number, record in self.records.items() if record.subject == subject), default=0)

    def put(self, subject: bytes, headers: bytes, at: int, payload: bytes = b"x") -> int:
        sequence = len(self.records) + 1
        self.records[sequence] = StoredRecord(sequence - 1, at, subject, headers, payload)
        self.schedules.note(subject, sequence, headers, at)
        return sequence

    def bring(self, now: int) -> list[ProducedMessage]:
        """What is due, stored at once."""
        brought = self.schedules.take_due(now)
        for one in brought:
            self.put(one.target, one.header_block, now, one.payload)
        return brought


def every(seconds: int, target: str = "t", **more: str) -> bytes:
    return block(Nats_Schedule=f"@every {seconds}s", Nats_Schedule_Target=target, **more)


def test_a_turn_follows_when_what_the_last_one_brought_is_durable() -> None:
    bench = Bench()
    bench.put(b"s", every(2), 0)
    assert bench.schedules.next_due() == 2 * SECOND
    assert bench.schedules.take_due(2 * SECOND - 1) == []
    brought = bench.schedules.take_due(2 * SECOND)
    assert [(one.schedule, one.target, one.payload) for one in brought] == [(b"s", b"t", b"x")]
    assert bench.schedules.next_due() == 0
    assert bench.schedules.take_due(9 * SECOND) == []
    bench.put(b"t", brought[0].header_block, 2 * SECOND)
    assert bench.schedules.next_due() == 4 * SECOND


def test_headers_of_the_schedule_and_for_the_server_are_not_passed_on() -> None:
    bench = Bench()
    theirs = {"X_Mine": "1", "Nats_Msg_Id": "i", "Nats_Expected_Stream": "S", "Nats_TTL": "1h", "Nats_Rollup": "sub"}
    bench.put(b"s", every(1, **theirs, Nats_Schedule_TTL="5s", Nats_Schedule_Rollup="sub"), 0)
    expected = {"X_Mine": "1", "Nats_Scheduler": "s", "Nats_Schedule_Next": format_time(2 * SECOND)}
    assert bench.bring(SECOND)[0].header_block == block(**expected, Nats_TTL="5s", Nats_Rollup="sub")


def test_a_sample_is_the_last_of_its_source_or_the_schedule_itself() -> None:
    bench = Bench()
    bench.put(b"s", every(1, Nats_Schedule_Source="d"), 0, b"own")
    assert [one.payload for one in bench.bring(SECOND)] == [b"own"]
    bench.put(b"d", b"", SECOND, b"older")
    bench.put(b"d", b"", SECOND, b"live")
    assert [one.payload for one in bench.bring(2 * SECOND)] == [b"live"]
    assert b"Nats-Schedule-Source" not in bench.records[len(bench.records)].header_block


def test_a_time_is_over_when_it_has_brought_its_message() -> None:
    bench = Bench()
    bench.put(b"s", block(Nats_Schedule="@at 1970-01-01T00:00:05Z", Nats_Schedule_Target="t"), 0)
    brought = bench.bring(5 * SECOND)
    assert ended_by(brought[0].header_block) == b"s"
    assert len(bench.schedules) == 0


def test_several_are_brought_in_the_order_of_their_schedules() -> None:
    bench = Bench()
    for subject, seconds in ((b"c", 3), (b"a", 2), (b"b", 1)):
        bench.put(subject, every(seconds), 0)
    assert [one.schedule for one in bench.bring(3 * SECOND)] == [b"c", b"a", b"b"]


@pytest.mark.parametrize("headers", [b"", block(X="y"), block(Nats_Schedule="nonsense", Nats_Schedule_Target="t")])
def test_another_message_on_its_subject_ends_a_schedule(headers: bytes) -> None:
    bench = Bench()
    bench.put(b"s", every(1), 0)
    bench.put(b"s", headers, 0)
    assert bench.bring(SECOND) == []
    assert bench.schedules.next_due() == 0


def test_a_newer_schedule_takes_the_place_of_the_one_before_it() -> None:
    bench = Bench()
    bench.put(b"s", every(1), 0)
    bench.put(b"s", every(5, "other"), 0)
    assert bench.bring(SECOND) == []
    assert [one.target for one in bench.bring(5 * SECOND)] == [b"other"]


def test_a_schedule_whose_message_is_gone_brings_nothing() -> None:
    bench = Bench()
    del bench.records[bench.put(b"s", every(1), 0)]
    assert bench.bring(SECOND) == []
    assert len(bench.schedules) == 0


def test_what_could_not_be_stored_or_read_is_due_again_later_and_later() -> None:
    bench = Bench()
    bench.put(b"s", every(1), 0)
    assert bench.schedules.take_due(SECOND)
    bench.schedules.failed(b"s", SECOND)
    assert bench.schedules.next_due() == SECOND + FIRST_RETRY
    bench.broken = True
    assert bench.schedules.take_due(SECOND + FIRST_RETRY) == []
    assert bench.schedules.next_due() == SECOND + 3 * FIRST_RETRY
    bench.broken = False
    assert len(bench.bring(SECOND + 3 * FIRST_RETRY)) == 1


def test_turns_are_taken_up_again_from_rows() -> None:
    bench = Bench()
    bench.put(b"s", every(2), 0)
    bench.bring(2 * SECOND)
    rows = bench.schedules.rows()
    bench.schedules = Schedules(bench._load, bench._last)
    bench.schedules.restore(rows)
    assert bench.schedules.next_due() == 4 * SECOND


def test_a_schedule_gets_a_rollup_behind_its_own_headers() -> None:
    assert with_rollup(block(A="1")) == block(A="1", Nats_Rollup="sub")
