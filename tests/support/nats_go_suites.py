"""Runs nats.go's three integration suites with our broker in the place of `nats-server`."""

import asyncio
import re
import subprocess
from collections.abc import Collection
from pathlib import Path

from support.nats_go_tester import serving_tests

NATS_GO_SUITES = {"test": "test", "jetstream": "jetstream/test", "micro": "micro/test"}
SUITE_TIMEOUT = 1800  # seconds; the largest took twelve minutes on two busy cores
TEST_TIMEOUT = 120
_STARTED = re.compile(r"^=== RUN +(Test\w+)$", re.MULTILINE)
_RESULT = re.compile(r"^--- (PASS|FAIL|SKIP): (\w+) ", re.MULTILINE)


def run_nats_go(checkout: Path, suite: str, env: dict[str, str], directory: Path) -> dict[str, bool]:
    """Each test of a folder, and whether it passed, without the skipped ones. What did not pass is run alone once more."""
    folder, program = checkout / NATS_GO_SUITES[suite], directory / "suite"
    flags = [f"-modfile={checkout / 'go_test.mod'}", "-tags=internal_testing,skip_no_race_tests", "-vet=off"]
    subprocess.run(["go", "test", *flags, "-c", "-o", str(program), "."], cwd=folder, check=True, capture_output=True)

    async def main() -> dict[str, bool]:
        async with serving_tests(directory / "servers", env) as url:
            return await asyncio.to_thread(_all_tests, program, folder, env | {"TESTER_NATS_URL": url})

    return asyncio.run(main())


def _all_tests(program: Path, folder: Path, env: dict[str, str]) -> dict[str, bool]:
    listed = subprocess.run([program, "-test.list", "."], cwd=folder, env=env, capture_output=True, check=True)
    left = [name for name in listed.stdout.decode().split() if name.startswith("Test")]
    results: dict[str, str] = {}
    while left:  # a panic takes those along that would have come after it
        found = _run(program, folder, env, left, SUITE_TIMEOUT)
        if not found:
            break
        results |= found
        left = [name for name in left if name not in results]
    for name in [name for name, verdict in results.items() if verdict == "FAIL"]:
        results |= _run(program, folder, env, [name], TEST_TIMEOUT)
    return {name: verdict == "PASS" for name, verdict in results.items() if verdict != "SKIP"}


def _run(program: Path, folder: Path, env: dict[str, str], names: Collection[str], limit: int) -> dict[str, str]:
    """The verdict of each that began: PASS, FAIL or SKIP. One that ended with its program failed."""
    command = [str(program), "-test.v", f"-test.timeout={limit}s", "-test.run", f"^({'|'.join(names)})$"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
    text = done.stdout.decode(errors="replace")
    return dict.fromkeys(_STARTED.findall(text), "FAIL") | {name: verdict for verdict, name in _RESULT.findall(text)}
