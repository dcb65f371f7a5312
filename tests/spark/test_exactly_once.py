"""Small runs of `support/exactly_once.py`: a broker and a Python worker are killed, and each event is in both sinks once.

The run over half a million events, with a cluster's executors and the driver killed as well, is that program's, by hand, as
is that of `support/killed_ranges.py`, without Spark; benchmarks/RESULTS.md says what came of them.
"""

from pathlib import Path

import pytest
from support import killed_ranges
from support.exactly_once import Run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.kill, pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.mark.parametrize("server", ["headwater"])
def test_each_event_is_in_both_sinks_once_whatever_is_killed(server: str, tmp_path: Path) -> None:
    # local[2,8]: a task may fail seven times, as on a cluster
    run = Run(tmp_path, server, 3_000, "local[2,8]", rows=400, seed=1, pause=(0.5, 1.5))
    try:
        assert run.go(600, kills=2)
        result = run.verify()
    finally:
        run.broker.stop()
    assert result["exact"], result


def test_a_range_travels_as_stored_batches_while_the_broker_is_killed(tmp_path: Path) -> None:
    outcome = killed_ranges.run(tmp_path, 20_000, kills=2, seed=1)
    assert outcome.exact, outcome
    assert outcome.kills >= 2 and outcome.interrupted >= 1 and outcome.otherwise == 0, outcome
