"""Rows that a planner has read before Spark wants its plan, and those that it leaves to workers."""

import logging
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from headwater.errors import TransportError
from headwater.spark.micro_batches import RangePartition
from headwater.spark.ranges import Range
from headwater.spark.read_options import ReadOptions
from headwater.spark.rows_ahead import MOST_BYTES, MOST_ROWS, PATIENCE, RowsAhead, hasty

START, END, LATER = {"at": 1}, {"at": 3}, {"at": 9}


def small(end: int = 3, mean: int = 0) -> Range[str]:
    return Range("S", "c", 1, end, mean)


def batches(*sizes: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"data": pa.array([b"x" * size])}) for size in sizes]


def unread(wanted: Range[str]) -> Iterator[pa.RecordBatch]:
    raise AssertionError("it was read")


def test_a_plan_has_its_rows_each_time_it_is_made() -> None:
    calls = []

    def read(wanted: Range[str]) -> Iterator[pa.RecordBatch]:
        calls.append(wanted)
        yield from batches(1, 2)

    ahead = RowsAhead()
    ahead.start(START, END, [small()], read)
    for _ in range(2):
        plan = ahead.plan({"at": 1}, {"at": 3})
        assert plan is not None and [part.range for part in plan if isinstance(part, RangePartition)] == [small()]
        rows = ahead.rows(plan[0])
        assert rows is not None and list(rows) == batches(1, 2)
    assert calls == [small()]
    assert ahead.plan(START, LATER) is None and ahead.plan(LATER, END) is None
    assert ahead.rows(RangePartition(small())) is None, "a partition of another plan"
    again = pickle.loads(pickle.dumps(ahead))
    assert again.plan(START, END) is None
    ahead.start(END, END, [], read)
    assert ahead.plan(START, END) is None and ahead.plan(END, END) is None


def test_rows_that_were_not_used_do_not_stay_for_the_next_plan() -> None:
    ahead = RowsAhead()
    ahead.start(START, END, [small()], lambda wanted: iter(batches(1)))
    ahead.start(START, LATER, [small(9)], lambda wanted: iter(batches(2)))
    plan = ahead.plan(START, LATER)
    assert plan is not None and list(ahead.rows(plan[0]) or ()) == batches(2)


@pytest.mark.parametrize("plan", [[], [small(), small()], [small(MOST_ROWS + 2)], [small(3, MOST_BYTES // 2 + 1)]])
def test_a_plan_that_is_not_one_small_range_is_not_read(plan: list[Range[str]]) -> None:
    ahead = RowsAhead()
    ahead.start(START, END, plan, unread)
    assert ahead.plan(START, END) is None


def test_a_range_that_proves_large_is_left_to_workers() -> None:
    ahead = RowsAhead()
    ahead.start(START, END, [small()], lambda wanted: iter(batches(MOST_BYTES // 2, MOST_BYTES // 2)))
    assert ahead.plan(START, END) is None


@pytest.mark.parametrize(("timeout", "patience"), [(60.0, PATIENCE), (PATIENCE / 2, PATIENCE / 2)])
def test_a_read_ahead_gives_up_early(timeout: float, patience: float) -> None:
    assert hasty(ReadOptions(fetch_batch=7, read_timeout=timeout)) == ReadOptions(fetch_batch=7, read_timeout=patience)


def test_what_cannot_be_read_now_is_left_to_workers_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def read(wanted: Range[str]) -> Iterator[pa.RecordBatch]:
        yield from batches(1)
        raise TransportError("gone")

    ahead = RowsAhead()
    with caplog.at_level(logging.WARNING):
        ahead.start(START, END, [small()], read)
        assert ahead.plan(START, END) is None
    assert "micro_batch_left_to_workers place=S: gone" in caplog.text
    ahead.start(START, END, [small()], lambda wanted: iter(()))
    plan = ahead.plan(START, END)
    assert plan is not None and list(ahead.rows(plan[0]) or [pa.nulls(1)]) == [], "no rows are rows, too"
