"""Our Iggy client beside apache-iggy 0.9: CPU per message to make, send and poll, on our server.

    ./hw bench iggy_client [--smoke] [--batches N] [--rounds N]

A process for each client, one connection, 1000 messages per batch, one request in flight. The rounds alternate, A B A B, so
that other load on the machine affects both; a figure is the median of its rounds, in nanoseconds of CPU (user and system,
all threads of the process) per message. The steps: `make` builds the message objects, with headers if the row has some;
`send` stores them (a client may encode headers in either step); `poll` fetches them and reads every payload; `read` also
reads every header. `x` is their figure divided by ours: above 1 ours uses less.

The server is another process and is not counted. It answers from memory (`--sync never`), because waiting costs no CPU.
With HEADWATER_IGGY_SERVER, the path of a real iggy-server, the rows are also measured on that one.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import headwater

BENCH_IGGY: Final = Path(__file__).with_name("bench_iggy.py")
PER_BATCH: Final = 1000
STEPS: Final = ("make", "send", "make+send", "poll", "read")
CLIENTS: Final = ("headwater", "apache-iggy")
HEADERS: Final[dict[str, str | int | bool]] = {"key 1": "value1", "count": 7, "flag": True}
ROWS: Final = ((100, False), (1000, False), (100, True))
GOALS: Final = {"send": 1.0, "make+send": 1.0, "poll": 1.5}


# ── the client processes ──

Work = dict[str, Callable[[], Awaitable[None]]]


async def ours(url: str, size: int, with_headers: bool, batches: int) -> Work:
    from headwater import TypedHeaders
    from headwater.iggy_client.client import connect
    from headwater.iggy_wire.commands import Message
    from headwater.iggy_wire.identifiers import PollingStrategy

    client = await connect(url, heartbeat=0)
    payload, got = b"x" * size, [0]
    ready: list[list[Message]] = []

    async def make() -> None:
        headers = [TypedHeaders(HEADERS) if with_headers else None for _ in range(PER_BATCH)]
        ready[:] = [[Message(payload, one) for one in headers] for _ in range(batches)]

    async def send() -> None:
        for batch in ready:
            await client.send("s", "ours", batch, 0)

    async def poll(read: bool = False) -> None:
        start = got[0]
        while got[0] < start + batches * PER_BATCH:
            found = await client.poll("s", "ours", strategy=PollingStrategy.offset(got[0]), count=PER_BATCH)
            for message in found:
                _ = message.payload
                if read and (block := message.headers) is not None:
                    block.to_python()
            got[0] += len(found)

    async def again() -> None:
        got[0] -= batches * PER_BATCH
        await poll(read=True)

    return {"make": make, "send": send, "poll": poll, "read": again}


async def theirs(url: str, size: int, with_headers: bool, batches: int) -> Work:
    from apache_iggy import Consumer, IggyClient, PollingStrategy, SendMessage

    client = IggyClient.from_connection_string(url)
    await client.connect()
    payload, got, consumer = b"x" * size, [0], Consumer.Single(1)
    ready: list[list[SendMessage]] = []
    headers: Any = HEADERS if with_headers else None

    async def make() -> None:
        ready[:] = [[SendMessage(payload, headers) for _ in range(PER_BATCH)] for _ in range(batches)]

    async def send() -> None:
        for batch in ready:
            await client.send_messages("s", "theirs", 0, batch)

    async def poll(read: bool = False) -> None:
        start = got[0]
        while got[0] < start + batches * PER_BATCH:
            found = await client.poll_messages(
                "s",
                "theirs",
                consumer=consumer,
                polling_strategy=PollingStrategy.Offset(got[0]),
                count=PER_BATCH,
                auto_commit=False,
                partition_id=0,
            )
            for message in found:
                message.payload()
                if read and (block := message.user_headers()) is not None:
                    block.to_scalar_dict()
            got[0] += len(found)

    async def again() -> None:
        got[0] -= batches * PER_BATCH
        await poll(read=True)

    return {"make": make, "send": send, "poll": poll, "read": again}


async def run_client(name: str, url: str, size: int, with_headers: bool, batches: int) -> None:
    """Run a round for each line on standard input; print a line with the CPU nanoseconds per message of its steps."""
    work = await (ours if name == CLIENTS[0] else theirs)(url, size, with_headers, batches)
    print(json.dumps({}), flush=True)
    while sys.stdin.readline().strip():
        found = {}
        for step, run in work.items():
            before = time.process_time_ns()
            await run()
            found[step] = (time.process_time_ns() - before) / (batches * PER_BATCH)
        found["make+send"] = found["make"] + found["send"]
        print(json.dumps(found), flush=True)


class Contestant:
    """A process that executes `run_client`."""

    def __init__(self, name: str, url: str, size: int, with_headers: bool, batches: int) -> None:
        arguments = ["--client", name, url, str(size), str(int(with_headers)), str(batches)]
        command = [sys.executable, __file__, *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rounds: list[dict[str, float]] = []
        self._answer()

    def _answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        answer: dict[str, float] = json.loads(self.process.stdout.readline())
        return answer

    def go(self) -> None:
        """Run one round."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.rounds.append(self._answer())

    def stop(self) -> dict[str, float]:
        """The medians; the first round is a warm-up and is left out if there are others."""
        self.process.communicate("\n", timeout=60)
        counted = self.rounds[1:] or self.rounds
        return {step: statistics.median(found[step] for found in counted) for step in STEPS}


# ── the comparison ──


async def make_topics(url: str) -> None:
    from headwater.iggy_client.client import connect

    async with await connect(url) as client:
        await client.create_stream("s")
        for topic in ("ours", "theirs"):
            await client.create_topic("s", topic)


def measure(url: str, size: int, with_headers: bool, batches: int, rounds: int) -> dict[str, dict[str, float]]:
    """The medians by client."""
    asyncio.run(make_topics(url))
    contestants = [Contestant(name, url, size, with_headers, batches) for name in CLIENTS]
    for _ in range(rounds):
        for contestant in contestants:
            contestant.go()
    return {name: contestant.stop() for name, contestant in zip(CLIENTS, contestants, strict=True)}


def show(server: str, size: int, with_headers: bool, found: dict[str, dict[str, float]]) -> None:
    what = f"{size} B{' + 3 headers' if with_headers else ''}"
    for step in STEPS:
        own, other = (found[name][step] for name in CLIENTS)
        goal = GOALS.get(step)
        verdict = "" if goal is None else f"  goal {goal:g}: {'reached' if other >= goal * own else 'MISSED'}"
        print(f"{server:6} {what:18} {step:9} {own:8.0f} {other:12.0f} {other / own:7.2f} x{verdict}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true", help="small, for CI: shows that it runs")
    parser.add_argument("--batches", type=int, default=100, help="batches of 1000 in each step of a round")
    parser.add_argument("--rounds", type=int, default=6, help="of each client; the first warms up")
    arguments = parser.parse_args()
    if not headwater.__compiled__ and not arguments.smoke:
        sys.exit("the hot modules are not compiled: numbers would mislead; run it by ./hw bench")
    sys.path.insert(0, str(BENCH_IGGY.parent))
    from bench_iggy import REAL, SERVER, RealServer, Server

    batches, rounds = (2, 1) if arguments.smoke else (arguments.batches, arguments.rounds)
    print(f"ns of CPU a message; load before: {os.getloadavg()[0]:.1f}")
    print(f"{'server':6} {'message':18} {'step':9} {CLIENTS[0]:>8} {CLIENTS[1]:>12} {'theirs/ours':>9}")
    for kind in ["ours"] + (["real"] if os.environ.get(REAL) else []):
        for size, with_headers in ROWS:
            with tempfile.TemporaryDirectory() as directory:
                server: Server | RealServer
                if kind == "real":
                    server = RealServer(os.environ[REAL], directory)
                else:
                    server = Server(sys.executable, str(BENCH_IGGY), SERVER, "never", directory)
                url = f"iggy://iggy:iggy@127.0.0.1:{server.port}"
                show(kind, size, with_headers, measure(url, size, with_headers, batches, rounds))
                server.stop()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--client", name, url, size, with_headers, batches]:
            asyncio.run(run_client(name, url, int(size), with_headers == "1", int(batches)))
            os._exit(0)  # the released client sometimes aborts in its own clean-up
        case _:
            main()
