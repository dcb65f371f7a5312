"""Released Iggy clients that cannot share an environment, each in a folder of its own under `build/`.

A client is installed on first use from its hash-pinned file in `requirements/`, by pip, without its dependencies (there
are none). Where there is no network and no copy yet, or no wheel for this machine, the test skips and says so; with
HEADWATER_REQUIRE_PEERS set it fails, for a CI that is to run them all, but not for a pre-release, which may be withdrawn any
day. A wheel with a wrong hash is always a failure. The client of today is in the environment itself, where it has a wheel.
"""

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.checkout import ROOT

PROGRAM = Path(__file__).parent / "iggy_peer_program.py"
MANAGEMENT = Path(__file__).parent / "iggy_management_program.py"
INSTALL_SECONDS = 120
REQUIRE = "HEADWATER_REQUIRE_PEERS"
WRONG_HASH = "DO NOT MATCH THE HASHES"

with_released_client = pytest.mark.skipif(
    find_spec("apache_iggy") is None and not os.environ.get(REQUIRE),
    reason="apache-iggy 0.9.0 is not installed: it has no wheel for Python 3.14 and later, nor for other systems than Linux",
)


def installed(name: str, version: str) -> Path:
    """The folder to put on the path for this client."""
    folder = ROOT / "build" / "peers" / f"{name}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "installed"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            pins = ROOT / "requirements" / f"peer-{name}-{version}.txt"
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command += ["--only-binary", ":all:", "--require-hashes", "--target", str(folder), "-r", str(pins)]
            answer = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
            if answer.returncode != 0:
                reason = (answer.stderr.strip().splitlines() or ["pip failed"])[-1]
                required = os.environ.get(REQUIRE) and "dev" not in version
                give_up = pytest.fail if required or WRONG_HASH in answer.stderr else pytest.skip
                give_up(f"{name} {version} cannot be installed here: {reason}")
            done.touch()
    return folder


async def talk(folder: Path | None, package: str, address: str, first_partition: int, prefix: str) -> dict[str, Any]:
    """The steps of a client's conversation by name: what each gave, or `error: ...`; of equal names the last."""
    environment = dict(os.environ)
    if folder is not None:
        environment["PYTHONPATH"] = str(folder)
    return await _steps([str(PROGRAM), package, address, str(first_partition), prefix], environment)


async def manage(transport: str, address: str, folder: Path | None = None) -> dict[str, Any]:
    """As `talk`, of what a client asks beside messages, today's or that of `folder`; over `tcp`, `http`, `ws` or `quic`."""
    paths = [*([str(folder)] if folder is not None else []), str(MANAGEMENT.parents[1]), *filter(None, sys.path)]
    return await _steps([str(MANAGEMENT), transport, address], {**os.environ, "PYTHONPATH": os.pathsep.join(paths)})


async def _steps(arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    steps: dict[str, Any] = {}
    for line in output.decode().splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            steps[entry["step"]] = f"error: {entry['error']}" if "error" in entry else entry["value"]
    assert steps, output.decode()
    return steps
