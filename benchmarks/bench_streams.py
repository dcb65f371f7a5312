"""Publishing into a stream and reading it back, ours (every ack is on disk) against nats-server: `./hw bench streams`.

nats-server runs twice: with default settings, where an acknowledgement means "in the page cache" (it syncs every two
minutes), and with `sync_interval: always`, which promises what we promise. So does ours in the cases `acks`, `buckets` and
`operations`: "headwater, 2m" promises what nats-server does with default settings. Only equals are compared there; in the
other cases the default shows the cost of the promise. The generator is one raw socket with a fixed number of publishes in
flight; it checks that every publish was acknowledged with its own sequence, and that the stream then holds exactly that many
messages. With one in flight there are more and shorter rounds, and who comes first takes turns, too: what else happens
on the machine meets both of a pair. The case `busy` is that row beside `--beside` processes that only count.

The case `replay`: a stream of `--messages` (on `--subjects` subjects) is filled, its server's memory is read, and a pull
consumer without acks replays all of it, checked message by message for order; meanwhile another connection publishes into a
second stream, one message at a time, and its median delay is compared with that without a replay.

The case `ways`: CPU time of the ways into and out of a stream: publishes with headers and message ids, filtered consumers,
acknowledged messages. The case `buckets`: rate and CPU time of key-value and object buckets (`bucket_load.py`).

The case `packed`: `--events` JSON events into a stream with `compression: s2` and into one without: CPU, and bytes on disk.

The case `operations`: CPU time of what clients do beside (`operation_load.py`). The case `life`: how long it takes to create
streams, and to stop a server with many of them (`stream_life.py`).

The case `memory`: resident memory with `--stored` messages on `--stored-subjects` subjects in one file stream.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import NamedTuple

import bucket_load
import compressed_load
import operation_load
import stream_life
from busy_neighbours import busy_neighbours
from contestants import (
    Contestant,
    describe_machine,
    read_cpu_time,
    refuse_interpreted,
    resident_bytes,
    start_headwater,
    start_nats_server,
)
from load_generator import Failure, open_link
from stream_load import ACK, PAYLOAD, ask, fill, read_all, ways

RUN_SECONDS = 2.0
SMOKE_SECONDS = 0.1
# With one in flight a round is shorter, and there are so many for each repetition. Beside busy processes who runs when
# is chance: in rounds of 2 s a server had 0.7 to 2.9 thousand acks a second.
LONE_SECONDS = 0.5
LONE_TURNS = 4
BUSY_TURNS = 16
STREAM = "BENCH"
FOLDERS = ("ours", "ours-2m", "always", "default")  # of the four servers
GOALS = {  # ours by theirs, or theirs by ours for CPU
    "1 in flight": 1.2,
    "1 in flight, busy": 0.8,
    "replay of a stream": 2.5,
    "publish, three headers": 3.0,
    "publish, message id": 3.0,
    "pull, each acknowledged": 3.0,
}
EQUALS = {"nats-server, always": "headwater", "nats-server, default": "headwater, 2m"}  # who promises the same


class Outcome(NamedTuple):
    """One run: acknowledgements per second, the median and 99th percentile of their delay, server CPU for each."""

    rate: float
    p50: float  # microseconds
    p99: float
    cpu: float  # microseconds


def run(server: Contestant, in_flight: int, seconds: float) -> Outcome:
    """A new stream, then publishes for `seconds` with `in_flight` of them unacknowledged."""
    control, link = open_link(server.port), open_link(server.port)
    with control, link:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        ask(
            control,
            f"$JS.API.STREAM.CREATE.{STREAM}",
            {"name": STREAM, "subjects": ["bench.events"], "storage": "file"},
        )
        link.sendall(b"SUB _INBOX.bench 1\r\n")
        op = b"PUB bench.events _INBOX.bench %d\r\n%b\r\n" % (PAYLOAD, b"x" * PAYLOAD)
        before = read_cpu_time(server.pid)
        start = time.perf_counter()
        delays = publish(link, op, in_flight, start + seconds)
        elapsed = time.perf_counter() - start
        cpu = read_cpu_time(server.pid).since(before).scheduled
        info = ask(control, f"$JS.API.STREAM.INFO.{STREAM}", None)
        state = info["state"]
        if not isinstance(state, dict) or state["messages"] != len(delays):
            raise Failure(f"{len(delays)} publishes were acknowledged, the stream says {state}")
        ask(control, f"$JS.API.STREAM.DELETE.{STREAM}", None)
    delays.sort()
    p50, p99 = (1e6 * delays[int(len(delays) * part)] for part in (0.5, 0.99))
    return Outcome(len(delays) / elapsed, p50, p99, 1e6 * cpu / len(delays))


def in_turn(
    servers: Sequence[Contestant], in_flight: int, repetitions: int, seconds: float
) -> dict[str, list[Outcome]]:
    """One row: the servers take turns, those that promise the same next to each other, and each of the two first in turn."""
    row: dict[str, list[Outcome]] = {server.name: [] for server in servers}
    by_name = {server.name: server for server in servers}
    for number in range(repetitions):
        for pair in EQUALS.items():
            for name in pair if number % 2 else reversed(pair):
                row[name].append(run(by_name[name], in_flight, seconds))
    return row


def publish(link: socket.socket, op: bytes, in_flight: int, deadline: float) -> list[float]:
    """Keep `in_flight` publishes unacknowledged until the deadline, then wait for the rest. Returns the delay of each
    ack."""
    sent: deque[float] = deque()
    delays: list[float] = []
    rest = b""
    now = time.perf_counter()
    missing = in_flight
    while True:
        if now < deadline and missing:
            sent.extend([now] * missing)
            link.sendall(op * missing)
            missing = 0
        if not sent:
            return delays
        chunk = link.recv(1 << 18)
        if not chunk:
            raise Failure("the server closed the publisher's connection")
        received = rest + chunk
        now = time.perf_counter()
        end = received.rfind(b"}\r\n") + 3  # an acknowledgement is JSON on one line; the rest is incomplete
        whole, rest = (received[:end], received[end:]) if end > 2 else (b"", received)
        if b"PING\r\n" in whole or rest == b"PING\r\n":
            link.sendall(b"PONG\r\n")
            rest = b"" if rest == b"PING\r\n" else rest
        if b'"error"' in whole or b"503" in whole[:40]:
            raise Failure(f"a publish was refused: {whole[:300]!r}")
        for sequence in ACK.findall(whole):
            delays.append(now - sent.popleft())
            missing += 1
            if int(sequence) != len(delays):
                raise Failure(f"acknowledgement {len(delays)} has sequence {int(sequence)}")


class Replay(NamedTuple):
    """Filling and replaying one stream: messages per second, server CPU for each, resident MiB of the full stream, and the
    median delay in microseconds of single publishes without and during a replay."""

    rate: float
    cpu: float
    resident: float
    idle_p50: float
    busy_p50: float


def replay(server: Contestant, messages: int, subjects: int) -> Replay:
    """Fill a stream and read it back, while another connection publishes."""
    control, link, side = (open_link(server.port) for _ in range(3))
    with control, link, side:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        for name, subject in (("FULL", "full.*"), (STREAM, "bench.events")):
            ask(control, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "subjects": [subject], "storage": "file"})
        fill(link, messages, subjects)
        size = resident_bytes(server.pid) / (1 << 20)
        side.sendall(b"SUB _INBOX.bench 1\r\n")
        op = b"PUB bench.events _INBOX.bench %d\r\n%b\r\n" % (PAYLOAD, b"x" * PAYLOAD)
        idle = statistics.median(publish(side, op, 1, time.perf_counter() + 0.5))
        config = {"name": "R", "ack_policy": "none", "inactive_threshold": 60_000_000_000}
        ask(control, "$JS.API.CONSUMER.CREATE.FULL.R", {"stream_name": "FULL", "config": config})
        before = read_cpu_time(server.pid)
        start = time.perf_counter()
        read_all(link, messages)
        elapsed = time.perf_counter() - start
        cpu = read_cpu_time(server.pid).since(before).scheduled
        with ThreadPoolExecutor(1) as pool:
            again = {"stream_name": "FULL", "config": {**config, "name": "R"}}
            ask(control, "$JS.API.CONSUMER.DELETE.FULL.R", None)
            ask(control, "$JS.API.CONSUMER.CREATE.FULL.R", again)
            with open_link(server.port) as other:
                reading = pool.submit(read_all, other, messages)
                delays: list[float] = []
                while not reading.done():
                    delays += publish_more(side, op)
                reading.result()
        for name in ("FULL", STREAM):
            ask(control, f"$JS.API.STREAM.DELETE.{name}", None)
    return Replay(messages / elapsed, 1e6 * cpu / messages, size, 1e6 * idle, 1e6 * statistics.median(delays))


def store(server: Contestant, messages: int, subjects: int) -> float:
    """Resident MiB of a server that holds `messages` messages on `subjects` subjects in a file stream."""
    control, link = open_link(server.port), open_link(server.port)
    with control, link:
        control.sendall(b"SUB _INBOX.ask 1\r\n")
        config = {"name": "FULL", "subjects": ["full.*"], "storage": "file"}
        ask(control, "$JS.API.STREAM.CREATE.FULL", config)
        fill(link, messages, subjects)
        info = ask(control, "$JS.API.STREAM.INFO.FULL", None)["state"]
        if not isinstance(info, dict) or (info["messages"], info["num_subjects"]) != (
            messages,
            min(messages, subjects),
        ):
            raise Failure(f"{messages} messages were acknowledged, the stream says {info}")
        size = resident_bytes(server.pid) / (1 << 20)
        ask(control, "$JS.API.STREAM.DELETE.FULL", None)
    return size


def publish_more(link: socket.socket, op: bytes) -> list[float]:
    """One publish, and the delay of its ack."""
    start = time.perf_counter()
    link.sendall(op)
    received = b""
    while b"}\r\n" not in received:
        received += link.recv(65536)
    return [time.perf_counter() - start]


def start_servers(directory: Path, stack: ExitStack) -> list[Contestant]:
    """Ours, ours with a sync every two minutes, nats-server with `sync_interval: always` and with default settings."""
    always, seldom = directory / "always.conf", directory / "ours-2m.conf"
    always.write_text(f'jetstream {{ store_dir: "{directory / "always"}", sync_interval: always }}\n')
    seldom.write_text(f'jetstream {{ store_dir: "{directory / "ours-2m"}", sync_interval: "2m" }}\n')
    return [
        stack.enter_context(start_headwater("-js", "-sd", str(directory / "ours"))),
        stack.enter_context(start_headwater("-c", str(seldom), name="headwater, 2m")),
        stack.enter_context(start_nats_server("-c", str(always), name="nats-server, always")),
        stack.enter_context(start_nats_server("-js", "-sd", str(directory / "default"), name="nats-server, default")),
    ]


def spell(values: Sequence[float], digits: int = 0) -> str:
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low}-{high})"


def spell_half(values: Sequence[float]) -> str:
    """Between which values the middle half of them lies."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{low:.2f}-{high:.2f}"


def judged(name: str, ratios: Sequence[float]) -> str:
    """The verdict on a row that has a goal; empty for the others."""
    if (goal := GOALS.get(name)) is None:
        return ""
    return f"  goal {goal:g}x: {'met' if statistics.median(ratios) >= goal else 'MISSED'}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench streams", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="a tenth of a second each: only proves that it runs")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-interpreted", action="store_true")
    parser.add_argument("--in-flight", default="1,64,512", help="publishes unacknowledged, of the case acks")
    parser.add_argument("--beside", type=int, default=8, help="busy processes, of the case busy")
    parser.add_argument("--messages", type=int, default=1_000_000, help="of the replay")
    parser.add_argument("--subjects", type=int, default=1000, help="of the replay")
    parser.add_argument("--stored", type=int, default=1_000_000, help="messages of the memory case")
    parser.add_argument("--stored-subjects", type=int, default=100_000)
    parser.add_argument(
        "--cases", default="acks,busy,replay,ways,buckets,operations,life,packed,memory", help="some of these"
    )
    parser.add_argument("--ways-messages", type=int, default=200_000, help="messages of each way")
    parser.add_argument("--bucket-operations", type=int, default=60_000, help="of each way of the case buckets")
    parser.add_argument("--operations", type=int, default=10_000, help="publishes of each operation")
    parser.add_argument("--streams", type=int, default=300, help="of the case life")
    parser.add_argument("--events", type=int, default=200_000, help="of the case packed")
    parser.add_argument("--dir", type=Path, help="where the streams are kept (default: the system's temporary folder)")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    repetitions, seconds = (1, SMOKE_SECONDS) if arguments.smoke else (max(1, arguments.repetitions), RUN_SECONDS)
    lone_turns, busy_turns, lone_seconds = LONE_TURNS * repetitions, BUSY_TURNS * repetitions, LONE_SECONDS
    if arguments.smoke:
        lone_turns, busy_turns, lone_seconds = 1, 1, SMOKE_SECONDS
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions"
    )
    rows: dict[str, dict[str, list[Outcome]]] = {}
    replays: dict[str, list[Replay]] = {}
    memory: dict[str, float] = {}
    spent: dict[str, list[dict[str, float]]] = {}
    buckets: dict[str, list[dict[str, bucket_load.Way]]] = {}
    packed: dict[tuple[str, str], list[compressed_load.Packed]] = {}
    operations: dict[str, list[dict[str, float]]] = {}
    reports: list[str] = []  # what went wrong with them
    lives: list[dict[str, stream_life.Life]] = []
    messages = 2000 if arguments.smoke else arguments.messages
    stored = 2000 if arguments.smoke else arguments.stored
    with tempfile.TemporaryDirectory(dir=arguments.dir) as directory, ExitStack() as stack:
        servers = start_servers(Path(directory), stack)
        ours_and_default = (servers[0], servers[-1])
        if "memory" in arguments.cases:  # first, so that it excludes memory left over by other cases
            memory = {server.name: store(server, stored, arguments.stored_subjects) for server in ours_and_default}
        for in_flight in map(int, arguments.in_flight.split(",")) if "acks" in arguments.cases else []:
            turns, each = (lone_turns, lone_seconds) if in_flight == 1 else (repetitions, seconds)
            rows[f"{in_flight} in flight"] = in_turn(servers, in_flight, turns, each)
        if "busy" in arguments.cases:
            with busy_neighbours(1 if arguments.smoke else arguments.beside):
                rows["1 in flight, busy"] = in_turn(servers, 1, busy_turns, lone_seconds)
        if "replay" in arguments.cases:
            replays = {server.name: [] for server in ours_and_default}
            for _ in range(repetitions):
                for server in ours_and_default:
                    replays[server.name].append(replay(server, messages, arguments.subjects))
        if "ways" in arguments.cases:
            each = 2000 if arguments.smoke else arguments.ways_messages
            spent = {server.name: [] for server in ours_and_default}
            for _ in range(repetitions):
                for server in ours_and_default:
                    spent[server.name].append(ways(server, each))
        if "buckets" in arguments.cases:
            each = 2000 if arguments.smoke else arguments.bucket_operations
            buckets = {server.name: [] for server in servers}
            for _ in range(repetitions):
                for server in servers:
                    buckets[server.name].append(bucket_load.bucket_ways(server, each))
        if "operations" in arguments.cases:
            each = 50 if arguments.smoke else arguments.operations
            operations = {server.name: [] for server in servers}
            for _ in range(repetitions):
                for server in servers:
                    may_lose = server.name in EQUALS
                    operations[server.name].append(operation_load.operations(server, each, reports, may_lose=may_lose))
        if "packed" in arguments.cases:
            events = compressed_load.made(2000 if arguments.smoke else arguments.events)
            folders = {server.name: Path(directory) / name for server, name in zip(servers, FOLDERS, strict=True)}
            for _ in range(repetitions):
                for compression, server in product(compressed_load.COMPRESSION, ours_and_default):
                    done = compressed_load.run(server, folders[server.name], compression, events)
                    packed.setdefault((compression, server.name), []).append(done)
    streams = 5 if arguments.smoke else arguments.streams
    for _ in range(repetitions if "life" in arguments.cases else 0):
        with tempfile.TemporaryDirectory(dir=arguments.dir) as directory:
            lives.append(stream_life.run(Path(directory), streams))
    if arguments.json:
        print(
            json.dumps(
                {
                    "machine": heading,
                    "rows": rows,
                    "replay": replays,
                    "ways": spent,
                    "buckets": buckets,
                    "operations": operations,
                    "operations_reports": reports,
                    "life": lives,
                    "packed": list(packed.items()),
                    "memory": memory,
                },
                indent=1,
            )
        )
        return 0
    print(heading)
    show(rows, replays, messages)
    if spent:
        show_ways(*spent.values())
    if buckets:
        bucket_load.show(buckets, EQUALS, spell)
    if operations:
        operation_load.show(operations, EQUALS, reports, spell)
    if lives:
        stream_life.show(lives, streams, spell)
    if packed:
        show_packed(packed)
    if memory:
        print(f"\n{stored} messages on {arguments.stored_subjects} subjects, MiB resident")
        for name, size in memory.items():
            print(f"  {name:<22}{size:.0f}")
    print("\nSmoke run: its figures mean nothing." if arguments.smoke else "")
    return 0


def show(rows: dict[str, dict[str, list[Outcome]]], replays: dict[str, list[Replay]], messages: int) -> None:
    """Print the tables, with the ratios."""
    for title, row in rows.items():
        print(f"\n{title:<24}{'acks/s':<26}{'p50 us':<24}{'p99 us':<26}server CPU us/ack")
        for name, outcomes in row.items():
            rate, p50, p99, cpu = (list(column) for column in zip(*outcomes, strict=True))
            print(f"  {name:<22}{spell(rate):<26}{spell(p50):<24}{spell(p99):<26}{spell(cpu, 1)}")
        for name, equal in EQUALS.items():
            pairs = list(zip(row[equal], row[name], strict=True))
            rates, costs = (
                [mine.rate / theirs.rate for mine, theirs in pairs],
                [their.cpu / my.cpu for my, their in pairs],
            )
            verdict = judged(title, rates) if equal == "headwater" else ""
            half = f", half of {len(rates)} pairs within {spell_half(rates)}" if len(rates) >= LONE_TURNS else ""
            ratios = f"rate {spell(rates, 2)}x{half}, CPU efficiency {spell(costs, 2)}x"
            print(f"    {equal} against {name}: {ratios}{verdict}")
    if not replays:
        return
    columns = f"{'messages/s':<28}{'server CPU us':<20}{'RSS MiB':<22}{'publish p50 us':<22}during it"
    print(f"\n{f'replay of {messages}':<24}{columns}")
    for name, done in replays.items():
        rate, cpu, size, idle, busy = (list(column) for column in zip(*done, strict=True))
        print(f"  {name:<22}{spell(rate):<28}{spell(cpu, 2):<20}{spell(size):<22}{spell(idle):<22}{spell(busy)}")
    mine, theirs = replays.values()
    rates = [ours.rate / peer.rate for ours, peer in zip(mine, theirs, strict=True)]
    slowed = [one.busy_p50 / one.idle_p50 for one in mine]
    print(
        f"    rate {spell(rates, 2)}x{judged('replay of a stream', rates)}; publish p50 during it {spell(slowed, 2)}x"
    )


def show_ways(mine: list[dict[str, float]], theirs: list[dict[str, float]]) -> None:
    """Print a line for each way."""
    print(f"\n{'server CPU us/message':<42}{'headwater':<22}{'nats-server, default':<24}theirs / ours")
    for way in mine[0]:
        ours, peers = [done[way] for done in mine], [done[way] for done in theirs]
        ratios = [peer / own for own, peer in zip(ours, peers, strict=True)]
        print(
            f"  {way:<40}{spell(ours, 2):<22}{spell(peers, 2):<24}{spell(ratios, 2) + 'x':<22}{judged(way, ratios)}".rstrip()
        )


def show_packed(packed: dict[tuple[str, str], list[compressed_load.Packed]]) -> None:
    """Print a line for each server with and without compression."""
    print(f"\n{'JSON events, compression':<42}{'messages/s':<28}{'server CPU us':<20}bytes on disk for each published")
    for (compression, name), done in packed.items():
        rate, cpu, room = (list(column) for column in zip(*done, strict=True))
        print(f"  {compression + ', ' + name:<40}{spell(rate):<28}{spell(cpu, 2):<20}{spell(room, 2)}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as error:
        sys.exit(f"bench streams: {error}")
