"""Lives of a cluster under faults: all promises are kept, and a broken one is detected."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulator.ledger import Broken
from simulator.scenario import Scenario

TESTS = Path(__file__).parents[1]
STEPS = os.environ.get("HEADWATER_SIMULATED_STEPS", "1_000_000")


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_short_life_keeps_every_promise(nodes: int) -> None:
    scenario = Scenario(20 + nodes, nodes)
    scenario.run(8_000)
    assert scenario.world.loop.steps >= 8_000


def test_a_stream_that_acknowledges_before_it_syncs_is_found_out() -> None:
    def life(seed: int) -> None:
        scenario = Scenario(seed, 1, faults=("power",))
        scenario.nodes[0].sync = "never"
        scenario.run(8_000)

    with pytest.raises(Broken):
        for seed in range(5):
            life(seed)


def test_a_life_that_does_not_end_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def judge(scenario: Scenario) -> None:
        while True:  # noqa: ASYNC110  (what hangs does not wait for an event)
            await asyncio.sleep(0.001)

    monkeypatch.setattr(Scenario, "_judge", judge)
    with pytest.raises(Broken, match="no end"):
        Scenario(7, 1, faults=()).run(1000, most_afterwards=20_000)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_million_steps_keep_every_promise() -> None:
    """For a hundred million: HEADWATER_SIMULATED_STEPS=100_000_000, or the command in `simulator/run.py`."""
    paths = [str(TESTS), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "simulator.run", "--steps", STEPS, "--life", "25_000"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
