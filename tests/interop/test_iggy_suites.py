"""Apache Iggy's own Python, Node and Go suites against our server: only what foreign_suites.toml lists may fail.

Runs where HEADWATER_IGGY_CHECKOUT names a checkout of apache/iggy, and says so where it does not. The Python suites want
HEADWATER_IGGY_PYTHON, an interpreter with apache-iggy, pytest, pytest-asyncio, pytest-bdd and pytest-timeout; Node's wants
`npm ci` in foreign/node, Go's a Go.
"""

import os
import tomllib
from pathlib import Path

import pytest
from support.iggy_suites import run_go, run_go_scenarios, run_node, run_python, run_python_scenarios

CHECKOUT = os.environ.get("HEADWATER_IGGY_CHECKOUT", "")
PYTHON = os.environ.get("HEADWATER_IGGY_PYTHON", "")

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(1900),
    pytest.mark.skipif(
        not CHECKOUT, reason="HEADWATER_IGGY_CHECKOUT names no checkout of apache/iggy: its suites were not run"
    ),
]


def judge(suite: str, results: dict[str, bool]) -> None:
    listed = tomllib.loads(Path(__file__).with_name("foreign_suites.toml").read_text())[suite]
    allowed = {name for group in listed.get("fails", []) for name in group["tests"]}
    assert len(results) >= listed["at_least"], f"only {len(results)} tests of {suite} ran"
    failed = {name for name, passed in results.items() if not passed}
    assert sorted(failed - allowed) == [], f"of {len(results)} tests of {suite}"


@pytest.mark.skipif(not PYTHON, reason="HEADWATER_IGGY_PYTHON names no Python with apache-iggy")
def test_pythons_suite_finds_what_it_expects(tmp_path: Path) -> None:
    judge("iggy-python", run_python(Path(CHECKOUT), PYTHON, tmp_path))


def test_nodes_suite_finds_what_it_expects(tmp_path: Path) -> None:
    judge("iggy-node", run_node(Path(CHECKOUT), tmp_path))


def test_gos_suite_finds_what_it_expects(tmp_path: Path) -> None:
    judge("iggy-go", run_go(Path(CHECKOUT), tmp_path))


def test_gos_scenarios_hold(tmp_path: Path) -> None:
    judge("iggy-go-scenarios", run_go_scenarios(Path(CHECKOUT), tmp_path))


@pytest.mark.skipif(not PYTHON, reason="HEADWATER_IGGY_PYTHON names no Python with apache-iggy")
def test_pythons_scenarios_hold(tmp_path: Path) -> None:
    judge("iggy-python-scenarios", run_python_scenarios(Path(CHECKOUT), PYTHON, tmp_path))
