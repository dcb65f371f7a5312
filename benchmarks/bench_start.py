"""How long a start takes on a store that a kill left: what it takes more than a start on an empty one.

    ./hw bench start [--gib 1] [--payload 1024] [--repetitions 5] [--smoke]

For each server: a stream is filled with acknowledged messages, the server is killed (SIGKILL), and started again on what
it left; the time runs from the start of the process until a client has the answer to STREAM.INFO, which must count every
acknowledged message. The same directory is started and killed `--repetitions` times, nothing is written in between. An
empty store is started as often. Page caches are warm for both.

The goal is headwater's own: GOAL seconds for 1 GiB. The smoke form shows that it works and judges nothing.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from broker_footprint import greeted
from contestants import describe_machine, nats_server_command, read_cpu_time, refuse_interpreted
from load_generator import open_link
from stream_load import ask, store

from headwater.testing.ports import free_port

GOAL = 0.5  # seconds more than on an empty store
SUBJECTS = 100
SMOKE_BYTES = 8 << 20


class Started:
    """A server on `directory`; `seconds` of elapsed time and of CPU (`cpu`) from the start of its process to the answer to
    STREAM.INFO."""

    def __init__(self, command: list[str], directory: Path, wanted: int | None) -> None:
        self.port = free_port()
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            [*command, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(directory)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with greeted(self.port):
            pass
        with open_link(self.port) as link:
            link.sendall(b"SUB _INBOX.ask 1\r\n")
            if wanted is None:
                ask(link, "$JS.API.INFO", None)
            else:
                state = ask(link, "$JS.API.STREAM.INFO.FULL", None)["state"]
                assert isinstance(state, dict)
                if state["messages"] != wanted:
                    raise SystemExit(f"{state['messages']} messages after the kill, {wanted} were acknowledged")
        self.seconds = time.perf_counter() - begin
        self.cpu = read_cpu_time(self._process.pid).scheduled

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def fill(command: list[str], directory: Path, messages: int, payload: int) -> None:
    """Store acknowledged messages in the stream FULL, then SIGKILL the server."""
    server = Started(command, directory, None)
    try:
        with open_link(server.port) as link:
            link.sendall(b"SUB _INBOX.ask 9\r\n")
            ask(link, "$JS.API.STREAM.CREATE.FULL", {"name": "FULL", "subjects": ["full.*"], "storage": "file"})
        with open_link(server.port) as link:
            body = os.urandom(payload)
            head = b"PUB full.%d _INBOX.fill %d\r\n%b\r\n"
            store(link, (head % (n % SUBJECTS, payload, body) for n in range(messages)))
    finally:
        server.kill()


def times(command: list[str], directory: Path, wanted: int | None, repetitions: int) -> tuple[list[float], float]:
    """Elapsed seconds in ascending order, and the median of CPU seconds."""
    wall, cpu = [], []
    for _ in range(repetitions):
        server = Started(command, directory, wanted)
        wall.append(server.seconds)
        cpu.append(server.cpu)
        server.kill()
    return sorted(wall), statistics.median(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--payload", type=int, default=1024)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=None, help="where the stores are made; they are removed")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--allow-interpreted", action="store_true")
    chosen = parser.parse_args()
    size = SMOKE_BYTES if chosen.smoke else int(chosen.gib * (1 << 30))
    repetitions = 1 if chosen.smoke else chosen.repetitions
    messages = size // chosen.payload
    how = refuse_interpreted(allow=chosen.allow_interpreted or chosen.smoke)
    print(f"{describe_machine()}; headwater {how}; {messages} messages of {chosen.payload} bytes")
    for name, command in (
        ("nats-server", nats_server_command()),
        ("headwater", [sys.executable, "-m", "headwater", "serve"]),
    ):
        with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
            full, empty = Path(directory) / "full", Path(directory) / "empty"
            fill(command, full, messages, chosen.payload)
            after, after_cpu = times(command, full, messages, repetitions)
            before, before_cpu = times(command, empty, None, repetitions)
            more = statistics.median(after) - statistics.median(before)
            print(
                f"start after a kill: {name}: {statistics.median(after):.2f} s ({after[0]:.2f}-{after[-1]:.2f}),"
                f" empty {statistics.median(before):.2f} s ({before[0]:.2f}-{before[-1]:.2f}), {more:+.2f} s,"
                f" of CPU {after_cpu - before_cpu:+.2f} s"
            )
    print(f"start after a kill: the goal is {GOAL} s more than empty.")


if __name__ == "__main__":
    main()
