"""The runner of all tests tells a failure by chance from one that stays, and hides neither."""

import collections
from pathlib import Path

import pytest
from support import lanes

FLAKY = """
from pathlib import Path

def test_of_chance():
    mark = Path(__file__).with_suffix(".seen")
    seen = mark.exists()
    mark.touch()
    assert seen

def test_that_passes():
    with Path(__file__).with_suffix(".runs").open("a") as runs:
        runs.write("x")
"""
BROKEN = "def test_broken():\n    assert False\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with nothing but tests."""
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    monkeypatch.setattr(lanes, "STATE", tmp_path / ".hw")
    (tmp_path / ".hw").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -raR\n")
    return tmp_path


def result_of(checkout: Path, source: str) -> lanes.Result:
    (checkout / "test_it.py").write_text(source)
    lane = lanes.Lane(collections.deque([lanes.Job("it", ["test_it.py"])]))
    lane.start()
    lane.join(timeout=60)
    [result] = lane.results
    return result


def test_what_failed_by_chance_is_run_again_alone_and_named(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = result_of(checkout, FLAKY)
    assert (result.code, result.alone) == (0, ["test_it.py::test_of_chance"])
    assert (checkout / "test_it.runs").read_text() == "x"
    assert lanes.report([result]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "hw: it: test_it.py::test_of_chance failed, and passed when it was run alone: a bug to be found"


def test_what_a_good_run_skipped_is_shown(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "import pytest\n\n@pytest.mark.skip(reason='no peer')\ndef test_with_a_peer():\n    pass\n"
    assert lanes.report([result_of(checkout, source)]) == 0
    assert "no peer" in capsys.readouterr().out


def test_what_fails_again_fails_the_run(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = result_of(checkout, BROKEN)
    assert (result.code, result.alone) == (lanes.TESTS_FAILED, [])
    assert lanes.report([result]) == lanes.TESTS_FAILED
    assert capsys.readouterr().out.count("def test_broken") == 2


def test_a_run_that_ends_badly_though_no_test_failed_says_so_last(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "conftest.py").write_text("def pytest_sessionfinish(session):\n    session.exitstatus = 3\n")
    result = result_of(checkout, "def test_that_passes():\n    pass\n")
    assert lanes.report([result]) == 3
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "hw: it: FAILED: no test, but pytest ended with code 3"


def test_many_failures_are_no_chance_and_are_not_run_again(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = "\n".join(BROKEN.replace("broken", f"broken_{number}") for number in range(lanes.MOST_AGAIN + 1))
    result = result_of(checkout, many)
    assert result.code == lanes.TESTS_FAILED
    lanes.report([result])
    assert capsys.readouterr().out.count("def test_broken_0") == 1


def test_every_test_with_spark_is_in_one_part() -> None:
    parts = [part for job in lanes.spark_jobs() for part in job.arguments[2:]]
    assert len(parts) == len(set(parts)) > 10
