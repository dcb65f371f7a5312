"""A planner process that ends because its query did says nothing; one that fails says why."""

import sys
from types import SimpleNamespace

import pytest

from headwater.spark.quiet_end import RUNNER, end_quietly


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("spec", [None, SimpleNamespace(name="pytest.__main__")])
def test_a_process_that_is_not_sparks_planner_keeps_its_hook(
    monkeypatch: pytest.MonkeyPatch, spec: SimpleNamespace | None
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    assert not end_quietly()
    assert sys.excepthook is sys.__excepthook__


@pytest.mark.usefixtures("hook")
def test_in_a_planner_only_a_broken_pipe_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=RUNNER))
    assert end_quietly()
    for error in (BrokenPipeError("nobody there"), ValueError("a real failure")):
        sys.excepthook(type(error), error, None)
    assert capsys.readouterr().err == "ValueError: a real failure\n"
