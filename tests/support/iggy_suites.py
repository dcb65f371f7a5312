"""Runs the suites of Apache Iggy's own clients with our server in the place of theirs, and says what became of each test.

Nothing of theirs is part of this project: a checkout is named from outside. They connect to Iggy's usual ports (TCP 8090,
QUIC 8080, HTTP 3000, WebSocket 8092), which nothing else may use meanwhile.
"""

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

from support.foreign_suites import junit

from headwater.iggy.face import Iggy, IggyOptions

LIMIT = 1800.0  # seconds; Python's took two minutes on two idle cores
PORTS = {"tcp": 8090, "quic": 8080, "http": 3000, "websocket": 8092}
_NODE_RESULT = re.compile(r"^ *(not ok|ok) \d+ - (.+?)(?: # .*)?$", re.MULTILINE)
_GO_RESULT = re.compile(r"^ *--- (PASS|FAIL): (\S+)", re.MULTILINE)


def run_python(checkout: Path, python: str, directory: Path) -> dict[str, bool]:
    """`Class.test`, and whether it passed. `python` has apache-iggy, pytest, pytest-asyncio and pytest-timeout."""
    report = directory / "report.xml"
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        f"--junitxml={report}",
        "tests",
    ]
    _served(directory, command, checkout / "foreign" / "python")
    return dict(junit(report))


def run_node(checkout: Path, directory: Path) -> dict[str, bool]:
    """Each test and suite of Node's e2e folder, after `npm ci`, and whether it passed."""
    folder = checkout / "foreign" / "node"
    files = sorted(str(path.relative_to(folder)) for path in (folder / "src" / "e2e").glob("*.e2e.ts"))
    loader = ["--import", "@swc-node/register/esm-register"]
    command = ["node", *loader, "--test", "--test-force-exit", "--test-reporter=tap", *files]
    text = _served(directory, command, folder)
    return {found[2]: found[1] == "ok" for found in _NODE_RESULT.finditer(text)}


def run_go(checkout: Path, directory: Path) -> dict[str, bool]:
    """Each test of Go's e2e folder, and whether it passed; the skipped ones are left out."""
    text = _served(directory, ["go", "test", "-v", "-count=1", "./tests/..."], checkout / "foreign" / "go")
    return {found[2]: found[1] == "PASS" for found in _GO_RESULT.finditer(text)}


def run_go_scenarios(checkout: Path, directory: Path) -> dict[str, bool]:
    """Each scenario of the behaviour suite that speaks through Go's client, and whether it holds. A third of the 655 share
    their names: such a name holds if all of them do."""
    report = directory / "report.xml"
    command = ["go", "test", "-count=1", "./tests/tcp_test/...", f"-ginkgo.junit-report={report}"]
    _served(directory, command, checkout / "bdd" / "go")
    results: dict[str, bool] = {}
    for name, passed in junit(report):
        results[name] = passed and results.get(name, True)
    return results


def run_python_scenarios(checkout: Path, python: str, directory: Path) -> dict[str, bool]:
    """Each scenario that speaks through Python's client. They read their features from a folder of a container: a copy
    names the checkout's. `python` has apache-iggy, pytest, pytest-asyncio and pytest-bdd."""
    copied, report = directory / "scenarios", directory / "report.xml"
    shutil.copytree(checkout / "bdd" / "python", copied)
    for test in copied.glob("tests/test_*.py"):
        test.write_text(test.read_text().replace("/app/features", str(checkout / "bdd" / "scenarios")))
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "tests"]
    _served(directory, command, copied)
    return dict(junit(report))


def _served(directory: Path, command: list[str], folder: Path) -> str:
    """What the command says, run beside a server of ours that has nothing yet."""
    options = IggyOptions(**{name: ("127.0.0.1", port) for name, port in PORTS.items()})  # type: ignore[arg-type]
    environment = os.environ | {"IGGY_TCP_ADDRESS": f"127.0.0.1:{PORTS['tcp']}"}

    def run() -> str:
        done = subprocess.run(
            command, cwd=folder, env=environment, timeout=LIMIT, capture_output=True, text=True, check=False
        )
        return done.stdout

    async def main() -> str:
        async with Iggy(options, directory / "store"):
            return await asyncio.to_thread(run)

    return asyncio.run(main())
