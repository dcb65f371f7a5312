"""For all tests: no NATS settings of the surrounding shell reach them, and a slow machine is no failure.

Hypothesis times each example; on two cores shared with a JVM that limit says nothing about the code. What hangs is
ended by pytest's own timeout.

A test with other programs (a real server, somebody's client, a JVM, kill -9) has more clocks than ours. It is run a second
time when it fails, and the summary names it: each such line is a bug to be found, in the test or in the product. No
other test is ever repeated.
"""

import gc
import os
import sys
import warnings

import pytest
from hypothesis import settings

OTHER_PROGRAMS = ("interop", "kill", "spark")
_failed: list[str] = []  # since the last test that ended

settings.register_profile("headwater", deadline=None, print_blob=True)
settings.register_profile("brief", settings.get_profile("headwater"), max_examples=30)  # of 100: ./hw test, interpreted
settings.load_profile("headwater")

for _name in [name for name in os.environ if name.startswith("NATS_")]:
    del os.environ[_name]


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
