"""benchmarks/scale_model.py: what docs/scale.md computes follows benchmarks/RESULTS.md, and stands without its blocks."""

import importlib.util
import sys
from types import ModuleType

import pytest
from support.checkout import ROOT


@pytest.fixture(scope="module")
def model() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scale_model", ROOT / "benchmarks" / "scale_model.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["scale_model"] = script  # where a NamedTuple looks for its own module
    spec.loader.exec_module(script)
    return script


GROWTH = """connections that publish in turn: server CPU us/message
  headwater          100     4.975    1.00x (1.00-1.00)      4,874 bytes    460.51 us each  ##########
  headwater       10,000     3.250    0.65x (0.61-0.70)      5,102 bytes    414.08 us each  ######
  nats-server     10,000     8.728    0.61x (0.60-0.62)     46,825 bytes    192.99 us each  ######
connections, silent: server CPU us/message
  headwater       10,000     0.078   1.22x      6,240 bytes each  ############
"""


def test_a_cost_is_read_from_our_row_of_the_largest_size(model: ModuleType) -> None:
    found = model.costs(GROWTH)
    assert (found["talker"], found["login"], found["connection"]) == (3.25, 414.08, 6240.0)


def test_a_cost_that_no_block_has_is_that_of_a_short_run(model: ModuleType) -> None:
    assert model.costs("") == {name: cost.until for name, cost in model.COSTS.items()}


def test_the_results_of_this_checkout_have_most_of_the_costs(model: ModuleType) -> None:
    results = model.RESULTS.read_text(encoding="utf-8")
    missing = {name for name, cost in model.COSTS.items() if model.measured(results, cost) is None}
    assert missing <= {"talker", "listener", "login", "crossing", "crossing, batched"}, (
        "the form of a block has changed"
    )


def test_work_that_grows_needs_more_workers_until_there_are_no_more(model: ModuleType) -> None:
    each = dict.fromkeys(model.COSTS, 1.0)
    needed = [
        model.Load("", rate, ("batched",), (), ("crossing",)).workers(each) for rate in (1e5, 6.9e5, 7.1e5, 5e6, 6e6)
    ]
    assert needed == [1, 1, 2, 14, None]


def test_what_workers_can_take_is_what_needs_them_all(model: ModuleType) -> None:
    each = model.costs("")
    for load in model.LOADS:
        for workers in (1, 5, model.CORES):
            most = load.most(each, workers)
            assert load._replace(rate=0.999 * most).workers(each) <= workers
            assert (load._replace(rate=1.001 * most).workers(each) or model.CORES + 1) > workers
