"""benchmarks/bench_growth.py: what it prints is what docs/scale.md reads, and it judges by the pairs of each round."""

from importlib import import_module
from types import ModuleType

import pytest
from support.checkout import ROOT


@pytest.fixture
def growth(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module("bench_growth")


def costs(growth: ModuleType, *cpu: list[float]) -> list[object]:
    return [
        growth.Cost(each, [own / first for own, first in zip(each, cpu[0], strict=True)], 500_000, 0.25) for each in cpu
    ]


def test_what_is_printed_is_what_the_model_reads(growth: ModuleType) -> None:
    row = growth.GROWTHS["talkers"]
    found = {"headwater": costs(growth, [4.0, 5.0, 6.0], [3.0, 3.5, 9.0]), "relay": costs(growth, [1.0], [1.5])}
    printed = "\n".join(growth.show(row, (100, 10_000), found))
    read = import_module("scale_model").costs(printed)
    assert (read["talker"], read["login"]) == (3.5, 25.0)


def test_the_goal_is_judged_by_the_median_of_pairs(growth: ModuleType) -> None:
    row = growth.GROWTHS["numbered"]
    steady = {
        "headwater": costs(growth, [1.0, 2.0, 3.0], [1.1, 2.4, 3.0]),
        "relay": costs(growth, [1.0, 2.0, 3.0], [5.0, 9.0, 12.0]),
    }
    assert growth.judge(row, steady).endswith("1.10x (1.00-1.20); relay 4.50x (4.00-5.00): met")
    dear = {"headwater": costs(growth, [1.0], [1.5], [1.3])}
    assert growth.judge(row, dear).endswith("1.50x (1.50-1.50); alone: MISSED")
