"""benchmarks/RESULTS.md: each benchmark has its block there, and a command that replaces one leaves the rest."""

import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from support.checkout import ROOT

BENCHMARKS = sorted(path.stem.removeprefix("bench_") for path in (ROOT / "benchmarks").glob("bench_*.py"))


@pytest.fixture(scope="module")
def record() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield import_module("record")


def page(*names: str) -> str:
    return "".join(
        f"## {name}\n\n<!-- Written by `./hw bench --record {name}`. -->\n```text\nold {name}\n```\nprose of {name}\n"
        for name in names
    )


def test_every_benchmark_has_its_block_in_the_results(record: ModuleType) -> None:
    assert sorted(record.sections(record.RESULTS.read_text())) == BENCHMARKS


def test_a_block_is_replaced_as_a_whole_and_all_else_stays(record: ModuleType) -> None:
    changed = record.replaced(page("one", "two"), "two", "new\n\\1 of it\n")
    assert changed == page("one", "two").replace("old two", "new\n\\1 of it")
    assert record.replaced(changed, "two", "old two") == page("one", "two")


@pytest.mark.parametrize("text", [page("one"), page("two", "two")])
def test_a_block_that_is_missing_or_there_twice_is_refused(record: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match=r"two: \d blocks in place of one"):
        record.replaced(text, "two", "new")


def test_a_benchmark_that_fails_leaves_its_block(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    before = record.RESULTS.read_text()
    monkeypatch.setattr(record, "OPTIONS", {"headers": ["--no-such-option"]})
    assert record.main(["headers"]) == 1
    assert "failed, and not recorded: headers" in capfd.readouterr().err
    assert record.RESULTS.read_text() == before


def test_without_names_all_are_recorded_but_the_campaigns(record: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[str] = []
    monkeypatch.setattr(record, "record", lambda name, patience: recorded.append(name))
    assert record.main([]) == 1  # each of them returned nothing
    assert sorted([*recorded, *record.CAMPAIGNS]) == BENCHMARKS


def test_an_unknown_benchmark_is_refused_before_anything_runs(
    record: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record.main(["headers", "nosuch"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("no such benchmark: nosuch; there are broker, ")


def test_a_block_names_the_speed_of_the_machine_while_the_benchmark_ran(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds = iter([20.0, 36.0, 36.0, 21.0])
    four = threading.Event()

    def sample() -> float:
        speed = next(speeds)
        if speed == 36.0 and probe.samples[-1] == 36.0:
            four.set()
            probe._over.set()
        return speed

    monkeypatch.setattr(record.machine_speed, "sample", sample)
    monkeypatch.setattr(record.machine_speed, "SECONDS_BETWEEN", 0.0)
    probe = record.machine_speed.Probe()
    with probe:
        assert four.wait(10)
    assert str(probe) == "28 ns (20-36) of CPU for an addition in Python"


class Machine:
    """A machine whose speed changes with time, and a clock that moves by each sleep alone."""

    def __init__(self, record: ModuleType, quiet_from: float) -> None:
        self.now = 0.0
        self.quiet_from = quiet_from
        self.patience = record.Patience(600.0, sample=self.sample, now=lambda: self.now, sleep=self.sleep)
        self.patience.is_quiet(22.0)

    def sample(self) -> float:
        return 22.0 if self.now >= self.quiet_from else 40.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_block_waits_until_the_machine_is_quiet(record: ModuleType) -> None:
    machine = Machine(record, quiet_from=200.0)
    assert machine.patience.await_quiet()
    assert 200.0 <= machine.now <= 230.0
    assert machine.patience.left == 600.0 - machine.now


def test_a_machine_that_is_never_quiet_is_awaited_no_longer_than_the_patience_lasts(record: ModuleType) -> None:
    machine = Machine(record, quiet_from=1e9)
    assert not machine.patience.await_quiet()
    assert 600.0 <= machine.now <= 630.0
    assert not machine.patience.await_quiet()
    assert machine.now <= 630.0


def run_at(record: ModuleType, speed: float, printed: str, failed: bool = False) -> object:
    return record.Run("commit 1", printed, [speed], f"{speed:.0f} ns", 60.0, failed)


@pytest.mark.parametrize(("first", "second", "kept"), [(40.0, 22.0, "second"), (40.0, 42.0, "first")])
def test_of_two_runs_the_one_on_the_quieter_machine_is_kept(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: float, second: float, kept: str
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path / "RESULTS.md")
    record.RESULTS.write_text(page("one"))
    runs = iter([run_at(record, first, "first"), run_at(record, second, "second")])
    monkeypatch.setattr(record, "run", lambda name: next(runs))
    assert record.record("one", Machine(record, quiet_from=0.0).patience)
    left_out = max(first, second)
    expected = (
        f"commit 1\nthe machine meanwhile: {min(first, second):.0f} ns; another run, at {left_out:.0f} ns, is left out"
    )
    assert record.RESULTS.read_text() == page("one").replace("old one", f"{expected}\n{kept}")


def test_a_second_run_that_fails_is_a_failure(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path / "RESULTS.md")
    record.RESULTS.write_text(page("one"))
    runs = iter([run_at(record, 40.0, "first"), run_at(record, 22.0, "second", failed=True)])
    monkeypatch.setattr(record, "run", lambda name: next(runs))
    assert not record.record("one", Machine(record, quiet_from=0.0).patience)
    assert record.RESULTS.read_text() == page("one")


def test_without_patience_a_block_is_taken_once_as_the_machine_is(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path / "RESULTS.md")
    record.RESULTS.write_text(page("one"))
    runs = iter([run_at(record, 40.0, "first")])
    monkeypatch.setattr(record, "run", lambda name: next(runs))
    assert record.record("one", record.Patience(0.0, sample=lambda: 22.0))
    assert "the machine meanwhile: 40 ns\nfirst" in record.RESULTS.read_text()
