"""benchmarks/RESULTS.md: each benchmark has its block there, and a command that replaces one leaves the rest."""

import threading
from collections.abc import Iterator
from importlib import import_module
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
    monkeypatch.setattr(record, "record", lambda name: recorded.append(name))
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
