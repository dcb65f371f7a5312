"""A hub and a leaf node of it, and batches into a stream, against nats-server: `./hw bench leaf`.

    leaf link      one publisher at the hub, one subscriber at the leaf node, and vice versa: CPU of both per message
                   (goal: a third of nats-server's)
    sourcing       a stream at the hub sources a full one of the leaf node: messages per second (goal: twice), CPU of both
    fast batches   fast-ingest batches of 10,000 messages into a stream of files (goal: twice the rate)
    atomic         atomic batches of 100 messages, a few in flight (goal: the same rate)

Hub and leaf node are of one make. Syncing dominates these figures, so both makes run twice: "page cache" acknowledges
written messages and syncs later (nats-server's default of two minutes; our `sync_interval` with a duration, which syncs
about once a second), "on disk" syncs before each acknowledgement (nats-server's `sync_interval: always`; our default). Only
equal promises are compared, and the goals are those of "page cache". All pairs run all the time; repetitions alternate A B
A B. Stored messages are counted afterwards. What can be shared with `bench_cluster.py` is there; a pair with domains and
promises is not started like a mesh of three that die and come back, so there are two programs.
"""

import argparse
import os
import socket
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench_cluster import PAYLOAD, Start, await_interest, carry, spell
from contestants import (
    Contestant,
    describe_machine,
    read_cpu_time,
    refuse_interpreted,
    start_headwater,
    start_nats_server,
)
from load_generator import Failure, open_link, read_until
from stream_load import ask, store

from headwater.testing.ports import free_port

CHUNK = 500  # publishes per write
FLOW = 500  # messages between two acks of a fast batch
FAST_BATCH = 10_000
ATOMIC_BATCH = 100
IN_FLIGHT = 10  # atomic batches
LINKS = "hub to leaf node: CPU us", "leaf node to hub: CPU us"
GOALS = {
    **dict.fromkeys(LINKS, 3.0),
    "sourcing: messages/s": 2.0,
    "fast batches: messages/s": 2.0,
    "atomic batches of 100: messages/s": 1.0,
}


PROMISES = {"page cache": "2m", "on disk": "always"}
"""The meaning of an acknowledgement, and the `sync_interval` that gives it in both makes."""


class Pair(NamedTuple):
    """A hub and its leaf node of one make, both with streams, in the domains `hub` and `leafy`. `promise`: see PROMISES."""

    name: str
    promise: str
    hub: Contestant
    leaf: Contestant


def start_pair(name: str, promise: str, start: Start, directory: Path, stack: ExitStack) -> Pair:
    port, sync = free_port(), PROMISES[promise]

    def one(place: str, block: str) -> Contestant:
        file = directory / f"{name}-{sync}-{place}.conf"
        store_dir = directory / f"{name}-{sync}-{place}"
        file.write_text(
            f'server_name: "{name}-{sync}-{place}"\n'
            f'jetstream {{ domain: {place}, store_dir: "{store_dir}", sync_interval: "{sync}" }}\n'
            f"leafnodes {{ {block} }}\n"
        )
        return stack.enter_context(start("-c", str(file), name=f"{name} {place}"))

    hub = one("hub", f'listen: "127.0.0.1:{port}", compression: off')
    leaf = one("leafy", f'reconnect: "100ms", remotes: [ {{ url: "nats-leaf://127.0.0.1:{port}", compression: off }} ]')
    return Pair(name, promise, hub, leaf)


def cpu_of(*servers: Contestant) -> list[float]:
    return [read_cpu_time(server.pid).scheduled for server in servers]


def measure_link(sender: Contestant, receiver: Contestant, messages: int) -> float:
    """CPU microseconds of both servers per message."""
    with open_link(sender.port) as publisher, open_link(receiver.port) as subscriber:
        subscriber.sendall(b"SUB bench.link 1\r\nPING\r\n")
        read_until(subscriber, b"PONG\r\n")
        await_interest(publisher, subscriber, b"bench.link")
        payload = b"x" * PAYLOAD
        chunk = b"PUB bench.link %d\r\n%b\r\n" % (PAYLOAD, payload) * CHUNK
        arriving = CHUNK * len(b"MSG bench.link 1 %d\r\n%b\r\n" % (PAYLOAD, payload))
        used, _ = carry((sender, receiver), publisher, subscriber, chunk, arriving, messages // CHUNK)
    return 1e6 * used / messages


def requester_link(server: Contestant) -> socket.socket:
    link = open_link(server.port)
    link.sendall(b"SUB _INBOX.ask 9\r\n")
    return link


def stored(link: socket.socket, name: str) -> int:
    state = ask(link, f"$JS.API.STREAM.INFO.{name}", None)["state"]
    assert isinstance(state, dict)
    return int(state["messages"])


def measure_sourcing(pair: Pair, messages: int) -> tuple[float, float]:
    """Messages per second until the hub has all messages of the leaf node, and CPU microseconds of both per message."""
    body = b"x" * PAYLOAD
    with requester_link(pair.leaf) as leaf:  # one link at a time: both use one inbox, so answers would cross
        ask(leaf, "$JS.API.STREAM.CREATE.EDGE", {"name": "EDGE", "subjects": ["edge.>"]})
        store(leaf, (b"PUB edge.%d _INBOX.fill %d\r\n%b\r\n" % (n % 10, PAYLOAD, body) for n in range(messages)))
    with requester_link(pair.hub) as hub:
        before, started = cpu_of(pair.hub, pair.leaf), time.perf_counter()
        source = {"name": "EDGE", "external": {"api": "$JS.leafy.API", "deliver": ""}}
        ask(hub, "$JS.API.STREAM.CREATE.ALL", {"name": "ALL", "sources": [source]})
        while (found := stored(hub, "ALL")) < messages:
            if time.perf_counter() - started > 120:
                raise Failure(f"{pair.name}: {found} of {messages} were sourced")
            time.sleep(0.01)
        seconds = time.perf_counter() - started
        after = cpu_of(pair.hub, pair.leaf)
        ask(hub, "$JS.API.STREAM.DELETE.ALL", None)
    with requester_link(pair.leaf) as leaf:
        ask(leaf, "$JS.API.STREAM.DELETE.EDGE", None)
    return messages / seconds, 1e6 * (sum(after) - sum(before)) / messages


def answers(link: socket.socket, wanted: bytes, count: int, received: bytes = b"") -> bytes:
    """Read until `wanted` has come `count` times; returns everything read. Raises Failure for an error."""
    while received.count(wanted) < count:
        chunk = link.recv(1 << 18)
        if not chunk or b'"error"' in chunk:
            raise Failure(f"a batch was refused: {chunk[:300]!r}")
        if b"PING\r\n" in chunk:
            link.sendall(b"PONG\r\n")
        received += chunk
    return received


def measure_fast(server: Contestant, messages: int) -> float:
    """Messages per second of one publisher, in batches of FAST_BATCH; unacknowledged messages are limited to two acks'
    worth."""
    body = b"x" * PAYLOAD
    size = min(FAST_BATCH, messages)
    with requester_link(server) as control, open_link(server.port) as link:
        ask(control, "$JS.API.STREAM.CREATE.FAST", {"name": "FAST", "subjects": ["fast"], "allow_batched": True})
        link.sendall(b"SUB _INBOX.fast.> 1\r\n")
        started = time.perf_counter()
        for batch in range(messages // size):
            head = b"_INBOX.fast.b%d.%d.fail." % (batch, FLOW)
            received, acked = b"", 0
            for first in range(1, size + 1, FLOW):
                last = min(first + FLOW - 1, size)
                pieces = []
                for number in range(first, last + 1):
                    op = 0 if number == 1 else 2 if number == size else 1
                    pieces.append(b"PUB fast %b%d.%d.$FI %d\r\n%b\r\n" % (head, number, op, PAYLOAD, body))
                link.sendall(b"".join(pieces))
                if first - acked > 2 * FLOW:
                    received = answers(link, b'"type":"ack"', 1, received)
                    acked, received = first, received[received.rfind(b'"type":"ack"') + 12 :]
            answers(link, b'"count"', 1, received)
        seconds = time.perf_counter() - started
        found = stored(control, "FAST")
        ask(control, "$JS.API.STREAM.DELETE.FAST", None)
    if found != messages // size * size:
        raise Failure(f"{server.name}: {found} messages of fast batches are stored")
    return found / seconds


def measure_atomic(server: Contestant, messages: int) -> float:
    """Messages per second of one publisher, in batches of ATOMIC_BATCH, of which IN_FLIGHT await their ack."""
    body = b"x" * PAYLOAD
    batches = messages // ATOMIC_BATCH
    with requester_link(server) as control, open_link(server.port) as link:
        ask(control, "$JS.API.STREAM.CREATE.ATOM", {"name": "ATOM", "subjects": ["atom"], "allow_atomic": True})
        link.sendall(b"SUB _INBOX.atom 1\r\n")
        started = time.perf_counter()
        sent = acked = 0
        received = b""
        while acked < batches:
            while sent < batches and sent - acked < IN_FLIGHT:
                link.sendall(atomic_batch(sent, body))
                sent += 1
            received = answers(link, b'"count"', 1, received)
            acked += received.count(b'"count"')
            received = received[received.rfind(b'"count"') + 7 :]
        seconds = time.perf_counter() - started
        found = stored(control, "ATOM")
        ask(control, "$JS.API.STREAM.DELETE.ATOM", None)
    if found != batches * ATOMIC_BATCH:
        raise Failure(f"{server.name}: {found} messages of atomic batches are stored")
    return found / seconds


def atomic_batch(number: int, body: bytes) -> bytes:
    pieces = []
    for at in range(1, ATOMIC_BATCH + 1):
        commit = b"Nats-Batch-Commit: 1\r\n" if at == ATOMIC_BATCH else b""
        block = b"NATS/1.0\r\nNats-Batch-Id: %d\r\nNats-Batch-Sequence: %d\r\n%b\r\n" % (number, at, commit)
        reply = b"_INBOX.atom " if commit else b""
        sizes = (len(block), len(block) + len(body))
        pieces.append(b"HPUB atom %b%d %d\r\n%b%b\r\n" % (reply, *sizes, block, body))
    return b"".join(pieces)


def amount(pair: Pair, scale: int) -> int:
    """Messages per run: few if each is synced separately, which takes milliseconds."""
    return max(1_000, scale // 50) if (pair.name, pair.promise) == ("nats-server", "on disk") else scale


def measure(pair: Pair, scale: int) -> dict[str, float]:
    """All rows of one pair; those of the links only once, because they store nothing."""
    rate, cpu = measure_sourcing(pair, scale)
    found = {"sourcing: messages/s": rate, "sourcing: CPU us, both": cpu}
    if pair.promise == next(iter(PROMISES)):
        found[LINKS[0]] = measure_link(pair.hub, pair.leaf, 3 * scale)
        found[LINKS[1]] = measure_link(pair.leaf, pair.hub, 3 * scale)
    found["fast batches: messages/s"] = measure_fast(pair.hub, scale)
    found["atomic batches of 100: messages/s"] = measure_atomic(pair.hub, scale // 2)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench leaf", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="a few messages: only proves that it runs")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    scale = 1_000 if arguments.smoke else 100_000
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions"
    )
    results: dict[tuple[str, str, str], list[float]] = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        makes: list[tuple[str, Start]] = [("nats-server", start_nats_server), ("headwater", start_headwater)]
        pairs = [start_pair(name, promise, start, directory, stack) for promise in PROMISES for name, start in makes]
        for _ in range(repetitions):
            for pair in pairs:
                for what, value in measure(pair, amount(pair, scale)).items():
                    results.setdefault((what, pair.promise, pair.name), []).append(value)
    print(heading)
    for what, promise in dict.fromkeys((what, promise) for what, promise, _ in results):
        theirs, ours = results[what, promise, "nats-server"], results[what, promise, "headwater"]
        better = statistics.median(theirs) / statistics.median(ours)
        ratio = 1 / better if what.endswith("/s") else better
        aim = GOALS.get(what) if promise == next(iter(PROMISES)) else None
        goal = f"goal {aim:g}x: {'met' if ratio >= aim else 'missed'}" if aim else ""
        digits = 0 if what.endswith("/s") else 2
        name = f"{what}, {promise}" if what not in LINKS else what
        print(f"  {name:<46}{spell(theirs, digits):<28}{spell(ours, digits):<28}{ratio:.2f}x  {goal}")
    print("columns: nats-server, headwater, how much better we are" if not arguments.smoke else "")
    print("Smoke run: its figures mean nothing." if arguments.smoke else "")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as error:
        sys.exit(f"bench leaf: {error}")
