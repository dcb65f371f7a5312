"""Batches of a run: what each took, how long, and what was left."""

from headwater.cli.run_history import MOST_BATCHES, RunHistory, batch_line
from headwater.spark_tables.run import Progress


def steps(history: RunHistory, batch: int, bronze: int, silver: int, rejects: int) -> None:
    for table, rows in (("bronze", bronze), ("silver", silver), ("rejects", rejects)):
        history.show(Progress(table, batch, rows, rows))


def test_a_batch_has_its_own_duration_and_the_backlog_after_it() -> None:
    times = iter((10.0, 12.0, 17.0))
    history = RunHistory(lambda: next(times), lambda through: 100 - through, lambda batch: {"rule": 1})
    steps(history, 0, 40, 40, 0)
    steps(history, 1, 20, 19, 1)
    first, second = history.batches
    assert (first.at, first.seconds, first.rate, first.behind, first.rules) == (2.0, 2.0, 20.0, 60, {})
    assert (second.at, second.seconds, second.rate, second.behind, second.rules) == (7.0, 5.0, 4.0, 40, {"rule": 1})


def test_a_batch_that_waited_for_messages_lasts_as_long_as_its_work() -> None:
    times = iter((0.0, 5.0, 60.0))
    history = RunHistory(lambda: next(times), lambda through: None, took=lambda: 2.0)
    history.begin()
    steps(history, 0, 10, 10, 0)
    (batch,) = history.batches
    assert (batch.at, batch.seconds, batch.rate) == (55.0, 2.0, 5.0)


def test_the_line_says_nothing_of_a_backlog_that_is_not_known() -> None:
    history = RunHistory(lambda: 0.0, lambda through: None)
    steps(history, 0, 3, 3, 0)
    assert batch_line(history.batches[0]) == "batch 0: bronze 3, silver 3, rejects 0; 0.0 s, 0 messages/s"


def test_a_run_of_months_keeps_its_last_batches() -> None:
    history = RunHistory(lambda: 0.0, lambda through: None)
    for number in range(MOST_BATCHES + 5):
        steps(history, number, 1, 1, 0)
    assert [history.batches[0].number, len(history.batches)] == [5, MOST_BATCHES]
