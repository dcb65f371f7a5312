"""For all tests: no NATS settings of the surrounding shell reach them, and a slow machine is no failure.

Hypothesis times each example; on two cores shared with a JVM that limit says nothing about the code. What hangs is
ended by pytest's own timeout.

A test with other programs (a real server, another make's client, a JVM, kill -9) has more clocks than ours. It is run a
second time when it fails, and the summary names it: each such line is a bug to be found, in the test or in the product. No
other test is ever repeated.
"""

import gc
import os
import sys
import warnings
from collections.abc import Iterator

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from hypothesis import settings
from support.loop_watchdog import FAILS, Watchdog, make_watchdog

OTHER_PROGRAMS = ("interop", "kill", "spark")
WATCHDOG = pytest.StashKey[Watchdog]()
_failed: list[str] = []  # since the last test that ended
_left_open: list[str] = []  # after the last test of all

settings.register_profile("headwater", deadline=None, print_blob=True)
settings.register_profile("brief", settings.get_profile("headwater"), max_examples=30)  # of 100: ./hw test, interpreted
settings.load_profile("headwater")

for _name in [name for name in os.environ if name.startswith("NATS_")]:
    del os.environ[_name]


def leave_the_product_as_it_is() -> None:
    """Our fixtures are a plugin, so pytest would rewrite the assertions of the whole product as it does a plugin's.

    The tests are to import what users import. Also, Python 3.11 then parses each module anew when it is first imported,
    which fails with "AST constructor recursion depth mismatch" in a process where Spark runs. Only what the plugin imports
    itself is rewritten by now: this file is imported before the conftest.py of any folder, and those import the product
    before pytest calls any hook of this one. pytest has no public way to leave a package out. Should it change the private
    one, this raises AttributeError before the first test, and `test_no_module_of_the_product_is_rewritten_by_pytest` fails
    if it has no effect.
    """
    for hook in sys.meta_path:
        if isinstance(hook, AssertionRewritingHook):  # there is none with --assert=plain
            hook._must_rewrite -= {name for name in hook._must_rewrite if name.partition(".")[0] == "headwater"}
            hook._marked_for_rewrite_cache.clear()


leave_the_product_as_it_is()


def pytest_sessionstart(session: pytest.Session) -> None:
    watchdog = session.config.stash[WATCHDOG] = make_watchdog()
    watchdog.install()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What is still open when all tests are done is of no test that could fail for it: it is named, see the summary."""
    session.config.stash[WATCHDOG].remove()
    before = sys.unraisablehook
    sys.unraisablehook = lambda found: _left_open.append(str(found.exc_value))
    try:
        gc.collect()
    finally:
        sys.unraisablehook = before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    watchdog = item.config.stash[WATCHDOG]
    watchdog.test, before = item.nodeid, len(watchdog.stalls)
    yield
    if os.environ.get("HEADWATER_WATCHDOG") != "list" and item.get_closest_marker("busy_loop") is None:
        found = [stall for stall in watchdog.stalls[before:] if stall.seconds > FAILS * watchdog.bound]
        assert not found, "the loop was kept busy:\n" + "\n".join(map(str, found))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for what in _left_open:
        terminalreporter.line(f"left open by some test: {what}: a bug to be found")
    watchdog = config.stash[WATCHDOG]
    stalls = sorted(watchdog.stalls, key=lambda stall: -stall.seconds)
    if stalls:
        bound = f"{1e3 * watchdog.bound:.0f} ms of CPU time"
        terminalreporter.section(
            f"calls that kept an event loop busy for more than {bound} ({watchdog.calls:,} were timed)"
        )
        for stall in stalls[:20]:
            terminalreporter.line(str(stall))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(name) for name in OTHER_PROGRAMS):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.outcome not in ("passed", "skipped"):
        _failed.append(report.nodeid)


def pytest_runtest_logfinish() -> None:
    """What a failed test left open is closed here, and not blamed on the test in which it happens to be collected."""
    if _failed:
        _failed.clear()
        sys.last_type = sys.last_value = sys.last_traceback = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
