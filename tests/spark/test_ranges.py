"""Planning: positions, bounds, pieces, and what counts as loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import ConfigError, DataLossError
from headwater.spark.offsets import Offset, StreamState
from headwater.spark.ranges import (
    ROWS_WORTH_A_PARTITION,
    Range,
    accepted,
    check_readable,
    loss,
    resolve,
    resumed,
    shares,
    span,
    split_all,
)

STATE = StreamState("ORDERS", "monday", 10, 100)


def test_positions_resolve_against_the_state() -> None:
    assert resolve("earliest", STATE) == 10
    assert resolve("latest", STATE) == 100
    assert resolve(50, STATE) == 50


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5), st.none() | st.integers(1, 10**6))
def test_a_limit_is_shared_in_proportion_and_used_up(backlogs: list[int], most: int | None) -> None:
    taken = shares(backlogs, most)
    total = sum(backlogs)
    assert sum(taken) == (total if most is None else min(total, most))
    for backlog, part in zip(backlogs, taken, strict=True):
        assert 0 <= part <= backlog
        if most is not None and total > most:
            assert abs(part - most * backlog / total) <= 1


def test_partitions_are_shared_among_streams() -> None:
    long, short, none = Range("A", "c", 1, 301), Range("B", "c", 1, 101), Range("C", "c", 5, 5)
    pieces = split_all([long, short, none], 4)
    assert [(piece.place, len(piece)) for piece in pieces] == [("A", 100), ("A", 100), ("A", 100), ("B", 100)]
    assert split_all([none], 4) == []


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.one_of(st.none(), st.integers(1, 50)))
def test_pieces_cover_a_range_without_gap_or_overlap(start: int, length: int, pieces: int | None) -> None:
    ranges = split_all([Range("S", "now", start, start + length)], pieces)
    assert sum(len(piece) for piece in ranges) == length
    assert all(len(piece) > 0 for piece in ranges)
    edges = [start, *(piece.end for piece in ranges)]
    assert [piece.start for piece in ranges] == edges[:-1]
    assert len(ranges) <= (pieces or length)
    if pieces:
        assert len(ranges) == min(pieces, length)


def test_a_small_range_is_one_piece_unless_more_are_asked_for() -> None:
    small = Range("S", "now", 1, ROWS_WORTH_A_PARTITION)
    assert len(split_all([small], None)) == 1
    assert len(split_all([small], 8)) == 8


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_a_stream_that_forgets_what_is_acknowledged_is_refused(retention: str) -> None:
    with pytest.raises(ConfigError, match="sources from it"):
        check_readable(StreamState("ORDERS", "monday", 1, 2, retention=retention))
    check_readable(STATE)


@pytest.mark.parametrize("position", [10, 55, 100])
def test_a_position_within_the_stream_is_no_loss(position: int) -> None:
    assert loss(Offset("ORDERS", position, "monday"), STATE) is None


@pytest.mark.parametrize(
    ("offset", "text", "resume"),
    [
        (Offset("ORDERS", 50, "sunday"), "made anew", 10),
        (Offset("ORDERS", 7, "monday"), "sequences 7 to 9", 10),
        (Offset("ORDERS", 101, "monday"), "restored from an older state", 10),
    ],
)
def test_what_is_gone_is_named_and_reading_can_resume(offset: Offset[str], text: str, resume: int) -> None:
    problem = loss(offset, STATE)
    assert problem is not None
    assert text in str(problem)
    assert "failOnDataLoss" in str(problem)
    assert resumed(offset, STATE) == Offset("ORDERS", resume, "monday")


def test_a_loss_ends_the_query_or_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    gone = Offset("ORDERS", 7, "monday")
    with pytest.raises(DataLossError, match="sequences 7 to 9"):
        accepted(gone, STATE, True)
    assert accepted(gone, STATE, False).next == 10
    assert "data_loss_accepted" in caplog.text
    caplog.clear()
    assert accepted(Offset("ORDERS", 11, "monday"), STATE, True).next == 11
    assert caplog.text == ""


def test_a_batch_that_retention_passed_has_nothing_left() -> None:
    begin, stop = Offset("ORDERS", 2, "monday"), Offset("ORDERS", 8, "monday")
    assert span(begin, stop, accepted(begin, STATE, False), STATE) is None
    stop = Offset("ORDERS", 15, "monday")
    assert span(begin, stop, accepted(begin, STATE, False), STATE) == (10, 15)


class Stream:
    """A stream that messages come to and go from; each message has a number that no other ever has."""

    def __init__(self) -> None:
        self.created, self.first, self.messages, self.given = 0, 1, list[int](), 0

    def state(self) -> StreamState:
        return StreamState("S", str(self.created), self.first, self.first + len(self.messages))

    def append(self, count: int) -> None:
        self.messages += range(self.given, self.given + count)
        self.given += count

    def expire(self, count: int) -> None:
        count = min(count, len(self.messages))
        self.first += count
        del self.messages[:count]

    def remake(self) -> None:
        self.created, self.first, self.messages = self.created + 1, 1, []

    def read(self, start: int, end: int) -> list[int]:
        return self.messages[max(0, start - self.first) : max(0, end - self.first)]


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "expire", "remake", "plan", "run"]), st.integers(1, 5)), max_size=40
)


@given(STEPS)
def test_with_losses_accepted_no_message_is_read_twice_and_none_that_is_left_is_missed(
    steps: list[tuple[str, int]],
) -> None:
    """Batches are planned and run at different times, as after a restart; the stream changes between any two steps."""
    stream = Stream()
    at = stream.state().at(1)
    batch: tuple[Offset[str], Offset[str]] | None = None
    read: list[int] = []

    def plan() -> tuple[Offset[str], Offset[str]]:
        state = stream.state()
        start = accepted(at, state, False)
        return at, state.at(max(start.next, state.end))

    def run(planned: tuple[Offset[str], Offset[str]]) -> None:
        begin, stop = planned
        state = stream.state()
        left = span(begin, stop, accepted(begin, state, False), state) if begin != stop else None
        if left is not None:
            read.extend(stream.read(*left))

    for step, count in steps:
        if step == "plan":
            batch = batch or plan()
        elif step == "run":
            if batch is not None:
                run(batch)
                at, batch = batch[1], None
        elif step == "remake":
            stream.remake()
        else:
            getattr(stream, step)(count)
    if batch is not None:
        run(batch)
        at = batch[1]
    run(plan())
    assert len(read) == len(set(read))
    assert set(stream.messages) <= set(read)
