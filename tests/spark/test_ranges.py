"""Planning: positions, bounds, pieces, and what counts as loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.spark.offsets import StreamOffset, StreamState
from headwater.spark.ranges import (
    ROWS_WORTH_A_PARTITION,
    Range,
    check_readable,
    loss,
    resolve,
    resumed,
    shares,
    split,
    split_all,
)

STATE = StreamState("ORDERS", "monday", 10, 100, "limits")


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
    assert [(piece.stream, len(piece)) for piece in pieces] == [("A", 100), ("A", 100), ("A", 100), ("B", 100)]
    assert split_all([none], 4) == []


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.one_of(st.none(), st.integers(1, 50)))
def test_pieces_cover_a_range_without_gap_or_overlap(start: int, length: int, pieces: int | None) -> None:
    ranges = split(Range("S", "now", start, start + length), pieces)
    assert sum(len(piece) for piece in ranges) == length
    assert all(len(piece) > 0 for piece in ranges)
    edges = [start, *(piece.end for piece in ranges)]
    assert [piece.start for piece in ranges] == edges[:-1]
    assert len(ranges) <= (pieces or length)
    if pieces:
        assert len(ranges) == min(pieces, length)


def test_a_small_range_is_one_piece_unless_more_are_asked_for() -> None:
    small = Range("S", "now", 1, ROWS_WORTH_A_PARTITION)
    assert len(split(small, None)) == 1
    assert len(split(small, 8)) == 8


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_a_stream_that_forgets_what_is_acknowledged_is_refused(retention: str) -> None:
    with pytest.raises(ConfigError, match="sources from it"):
        check_readable(StreamState("ORDERS", "monday", 1, 2, retention))
    check_readable(STATE)


@pytest.mark.parametrize("position", [10, 55, 100])
def test_a_position_within_the_stream_is_no_loss(position: int) -> None:
    assert loss(StreamOffset("ORDERS", position, "monday"), STATE) is None


@pytest.mark.parametrize(
    ("offset", "text", "resume"),
    [
        (StreamOffset("ORDERS", 50, "sunday"), "made anew", 10),
        (StreamOffset("ORDERS", 7, "monday"), "sequences 7 to 9", 10),
        (StreamOffset("ORDERS", 101, "monday"), "restored from an older state", 10),
    ],
)
def test_what_is_gone_is_named_and_reading_can_resume(offset: StreamOffset, text: str, resume: int) -> None:
    problem = loss(offset, STATE)
    assert problem is not None
    assert text in str(problem)
    assert "failOnDataLoss" in str(problem)
    assert resumed(offset, STATE) == StreamOffset("ORDERS", resume, "monday")
