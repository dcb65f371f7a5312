"""A planner process that ends because its query did says nothing; one that fails says why."""

import subprocess
import sys
import traceback
from types import SimpleNamespace

import pytest

from headwater.spark_runtime.quiet_end import DAEMON, RUNNER, end_quietly, leave_quietly, show_unless_the_jvm_is_gone


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("spec", [None, SimpleNamespace(name="pytest.__main__")])
def test_a_process_that_spark_did_not_start_keeps_its_hooks(
    monkeypatch: pytest.MonkeyPatch, spec: SimpleNamespace | None
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    assert not end_quietly()
    assert not leave_quietly()
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


@pytest.mark.parametrize(("error", "shown"), [(BrokenPipeError("gone"), False), (ValueError("a fault"), True)])
def test_a_worker_of_sparks_daemon_shows_faults_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, shown: bool
) -> None:
    main = SimpleNamespace(__spec__=SimpleNamespace(name=DAEMON), traceback=traceback)
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert leave_quietly()
    assert main.traceback.print_exc is show_unless_the_jvm_is_gone
    try:
        raise error
    except (BrokenPipeError, ValueError):
        main.traceback.print_exc()
        assert "Traceback" in main.traceback.format_exc()
    assert ("Traceback" in capsys.readouterr().err) is shown


def test_our_data_sources_make_a_worker_quiet_when_they_are_imported() -> None:
    program = (
        "import sys; from types import SimpleNamespace as N\n"
        "main = sys.modules['__main__']; main.__spec__ = N(name='pyspark.daemon'); main.traceback = None\n"
        "import pyspark_nats\n"
        "print(main.traceback.print_exc.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "show_unless_the_jvm_is_gone"
