"""Modules that are executed when something in them is used first."""

import importlib
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest

from headwater.net.deferred_modules import before_reading, defer

SOURCE = """
import time, sys
sys.executions = getattr(sys, "executions", 0) + 1
early = 1
assert sys.modules[__name__].early == 1
time.sleep(0.01)
late = 2
def __getattr__(name):
    if name == "made":
        return 3
    raise AttributeError(name)
"""


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A deferred module that was not executed."""
    (tmp_path / "deferred_here.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "executions", 0, raising=False)
    monkeypatch.delitem(sys.modules, "deferred_here", raising=False)
    defer("deferred_here")
    monkeypatch.setitem(sys.modules, "deferred_here", sys.modules["deferred_here"])
    return "deferred_here"


def executions() -> object:
    return vars(sys)["executions"]


def test_an_import_executes_nothing_and_the_first_name_everything(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__name__, module.__file__ is not None, executions()) == (name, True, 0)
    assert (module.late, module.made, executions()) == (2, 3, 1)
    with pytest.raises(AttributeError):
        module.missing  # noqa: B018  (the access is the test)
    assert executions() == 1


def test_threads_see_the_complete_module(name: str) -> None:
    module, barrier = importlib.import_module(name), Barrier(8)
    seen: list[object] = []

    def use() -> None:
        barrier.wait()
        seen.append((module.early, module.late))

    threads = [Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (seen, executions()) == ([(1, 2)] * 8, 1)


def test_a_module_that_could_not_be_read_is_executed_by_the_next_use(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(name)
    (tmp_path / "deferred_here.py").rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError):
        module.late  # noqa: B018  (the access is the test)
    (tmp_path / "away").rename(tmp_path / "deferred_here.py")
    assert (module.late, executions()) == (2, 1)


def test_room_is_made_before_a_module_is_read_and_not_before_it_is_used(name: str) -> None:
    seen: list[object] = []
    before_reading.append(make_room := lambda: seen.append(executions()))
    try:
        module = importlib.import_module(name)
        assert not seen
        assert (module.late, module.early) == (2, 1)
        assert seen == [0]
    finally:
        before_reading.remove(make_room)


def test_what_is_imported_already_or_unknown_stays_as_it_is() -> None:
    before = sys.modules["sys"], sys.modules["pathlib"]
    defer("sys", "pathlib", "no_such_module")
    assert (sys.modules["sys"], sys.modules["pathlib"]) == before
    assert "no_such_module" not in sys.modules


def test_asyncio_and_logging_work_with_them() -> None:
    program = (
        "import sys\n"
        "from headwater.net.deferred_modules import RARELY_USED, defer\n"
        "defer(*RARELY_USED)\n"
        "import asyncio, logging\n"
        "here = [name for name in RARELY_USED if name in sys.modules]\n"
        "executed = [name for name in here if type(sys.modules[name]).__name__ != 'DeferredModule']\n"
        "at_once = {13: ['_colorize'], 14: ['inspect']}\n"  # by traceback's colours; by asyncio's dataclasses
        "assert executed == at_once.get(sys.version_info.minor, [])\n"
        "async def main():\n"
        "    try:\n"
        "        1 / 0\n"
        "    except ZeroDivisionError:\n"
        "        logging.exception('as expected')\n"
        "    await asyncio.to_thread(lambda: None)\n"
        "asyncio.run(main(), debug=True)\n"
        "from inspect import signature\n"
        "assert str(signature(lambda one: one)) == '(one)'\n"
        "import tokenize, textwrap, locale\n"
        "assert textwrap.dedent(' x') == 'x' and tokenize.open and locale.getlocale\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "ZeroDivisionError: division by zero" in done.stderr
