"""The Iggy face under the released client: sends and polls, in megabytes and messages per second, and their cost.

    ./hw bench iggy [--smoke] [--batches N] [--rounds N] [--memory MESSAGES]

apache-iggy 0.9.0 in its own process, one connection, one batch in flight, as in `iggy-bench`; the server in another
process. A client requests nothing while it decodes, so one client needs a core of its own to read 1 GB/s: the rows `x2`
have two clients, each with its own stream. Payloads have 100 and 1000 bytes, batches 1000 messages. `sync` is the default
(an answer means on disk), `unsynced` the default of Iggy's own server. Only payload bytes are counted.

With HEADWATER_IGGY_SERVER, the path of a real iggy-server (build it in release mode), `real` and `real synced` are that one:
with its defaults (it answers from memory), and with topics that fsync every batch before the answer (`enforce_fsync`,
`messages_required_to_save` 1). `unsynced` is compared with `real`, `sync` with `real synced`. The kinds alternate, round by
round and a pair one right after the other, so that other load on the machine affects all; a figure is the median of the
rounds, beside the lowest and the highest. A goal is judged by the median of the rounds' ratios, because single rounds of one
server differ by a fifth.

Three bounds from the same run are printed, too: the raw copy, a loopback socket between two processes with reads and writes
of a batch's size, and the raw write of the same into a new file, which are limits of the machine; and `canned`, this client
against a server that does nothing (`canned_iggy`), which is the limit of the client. Streams and topics are created by our
own client, because servers of other versions refuse the released client's create_topic.

CPU is the server process's user and system time per gigabyte of payload, for sending and for polling. Memory is what a
server process has resident (VmRSS) when it is idle with so many messages of 100 bytes in one topic, which it was sent one
batch at a time; the page cache is not in it.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import headwater
from headwater.iggy_client.client import connect
from headwater.iggy_client.values import TopicOptions
from headwater.iggy_wire.commands import Message
from headwater.testing.ports import free_port

PER_BATCH: Final = 1000
LARGEST: Final = 1000  # bytes of a message
MEGABYTE: Final = 1e6
CLIENT, SERVER, RAW = "--client", "--server", "--raw"
CANNED: Final = Path(__file__).with_name("canned_iggy.py")
REAL: Final = "HEADWATER_IGGY_SERVER"
SYNCED: Final = TopicOptions(messages_required_to_save=1, more={"enforce_fsync": "true"})
PEERS: Final = {"unsynced": "real", "sync": "real synced"}
PHASES: Final = ("send", "poll")
Figures = dict[str, dict[str, float]]
"""By phase: MB/s, messages per second, CPU seconds per gigabyte of both sides."""


# ── the client process ──


def turns_of(size: int) -> int:
    """How often the batches of a phase are sent, so that every row moves as many bytes: 20 MB are gone in 0.1 s."""
    return max(1, LARGEST // size)


async def make_topics(port: int, names: Sequence[str], options: TopicOptions | None = None) -> None:
    async with await connect(f"iggy://iggy:iggy@127.0.0.1:{port}") as client:
        for name in names:
            await client.create_stream(name)
            await client.create_topic(name, name, options=options or b"")


async def fill(port: int, messages: int) -> None:
    """Send so many messages of 100 bytes to one topic, and read its end."""
    batch = [Message(bytes(100))] * PER_BATCH
    async with await connect(f"iggy://iggy:iggy@127.0.0.1:{port}") as client:
        for _ in range(messages // PER_BATCH):
            await client.send("memory", "memory", batch, 0)
        found = await client.topic("memory", "memory")
        assert found is not None and found.messages == messages, found


async def run_client(port: int, name: str, size: int, batches: int) -> None:
    """Run one phase for each line on standard input: build, send, poll; print a line of JSON when it is done."""
    from apache_iggy import Consumer, IggyClient, PollingStrategy, SendMessage

    client = IggyClient.from_connection_string(f"iggy://iggy:iggy@127.0.0.1:{port}")
    await client.connect()
    payload = b"x" * size
    ready = [[SendMessage(payload) for _ in range(PER_BATCH)] for _ in range(batches)]
    turns = turns_of(size)

    async def send() -> None:
        for _ in range(turns):
            for batch in ready:
                await client.send_messages(name, name, 0, batch)

    async def poll() -> None:
        got, consumer = 0, Consumer.Single(1)
        while got < turns * batches * PER_BATCH:
            start = PollingStrategy.Offset(got)
            got += len(
                await client.poll_messages(
                    name,
                    name,
                    consumer=consumer,
                    polling_strategy=start,
                    count=PER_BATCH,
                    auto_commit=False,
                    partition_id=0,
                )
            )

    print(json.dumps({}), flush=True)
    for phase in (send, poll):
        sys.stdin.readline()
        cpu, began = time.process_time(), time.perf_counter()
        await phase()
        print(json.dumps([time.perf_counter() - began, time.process_time() - cpu]), flush=True)


# ── the server processes ──


async def run_server(sync: str, directory: str) -> None:
    from headwater.iggy.face import Iggy, IggyOptions
    from headwater.iggy.service_options import ServiceOptions

    options = IggyOptions(tcp=("127.0.0.1", 0), service=ServiceOptions(sync=sync))  # type: ignore[arg-type]
    async with Iggy(options, Path(directory)) as iggy:
        loop = asyncio.get_running_loop()
        print(iggy.tcp_port, flush=True)
        await loop.run_in_executor(None, sys.stdin.readline)


class Server:
    """A server process that prints its port; `cpu` returns the CPU time that it has used."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    def stop(self) -> None:
        self.process.communicate("\n", timeout=20)


class RealServer:
    """Apache's own server, with a data folder of its own."""

    def __init__(self, program: str, directory: str) -> None:
        self.port = free_port()
        settings = {
            "IGGY_SYSTEM_PATH": directory,
            "IGGY_TCP_ADDRESS": f"127.0.0.1:{self.port}",
            "IGGY_HTTP_ENABLED": "false",
            "IGGY_QUIC_ENABLED": "false",
            "IGGY_WEBSOCKET_ENABLED": "false",
            "IGGY_ROOT_USERNAME": "iggy",
            "IGGY_ROOT_PASSWORD": "iggy",
            "IGGY_SYSTEM_SHARDING_CPU_ALLOCATION": "1",
        }
        self.process = subprocess.Popen(
            [program], env=os.environ | settings, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(200):
            time.sleep(0.1)
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                continue
            return
        raise SystemExit(f"{program} does not listen")

    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


def resident(pid: int) -> float:
    """MB that a process has resident."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far (proc(5): fields 14 and 15, in clock ticks)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ── the raw copy ──


def raw_receiver(total: int, chunk: int) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    link, _ = listening.accept()
    buffer, got = bytearray(chunk), 0
    while got < total:
        got += link.recv_into(buffer)
    link.sendall(b".")
    link.close()
    listening.close()


def raw_copy(total: int, chunk: int) -> float:
    """MB/s from one process to another over loopback."""
    command = [sys.executable, __file__, RAW, str(total), str(chunk)]
    receiver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    port, payload = int(receiver.stdout.readline()), bytes(chunk)
    with socket.create_connection(("127.0.0.1", port)) as link:
        began = time.perf_counter()
        for _ in range(total // chunk):
            link.sendall(payload)
        link.recv(1)
        seconds = time.perf_counter() - began
    receiver.communicate(timeout=20)
    return total / seconds / MEGABYTE


def raw_write(total: int, chunk: int, directory: str) -> float:
    """MB/s into the page cache, writing a new file."""
    payload, path = os.urandom(chunk), Path(directory) / "raw"
    with path.open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(total // chunk):
            file.write(payload)
        return total / (time.perf_counter() - began) / MEGABYTE


# ── the comparison ──


class LoadClient:
    """A process that executes `run_client`."""

    def __init__(self, port: int, name: str, size: int, batches: int) -> None:
        command = [sys.executable, __file__, CLIENT, str(port), name, str(size), str(batches)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


def measure(
    server: Server | RealServer, size: int, batches: int, clients: int, options: TopicOptions | None
) -> Figures:
    """One round."""
    names = [f"bench-{number}" for number in range(clients)]
    asyncio.run(make_topics(server.port, names, options))
    loads = [LoadClient(server.port, name, size, batches) for name in names]
    found = {}
    messages = clients * turns_of(size) * batches * PER_BATCH
    gigabytes = messages * size / 1e9
    for phase in PHASES:
        before = server.cpu()
        for load in loads:
            load.go()
        answers = [load.answer() for load in loads]
        seconds = max(answer[0] for answer in answers)
        found[phase] = {
            "MB/s": gigabytes * 1e3 / seconds,
            "msg/s": messages / seconds,
            "server": (server.cpu() - before) / gigabytes,
            "client": sum(answer[1] for answer in answers) / gigabytes,
        }
    for load in loads:
        load.process.communicate(timeout=20)
    server.stop()
    return found


def start(kind: str, directory: str) -> Server | RealServer:
    match kind:
        case "canned":
            return Server(sys.executable, str(CANNED), str(PER_BATCH))
        case "real" | "real synced":
            return RealServer(os.environ[REAL], directory)
        case _:
            return Server(sys.executable, __file__, SERVER, "always" if kind == "sync" else "never", directory)


def options_of(kind: str) -> TopicOptions | None:
    return SYNCED if kind == "real synced" else None


def rounds_of(kinds: Sequence[str], size: int, clients: int, batches: int, rounds: int) -> dict[str, list[Figures]]:
    """What the rounds found, by kind. Every other round goes through the kinds backwards."""
    taken: dict[str, list[Figures]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            with tempfile.TemporaryDirectory() as directory:
                taken[kind].append(measure(start(kind, directory), size, batches, clients, options_of(kind)))
    return taken


def medians(rounds: Sequence[Figures]) -> Figures:
    return {
        phase: {name: statistics.median(found[phase][name] for found in rounds) for name in rounds[0][phase]}
        for phase in rounds[0]
    }


def show(kind: str, size: int, rounds: Sequence[Figures]) -> None:
    text = f"{size:5} B x {PER_BATCH} {kind:14}"
    for phase, found in medians(rounds).items():
        speeds = [one[phase]["MB/s"] for one in rounds]
        span = f"({min(speeds):.0f}-{max(speeds):.0f})"
        text += f"  {phase} {found['MB/s']:6.0f} {span:11} MB/s {found['msg/s']:9.0f} msg/s"
        text += f" (CPU s/GB: server {found['server']:.2f}, client {found['client']:.2f})"
    print(text, flush=True)


def memory(kind: str, messages: int) -> None:
    """Print what a server has resident with so many messages."""
    with tempfile.TemporaryDirectory() as directory:
        server = start(kind, directory)
        asyncio.run(make_topics(server.port, ["memory"], options_of(kind)))
        empty = resident(server.process.pid)
        asyncio.run(fill(server.port, messages))
        print(
            f"memory {kind:14} {empty:6.0f} MB empty, {resident(server.process.pid):6.0f} MB with {messages:,} messages"
        )
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true", help="small, for CI: shows that it runs")
    parser.add_argument(
        "--batches", type=int, default=200, help="batches of 1000 in each phase; of small messages several times"
    )
    parser.add_argument("--rounds", type=int, default=9, help="of each kind of server")
    parser.add_argument("--memory", type=int, default=10_000_000, help="messages for the rows of memory")
    arguments = parser.parse_args()
    if not headwater.__compiled__ and not arguments.smoke:
        sys.exit("the hot modules are not compiled: numbers would mislead; run it by ./hw bench")
    batches, rounds, messages = arguments.batches, arguments.rounds, arguments.memory
    if arguments.smoke:
        batches, rounds, messages = 5, 1, 5000
    chunk = PER_BATCH * 1000
    raw = raw_copy((20 if arguments.smoke else 600) * chunk, chunk)
    with tempfile.TemporaryDirectory() as directory:
        written = raw_write(batches * chunk, chunk, directory)
    print(
        f"{chunk} bytes at a time: raw loopback copy {raw:.0f} MB/s, raw write to a file {written:.0f} MB/s", flush=True
    )
    peers = list(PEERS.values()) if os.environ.get(REAL) else []
    kinds = ["canned", *(one for own, other in PEERS.items() for one in ((own, other) if peers else (own,)))]
    for size, clients in ((1000, 1), (1000, 2), (100, 1)):
        rows = rounds_of(kinds, size, clients, batches, rounds)
        several = f" x{clients}" if clients > 1 else ""
        for kind, row in rows.items():
            show(kind + several, size, row)
        if peers:
            compare(rows)
        if size == PER_BATCH:
            judge(rows, raw)
    for kind in (*PEERS, *peers):
        memory(kind, messages)


def compare(rows: Mapping[str, Sequence[Figures]]) -> None:
    """Print our throughput divided by theirs, and their server's CPU divided by ours: above 1 ours is better."""
    for own, other in PEERS.items():
        for phase in PHASES:
            pairs = zip(rows[own], rows[other], strict=True)
            ratios = [ours[phase]["MB/s"] / theirs[phase]["MB/s"] for ours, theirs in pairs]
            speed = statistics.median(ratios)
            span = f"({min(ratios):.2f}-{max(ratios):.2f})"
            used, theirs_used = (medians(rows[kind])[phase]["server"] for kind in (own, other))
            cost = f"{theirs_used / used:.2f} x" if used else "not measured"
            verdict = "reached" if speed >= 1 else "MISSED"
            print(f"      {phase} {own} against {other}: {speed:.2f} x {span}, server's CPU {cost}; goal 1: {verdict}")


def judge(rounds: Mapping[str, Sequence[Figures]], raw: float) -> None:
    """Print the goals, and the results relative to the client's limit."""
    rows = {kind: medians(found) for kind, found in rounds.items()}
    for phase, aim in (("send", 250), ("poll", 1000)):
        wanted = f"wanted are {min(aim, raw / 2):.0f} (the lower of {aim} and half the raw copy)"
        got, most = rows["unsynced"][phase]["MB/s"], rows["canned"][phase]["MB/s"]
        print(f"      {phase}: {got:.0f} MB/s, {got / most:.0%} of what the client can; {wanted}", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--client", port, name, size, batches]:
            asyncio.run(run_client(int(port), name, int(size), int(batches)))
            os._exit(0)  # the released client sometimes aborts in its own clean-up
        case ["--server", sync, directory]:
            from headwater.server.heap_limits import limit_heaps
            from headwater.serving.event_loop import loop_factory

            limit_heaps()  # as `serve` does
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(run_server(sync, directory))
        case ["--raw", total, chunk]:
            raw_receiver(int(total), int(chunk))
        case _:
            main()
