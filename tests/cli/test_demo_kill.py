"""The main job survives kill -9: broker, publisher and Spark are killed at random moments, run again, and every event
comes out once.

HEADWATER_KILLS (default 3: each once, in any order) is the number of kills, HEADWATER_KILL_EVENTS a file of events and
HEADWATER_KILL_SEED the seed; the full run of the issue is 20 kills over 14,913 commits:

    HEADWATER_KILLS=20 HEADWATER_KILL_EVENTS=../shared/data/commits.jsonl.gz ./hw test tests/cli/test_demo_kill.py
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from headwater.cli.demo_events import EventLines, read_lines

KILLS = int(os.environ.get("HEADWATER_KILLS", "3"))
SEED = int(os.environ.get("HEADWATER_KILL_SEED", str(random.SystemRandom().getrandbits(32))))
STEP_SECONDS = 300  # one step, undisturbed, on a slow and busy machine
ROLES = ("broker", "publish", "tables")


def write_events(path: Path, count: int) -> Path:
    """Made-up commits, a few of each month, with repeated text and characters beyond ASCII."""
    with path.open("w") as file:
        for number in range(count):
            commit = {
                "repo": f"made/up-{number % 3}",
                "sha": f"{number:040x}",
                "committed_at": f"20{10 + number % 15}-0{1 + number % 9}-1{number % 9}T05:55:00Z",
                "author": f"a{number % 17}",
                "subject": f"change № {number}",
                "files": [{"path": "a/b", "added": number % 7, "deleted": number % 5}],
            }
            file.write(json.dumps(commit) + "\n")
    return path


@dataclass(slots=True)
class Demo:
    """The three processes of the demo over one directory, each started, killed and started again by name."""

    directory: Path
    events: Path
    port: int
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def command(self, role: str) -> list[str]:
        base = [sys.executable, "-m", "headwater"]
        if role == "broker":
            return [
                *base,
                "serve",
                "-a",
                "127.0.0.1",
                "-p",
                str(self.port),
                "-js",
                "-sd",
                str(self.directory / "streams"),
            ]
        where = [
            "--server",
            f"nats://127.0.0.1:{self.port}",
            "--dir",
            str(self.directory),
            "--events",
            str(self.events),
        ]
        return [*base, "demo", "--step", role, *where]

    def start(self, role: str) -> "subprocess.Popen[bytes]":
        with (self.directory / f"{role}.log").open("ab") as log:
            self.running[role] = subprocess.Popen(self.command(role), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if role == "broker":
            wait_for_port(self.port)
        return self.running[role]

    def is_running(self, role: str) -> bool:
        return role in self.running and self.running[role].poll() is None

    def kill(self, role: str, rng: random.Random) -> None:
        """kill -9; of Spark either the driver or, as often, the JVM or a worker below it."""
        process = self.running[role]
        victims = [process.pid]
        if role == "tables":
            victims += [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        os.kill(rng.choice([process.pid, *victims]), signal.SIGKILL)

    def log(self, role: str) -> str:
        path = self.directory / f"{role}.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def stop(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
                process.kill()
            process.wait(30)


def wait_for_port(port: int) -> None:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no broker on port {port}")


@contextmanager
def demo_processes(directory: Path, events: Path) -> Iterator[Demo]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    demo = Demo(directory, events, port)
    try:
        yield demo
    finally:
        demo.stop()


def kill_at_random_moments(demo: Demo, rng: random.Random) -> list[str]:
    """Keep the three running, and kill one at a time, each as often as the others; returns who was killed."""
    killed: list[str] = []
    left: list[str] = []
    while len(killed) < KILLS:
        for role in ROLES:
            if not demo.is_running(role):
                demo.start(role)
        if not left:
            left = rng.sample(ROLES, len(ROLES))
        role = left[-1]
        # Spark takes seconds to start; the others do most of their work within one.
        moment = time.monotonic() + (rng.uniform(0, 12) if role == "tables" else rng.uniform(0, 8))
        while time.monotonic() < moment and demo.is_running(role):
            time.sleep(0.01)
        if demo.is_running(role):
            demo.kill(role, rng)
            killed.append(left.pop())
            if role == "broker":
                demo.running[role].wait(30)
    return killed


def finish(demo: Demo) -> None:
    """Let everything end, then run each step once more, undisturbed."""
    if not demo.is_running("broker"):
        demo.start("broker")
    for role in ("publish", "tables"):
        if role in demo.running:
            demo.running[role].wait(STEP_SECONDS)
        assert demo.start(role).wait(STEP_SECONDS) == 0, demo.log(role)


@pytest.mark.kill
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_event_comes_out_once_whatever_was_killed_when(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    given = os.environ.get("HEADWATER_KILL_EVENTS")
    events = Path(given).resolve() if given else write_events(tmp_path / "events.jsonl", 5000)
    expected = {(event.source, event.id) for _, event in EventLines(events.name).events(read_lines(events))}
    with demo_processes(tmp_path, events) as demo:
        killed = kill_at_random_moments(demo, rng)
        finish(demo)
        logs = "\n".join(demo.log(role) for role in ROLES)
    reported = f"seed {SEED}, killed {killed}\n{logs}"
    bronze = pq.read_table(tmp_path / "tables" / "bronze", columns=["seq"]).column("seq").to_pylist()
    silver = pq.read_table(tmp_path / "tables" / "silver", columns=["source", "id"])
    found = list(zip(silver.column("source").to_pylist(), silver.column("id").to_pylist(), strict=True))
    assert sorted(bronze) == list(range(1, len(expected) + 1)), reported
    assert len(found) == len(expected), reported
    assert set(found) == expected, reported
    rejected = tmp_path / "tables" / "rejects"
    assert not rejected.exists() or pq.read_table(rejected).num_rows == 0, reported
