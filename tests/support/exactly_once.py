"""Exactly once under kills: events from one stream into Parquet and into another stream, while processes die at random.

    PYTHONPATH=src:tests .venv/bin/python tests/support/exactly_once.py --events 500000 --server nats --directory DIR

`--server`: `nats`, the real nats-server; `headwater`, our broker; `iggy`, our broker, and the events are read as a topic of
its Iggy server.
`--table delta|iceberg --jars A,B` writes such a table in place of Parquet: docs/spark.md has the versions that go together.

Killed (SIGKILL) are, by chance: the broker, which is started again on its port and its files; an executor (a JVM of
`local-cluster`, a Python worker of `local`); and the driver with its JVM, which is started again on its checkpoints.
At the end each event must be in the Parquet table once and in the target stream once.

All of it lies in DIR, so a run may be cut by `--seconds` and goes on when it is called again (exit status 3 until done).
The real nats-server runs as it comes, which is enough here: it writes before it acknowledges, and a process is killed, not
the machine. Ours syncs as well.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from support import exactly_once_child
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.spark.offsets import StreamState
from headwater.spark.options import parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.testing.ports import free_port

FILL_WINDOW = 2_000
UNFINISHED = 3  # exit status of a run that was cut
REMEMBERED = 3600  # seconds of the target's duplicate window: longer than any pause between two calls
CHILD_SECONDS = 240.0  # without a word, after which the job hangs


@dataclass(slots=True)
class Done:
    """What a run has seen so far, kept in DIR between calls."""

    port: int = 0
    iggy_port: int = 0
    filled: bool = False
    kills: dict[str, int] = field(default_factory=dict)
    starts: int = 0
    seconds: float = 0.0


class Run:
    """One call. `victims` are weights of what is killed; `pause` the seconds between two kills, from and to."""

    def __init__(
        self,
        directory: Path,
        server: str,
        events: int,
        master: str,
        rows: int,
        seed: int,
        pause: tuple[float, float],
        table: tuple[str, str] = ("parquet", ""),
    ) -> None:
        self.directory = directory
        self.table = table
        self.kind, self.events, self.master, self.rows, self.pause = server, events, master, rows, pause
        self.chance = random.Random(seed)
        self.memory = directory / "done.json"
        directory.mkdir(parents=True, exist_ok=True)
        self.done = Done(**json.loads(self.memory.read_text())) if self.memory.exists() else Done(port=free_port())
        self.broker = self.start_broker()
        self.stopped = threading.Event()
        self.moving = threading.Event()  # the driver has written something

    def start_broker(self) -> NatsServer | HeadwaterServer:
        place = self.directory / "broker"
        if self.kind == "iggy":
            self.done.iggy_port = self.done.iggy_port or free_port()
            return start_headwater(
                place, "-js", "-sd", str(place / "js"), "--iggy", self.iggy_address, port=self.done.port
            )
        if self.kind == "headwater":
            return start_headwater(place, "-js", "-sd", str(place / "js"), port=self.done.port)
        return start_nats_server(place, port=self.done.port)

    @property
    def iggy_address(self) -> str:
        """Of the broker's Iggy server, "" without one."""
        return f"127.0.0.1:{self.done.iggy_port}" if self.kind == "iggy" else ""

    def remember(self) -> None:
        self.memory.write_text(json.dumps(asdict(self.done)))

    def go(self, seconds: float, kills: int | None = None) -> bool:
        """Work for so long, with at most so many kills; True when all is done."""
        end = time.monotonic() + seconds
        started = time.monotonic()
        try:
            if not self.done.filled:
                fill(self.broker.url, self.events)
                self.done.filled = True
                self.remember()
            while time.monotonic() < end:
                if self.one_life(end, kills):
                    return True
        finally:
            self.done.seconds += time.monotonic() - started
            self.remember()
        return False

    def one_life(self, end: float, kills: int | None) -> bool:
        """From one start of the driver to its end; True when it ended by itself, and well."""
        self.done.starts += 1
        command = [sys.executable, exactly_once_child.__file__, self.broker.url, str(self.directory)]
        log = (self.directory / "driver.log").open("ab")
        with (
            log,
            subprocess.Popen(
                [
                    *command,
                    self.master,
                    str(self.rows),
                    self.iggy_address and f"iggy://{self.iggy_address}",
                    *self.table,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            ) as driver,
        ):
            assert driver.stdout is not None
            try:
                ready = driver.stdout.readline()
                if not ready.startswith("ready "):
                    return False
                killer = threading.Thread(target=self.kill_around, args=(driver, int(ready.split()[1]), end, kills))
                killer.start()
                lines = []
                for line in driver.stdout:
                    lines.append(line)
                    if line != lines[0]:
                        self.moving.set()
                self.stopped.set()
                self.moving.clear()
                killer.join()
                self.stopped.clear()
                return driver.wait(CHILD_SECONDS) == 0 and bool(lines) and lines[-1] == "done\n"
            finally:
                end_group(driver.pid)

    def kill_around(self, driver: "subprocess.Popen[str]", jvm: int, end: float, kills: int | None) -> None:
        """Until the driver has ended: kill something, wait, kill something."""
        while driver.poll() is None:
            left = end - time.monotonic()
            if self.stopped.wait(min(self.chance.uniform(*self.pause), max(left, 0.1))):
                return
            if time.monotonic() >= end:
                end_group(driver.pid)
                return
            if not self.moving.is_set() or (kills is not None and sum(self.done.kills.values()) >= kills):
                continue
            (victim,) = self.chance.choices(("broker", "executor", "driver"), (6, 4, 1))  # a driver's start takes long
            if kills is not None:  # few kills: each kind in turn
                victim = ("broker", "executor", "driver")[sum(self.done.kills.values()) % 3]
            if self.kill(victim, driver, jvm):
                self.done.kills[victim] = self.done.kills.get(victim, 0) + 1
                self.remember()

    def kill(self, victim: str, driver: "subprocess.Popen[str]", jvm: int) -> bool:
        if victim == "broker":
            self.broker.kill()
            self.stopped.wait(self.chance.random())
            self.broker = self.start_broker()
            return True
        if victim == "driver":
            end_group(driver.pid)
            return True
        found = list(executors(jvm))
        if not found:
            return False
        self.chance.choice(found).kill()
        return True

    def verify(self) -> dict[str, object]:
        """What both sinks hold, against what went in."""
        client = BlockingClient.connect(ClientOptions(servers=[self.broker.url]))
        state = stream_state(client, "TARGET")
        client.close()
        kind, place = self.table[0], self.directory
        paths = committed_files(place / kind) if kind == "parquet" else sorted((place / "dump").glob("*.parquet"))
        files = Counter(number for path in paths for number in numbers_in(path))
        target = Counter(numbers_of(self.broker.url, state))
        wanted = range(self.events)
        return {
            "server": self.kind,
            "events": self.events,
            "table": kind,
            "table rows": files.total(),
            "table events": len(files),
            "target messages": state.messages,
            "target events": len(target),
            "exact": all(each == Counter(wanted) for each in (files, target)),
            **asdict(self.done),
        }


def executors(jvm: int) -> Iterator[psutil.Process]:
    """Executors' JVMs below a driver's, or, where there are none, its Python workers."""
    try:
        below = psutil.Process(jvm).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    commands: list[tuple[psutil.Process, str]] = []
    for process in below:
        try:
            commands.append((process, " ".join(process.cmdline())))
        except psutil.Error:
            continue
    backends = [process for process, command in commands if "CoarseGrainedExecutorBackend" in command]
    yield from backends or [process for process, command in commands if "pyspark.daemon" in command]


def end_group(pid: int) -> None:
    """Kill a process and all that it started, as far as they stayed in its session."""
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        below = []
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    for process in below:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(below, 30)


def fill(url: str, events: int) -> None:
    """SOURCE with numbered CloudEvents, and an empty TARGET."""
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    client.api("STREAM.CREATE.SOURCE", {"name": "SOURCE", "subjects": ["source"], "storage": "file"})
    window = {"duplicate_window": REMEMBERED * 10**9}
    client.api("STREAM.CREATE.TARGET", {"name": "TARGET", "subjects": ["target"], "storage": "file", **window})
    for start in range(0, events, FILL_WINDOW):
        last = min(start + FILL_WINDOW, events)
        for number in range(start, last):
            client.output.append(publication(number))
        client.flush()
        while stream_state(client, "SOURCE").end <= last:
            time.sleep(0.002)
    client.close()


def publication(number: int) -> bytes:
    block = b"NATS/1.0\r\nce-specversion: 1.0\r\nce-id: %d\r\nce-source: /once\r\nce-type: once\r\n\r\n" % number
    data = b"%d" % number
    return b"HPUB source %d %d\r\n%b%b\r\n" % (len(block), len(block) + len(data), block, data)


def committed_files(table: Path) -> list[Path]:
    """The files of a table of Spark's file sink, by its own log: others are what killed tasks left behind."""
    logs = {path.name: path for path in (table / "_spark_metadata").iterdir() if not path.name.startswith(".")}
    compacted = max((int(name.removesuffix(".compact")) for name in logs if name.endswith(".compact")), default=-1)
    wanted = [logs[f"{compacted}.compact"]] if compacted >= 0 else []
    wanted += [path for name, path in logs.items() if name.isdigit() and int(name) > compacted]
    entries = [json.loads(line) for path in wanted for line in path.read_text().splitlines()[1:]]
    return [Path(entry["path"].removeprefix("file://")) for entry in entries if entry["action"] == "add"]


def numbers_in(path: Path) -> list[int]:
    return [int(data) for data in pq.ParquetFile(path).read(["data"]).column("data").to_pylist()]


def numbers_of(url: str, state: StreamState) -> Iterator[int]:
    options = parse_options({"servers": url, "stream": state.place})
    for columns in read_range(Range(state.place, state.created, state.first, state.end), options):
        ends = columns.payloads.offsets
        for row in range(columns.rows):
            yield int(bytes(columns.payloads.data[ends[row] : ends[row + 1]]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--server", choices=("nats", "headwater", "iggy"), default="nats")
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--master", default="local-cluster[1,2,1024]")
    parser.add_argument("--rows", type=int, default=20_000, help="in a micro-batch at most")
    parser.add_argument("--pause", type=float, nargs=2, default=(5.0, 25.0), help="seconds between two kills")
    parser.add_argument("--table", choices=("parquet", "delta", "iceberg"), default="parquet", help="Spark's sink")
    parser.add_argument("--jars", default="", help="of --table, with commas between")
    parser.add_argument("--seconds", type=float, default=86_400.0, help="end after so long, to be called again")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(UNFINISHED))  # leave nothing running behind
    run = Run(
        arguments.directory,
        arguments.server,
        arguments.events,
        arguments.master,
        arguments.rows,
        arguments.seed,
        tuple(arguments.pause),
        (arguments.table, arguments.jars),
    )
    try:
        if not run.go(arguments.seconds):
            sys.stdout.write(f"not done yet, call again: {json.dumps(asdict(run.done))}\n")
            return UNFINISHED
        result = run.verify()
        sys.stdout.write(f"{json.dumps(result)}\n")
        return 0 if result["exact"] else 1
    finally:
        run.broker.stop()


if __name__ == "__main__":
    sys.exit(main())
