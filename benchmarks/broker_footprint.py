"""The costs of a broker other than traffic: time until it accepts, memory of idle connections, memory over a long run.

    start   from the start of the process until a client that keeps retrying gets INFO; and the CPU time of the process.
            `headwater pub` and the two of Python alone are whole processes
    idle    resident memory added by connections with one subscription each
    flat    resident memory after each of several rounds of floods, connects, subscribes and unsubscribes

Both servers, in turn. These are rows of `./hw bench broker`; its smoke form, which CI runs, only shows that they work.
"""

import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contestants import (
    Contestant,
    nats_server_command,
    read_cpu_time,
    resident_bytes,
    start_headwater,
    start_nats_server,
)
from load_generator import Spec, run_flood

from headwater.testing.ports import free_port

START_GOAL = 50.0  # ms
PUB_GOAL = 120.0  # ms of CPU
IDLE_GOAL = 16.0  # KiB per connection
FLAT_GOAL = 1.05  # last round's memory by that at half time, when bounded tables are full (subjects: 2 MiB)
GIVE_UP = 30.0  # seconds


def greeted(port: int) -> socket.socket:
    """A connection that has received INFO; retries until the server listens."""
    end = time.monotonic() + GIVE_UP
    while True:
        try:
            link = socket.create_connection(("127.0.0.1", port), GIVE_UP)
            break
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise SystemExit(f"nobody listens on {port}") from None
            time.sleep(0.001)
    received = link.recv(4096)
    if not received.startswith(b"INFO "):
        raise SystemExit(f"greeted with {received[:80]!r}")
    return link


def greet(link: socket.socket) -> None:
    """The greeting has come, and that is all."""


def ask_jetstream(link: socket.socket) -> None:
    """Wait for the answer to a first request to JetStream."""
    link.sendall(b'CONNECT {"verbose":false}\r\nSUB i 1\r\nPUB $JS.API.INFO i 0\r\n\r\n')
    received = b""
    while b"account_info_response" not in received:
        more = link.recv(1 << 16)
        if not more:
            raise SystemExit(f"JetStream answered {received!r}")
        received += more


def time_start(command: list[str], until: Callable[[socket.socket], None] = greet) -> tuple[float, float]:
    """Milliseconds of elapsed time and of CPU, from the start of the process to INFO, and then `until` that returns."""
    port = free_port()
    begin = time.perf_counter()
    with subprocess.Popen(
        [*command, "-a", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            with greeted(port) as link:
                until(link)
                wall = time.perf_counter() - begin
                return 1e3 * wall, 1e3 * read_cpu_time(server.pid).scheduled
        finally:
            server.terminate()


def time_empty_store(command: list[str], until: Callable[[socket.socket], None] = greet) -> tuple[float, float]:
    """As `time_start`, with JetStream on a store that has no streams."""
    with tempfile.TemporaryDirectory() as directory:
        return time_start([*command, "-js", "-sd", directory], until)


def time_run(command: list[str]) -> tuple[float, float]:
    """Milliseconds of elapsed time and of CPU of a whole process."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e3 * (time.perf_counter() - begin), 1e3 * used


def measure_start(repetitions: int) -> list[str]:
    """The row `start`: servers until they greet, and what no program of ours can be faster than."""
    ours, theirs = [sys.executable, "-m", "headwater"], nats_server_command()
    found: dict[str, list[tuple[float, float]]] = {}
    with start_nats_server() as server:
        pub = [*ours, "pub", "-s", f"nats://127.0.0.1:{server.port}", "a", "x"]
        steps: dict[str, Callable[[], tuple[float, float]]] = {
            "nats-server": lambda: time_start(theirs),
            "nats-server -js": lambda: time_empty_store(theirs),
            "nats-server -js, first answer": lambda: time_empty_store(theirs, ask_jetstream),
            "headwater": lambda: time_start([*ours, "serve"]),
            "headwater -js": lambda: time_empty_store([*ours, "serve"]),
            "headwater -js, first answer": lambda: time_empty_store([*ours, "serve"], ask_jetstream),
            "headwater pub": lambda: time_run(pub),
            "python alone": lambda: time_run([sys.executable, "-c", "pass"]),
            "python, asyncio": lambda: time_run([sys.executable, "-c", "import asyncio"]),
        }
        for _ in range(repetitions):
            for name, step in steps.items():
                found.setdefault(name, []).append(step())
    lines = []
    for name, times in found.items():
        wall, cpu = (sorted(column) for column in zip(*times, strict=True))
        lines.append(
            f"start: {name}: {statistics.median(wall):.0f} ms ({wall[0]:.0f}-{wall[-1]:.0f}),"
            f" of CPU {statistics.median(cpu):.0f} ({cpu[0]:.0f}-{cpu[-1]:.0f})"
        )
    goals = {"headwater": (0, START_GOAL), "headwater -js": (0, START_GOAL), "headwater pub": (1, PUB_GOAL)}
    for name, (column, goal) in goals.items():
        reached = statistics.median(times[column] for times in found[name])
        verdict = "met" if reached <= goal else "MISSED"
        lines.append(f"start: {name}: {reached:.0f} ms{' of CPU' * column}, at most {goal:.0f}: {verdict}")
    return lines


@contextmanager
def many_files(count: int) -> Iterator[None]:
    """Allow `count` descriptors, in this process and in servers started by it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise SystemExit(f"{count} descriptors are needed, and the system allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def join(port: int, number: int) -> socket.socket:
    """A client with one subscription of its own."""
    link = greeted(port)
    link.sendall(b'CONNECT {"verbose":false}\r\nSUB idle.%d 1\r\nPING\r\n' % number)
    while not link.recv(4096).endswith(b"PONG\r\n"):
        pass
    return link


def measure_idle(count: int) -> list[str]:
    """The row `idle`."""
    lines = []
    with many_files(count + 200):
        for start in (start_nats_server, start_headwater):
            with start() as server:
                join(server.port, 0).close()
                before = resident_bytes(server.pid)
                links = [join(server.port, number) for number in range(count)]
                each = (resident_bytes(server.pid) - before) / count / 1024
                lines.append(f"idle: {server.name}: {each:.1f} KiB for each of {count} connections")
                for link in links:
                    link.close()
    return [
        *lines,
        f"idle: headwater: {each:.1f} KiB, at most {IDLE_GOAL:.0f}: {'met' if each <= IDLE_GOAL else 'MISSED'}",
    ]


def churn(server: Contestant, messages: int, connections: int) -> int:
    """One round: floods over few and many subjects, and clients that connect, subscribe, unsubscribe and leave."""
    sent = 0
    for shape in ({"varied": True}, {"subjects": 20_000}, {"publishers": 4, "subscribers": 4, "own_subjects": True}):
        outcome = run_flood(Spec(port=server.port, pid=server.pid, payload=128, messages=messages, **shape))
        sent += outcome.published
    for number in range(connections):
        number %= 100
        with join(server.port, number) as link:
            subs = b"".join(b"SUB churn.%d.%d %d\r\n" % (number, each, each + 2) for each in range(10))
            link.sendall(subs + b"PUB churn.%d.3 2\r\nhi\r\nUNSUB 3\r\nUNSUB 5 1\r\nPING\r\n" % number)
            while not link.recv(4096).endswith(b"PONG\r\n"):
                pass
    return sent


def measure_flat(rounds: int, messages: int, connections: int, *, judge: bool) -> list[str]:
    """The row `flat`. `judge`: fail when memory has grown."""
    lines = []
    starts: tuple[Callable[[], Contestant], ...] = (start_nats_server, start_headwater)
    for start in starts:
        with start() as server:
            sent, sizes = 0, []
            for _ in range(rounds):
                sent += churn(server, messages, connections)
                sizes.append(resident_bytes(server.pid) / (1 << 20))
            grown = sizes[-1] / sizes[rounds // 2 - 1]
            shown = ", ".join(f"{size:.1f}" for size in sizes)
            lines.append(
                f"flat: {server.name}: MiB after each of {rounds} rounds, {sent:,} messages and"
                f" {rounds * connections:,} connections in all: {shown} ({grown:.3f} times that after half of them)"
            )
            if judge and server.name == "headwater" and grown > FLAT_GOAL:
                raise SystemExit(f"memory grows: {lines[-1]}")
    return lines


def measure(name: str, *, smoke: bool, repetitions: int) -> list[str]:
    """The lines of one row: `start`, `idle` or `flat`."""
    if name == "start":
        return measure_start(1 if smoke else 2 * repetitions + 1)
    if name == "idle":
        return measure_idle(100 if smoke else 10_000)
    if smoke:
        return measure_flat(3, 3_000, 30, judge=False)
    return measure_flat(8, 300_000, 500, judge=True)


ROWS = ("start", "idle", "flat")
