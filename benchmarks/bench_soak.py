"""A soak of one broker with all its faces on and a fault every five seconds: `./hw bench soak [--minutes N] [--workers N]`.

`--minutes 30` moves 10^8 core messages and 10^7 stored ones on an idle machine; the default is three minutes. One server,
of one process or of N workers, has NATS, WebSocket, Iggy over TCP and HTTP, JetStream and monitoring. This process publishes
and receives core messages, publishes into a stream awaiting every ack and reads it back with a durable consumer, sends and
polls over Iggy, and fetches pages. The faults are FAULTS, in turn: broken connections, garbage, clients that do not read,
reloads, consumers created and deleted. The time begins when each fault has come twice under this load, which takes a minute:
the largest peaks are those of clients that do not read, and a heap keeps some of what it has grown to.

Checked: every acknowledged sequence was delivered to the consumer; no core message is missing between clients not affected
by a fault; resident memory in the second half is within GROWTH of the first, starting after a sixth of the time (minute 5
of 30), the fewest descriptors within DESCRIPTORS. Failures are printed, and set the exit code.
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

from contestants import describe_machine, refuse_interpreted, resident_bytes, start_headwater
from workers_load import processes

import headwater
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.iggy.topic_files import CACHE_BYTES
from headwater.iggy_client.client import connect as connect_iggy
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.identifiers import PollingStrategy

FAULT_SECONDS = 5.0
WARMING_ROUNDS = 2  # of all faults, before the time begins
GROWTH = 0.03
DESCRIPTORS = 3  # increase allowed from the least busy moment of the first half to that of the second
CORE_RATE, STORED_RATE = 60_000, 6_000  # messages per second: 10^8 and 10^7 in half an hour
CORE_BATCH, STORED_BATCH = 2000, 512  # most per turn of a publisher that is late
PAUSE = 0.01  # seconds between two turns
CORE_BEHIND = 30_000  # messages that the subscriber may be behind
CROWD = 200  # connections that come and go together
DEPARTED = 10_000  # connections that /connz remembers: as many come and go first, because memory grows until then
IGGY_BATCH = 10  # messages of 100 bytes
STREAM_KEEPS = 100_000
SAMPLES = 1.0  # seconds between two samples
PARTS = 12  # of the run, for printing the course of memory


class Counts:
    """Numbers of operations, and the problems found."""

    def __init__(self) -> None:
        self.core_sent = self.core_received = self.stored = self.read = self.iggy = self.pages = self.faults = 0
        self.last_acked = 0
        self.next_sequence = 1
        self.problems: list[str] = []


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


class Pace:
    """How many messages are due, at a constant rate from now on."""

    def __init__(self, rate: int, most: int) -> None:
        self._rate, self._most = rate, most
        self._began = time.monotonic()

    def due(self, sent: int) -> int:
        """The number to send now, at most `most`, when `sent` have been sent."""
        return max(0, min(self._most, int((time.monotonic() - self._began) * self._rate) - sent))


class Ports:
    """The ports other than the clients'."""

    def __init__(self) -> None:
        self.http, self.websocket, self.iggy, self.iggy_http = (free_port() for _ in range(4))


def configuration(directory: Path, ports: Ports) -> str:
    return f"""
http: "127.0.0.1:{ports.http}"
websocket {{ host: "127.0.0.1", port: {ports.websocket}, no_tls: true }}
jetstream {{ store_dir: "{directory}" }}
max_pending: 16MB
"""


# ── the load ──


async def core(url: str, counts: Counts, stop: asyncio.Event) -> None:
    """One publisher and one subscriber; every message is counted."""
    async with await headwater.connect(url) as publisher, await headwater.connect(url) as subscriber:
        subscription = await subscriber.subscribe("core.>")

        async def receive() -> None:
            async for message in subscription:
                counts.core_received += 1
                if message.data == b"end":
                    return

        await subscriber.flush()
        receiving = asyncio.ensure_future(receive())
        pace = Pace(CORE_RATE, CORE_BATCH)
        while not stop.is_set():
            due = pace.due(counts.core_sent)
            for number in range(due):
                await publisher.publish(f"core.{number % 10}", b"x" * 64)
            counts.core_sent += due
            for _ in range(10_000):  # wait for at most ten seconds
                if counts.core_sent - counts.core_received <= CORE_BEHIND:
                    break
                await asyncio.sleep(0.001)
            await asyncio.sleep(PAUSE)
        await publisher.publish("core.end", b"end")
        counts.core_sent += 1
        await asyncio.wait_for(receiving, 30)


async def store(url: str, counts: Counts, stop: asyncio.Event) -> None:
    """Publish awaiting acks, with a durable consumer that must receive every message, in order."""
    async with await headwater.connect(url) as client:
        jetstream = client.jetstream()
        await jetstream.create_stream(StreamConfig(name="SOAK", subjects=["soak"], max_msgs=STREAM_KEEPS))
        published = asyncio.Event()
        reading = asyncio.ensure_future(read_back(url, counts, published))
        pace = Pace(STORED_RATE, STORED_BATCH)
        while not stop.is_set():
            due = pace.due(counts.stored)
            acks = await asyncio.gather(*(jetstream.publish("soak", b"y" * 128) for _ in range(due)))
            counts.stored += len(acks)
            counts.last_acked = max([counts.last_acked, *(ack.seq for ack in acks)])
            if due < STORED_BATCH:
                await asyncio.sleep(PAUSE)
            for _ in range(4000):
                if counts.stored - counts.read <= STREAM_KEEPS // 2 or reading.done():
                    break
                await asyncio.sleep(0.005)
        published.set()
        await asyncio.wait_for(reading, 60)


async def read_back(url: str, counts: Counts, published: asyncio.Event) -> None:
    async with await headwater.connect(url) as client:
        jetstream = client.jetstream()
        config = ConsumerConfig(durable_name="reader", ack_policy="explicit", max_ack_pending=4096)
        await jetstream.create_consumer("SOAK", config)
        consumer = jetstream.pull_consumer("SOAK", "reader")
        while not (published.is_set() and counts.next_sequence > counts.last_acked):
            for message in await consumer.fetch(256, timeout=1.0):
                sequence = message.metadata.stream_seq
                if sequence > counts.next_sequence:
                    counts.problems.append(f"sequences {counts.next_sequence} to {sequence - 1} were never delivered")
                counts.next_sequence = max(counts.next_sequence, sequence + 1)
                counts.read += 1
                await message.ack()


async def fill_cache(port: int) -> None:
    """Send as much as the broker caches of a partition in memory: at the pace of `iggy` that would take a quarter of an
    hour, during which memory would grow."""
    async with await connect_iggy(f"iggy://iggy:iggy@127.0.0.1:{port}") as client:
        await client.create_stream("soak")
        await client.create_topic("soak", "soak")
        for _ in range(CACHE_BYTES // (IGGY_BATCH * 100)):
            await client.send("soak", "soak", [Message(b"z" * 100)] * IGGY_BATCH)
        await client.poll("soak", "soak", strategy=PollingStrategy.last(), count=1, auto_commit=True)


async def iggy(port: int, counts: Counts, stop: asyncio.Event) -> None:
    async with await connect_iggy(f"iggy://iggy:iggy@127.0.0.1:{port}") as client:
        while not stop.is_set():
            await client.send("soak", "soak", [Message(b"z" * 100)] * IGGY_BATCH)
            counts.iggy += len(await client.poll("soak", "soak", count=IGGY_BATCH, auto_commit=True))
            await asyncio.sleep(0.05)


async def pages(ports: Ports, counts: Counts, stop: asyncio.Event) -> None:
    def get(path: str) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports.http}{path}", timeout=20) as answer:
            answer.read()

    while not stop.is_set():
        for path in ("/varz", "/connz?subs=1", "/jsz?consumers=1", "/metrics", "/healthz", "/eventz"):
            await asyncio.to_thread(get, path)
            counts.pages += 1
        await asyncio.sleep(1)


# ── faults ──


def send_raw(port: int, data: bytes, *, reset: bool = True, wait: float = 0.05) -> None:
    """Connect, send `data`, and disconnect."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as link:
        if reset:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.sendall(data)
        time.sleep(wait)


def cut_in_a_publish(port: int, ports: Ports, pid: int) -> None:
    send_raw(port, b'CONNECT {"verbose":false}\r\nSUB core.> 1\r\nPUB core.0 1000\r\nhalf')


def garbage(port: int, ports: Ports, pid: int) -> None:
    for door in (port, ports.http, ports.websocket, ports.iggy, ports.iggy_http):
        send_raw(door, random.randbytes(3000))


def slow_reader(port: int, ports: Ports, pid: int) -> None:
    send_raw(port, b'CONNECT {"verbose":false}\r\nSUB core.> 1\r\n', wait=2.0)


def reload(port: int, ports: Ports, pid: int) -> None:
    os.kill(pid, signal.SIGHUP)


def crowd(port: int, ports: Ports, pid: int) -> None:
    links = []
    with contextlib.suppress(OSError):
        links += [socket.create_connection(("127.0.0.1", port), 5) for _ in range(CROWD)]
    for link in links:
        link.close()


def consumers(port: int, ports: Ports, pid: int) -> None:
    requests = b""
    for number in range(20):
        body = b'{"stream_name":"SOAK","config":{"name":"c%d","ack_policy":"explicit"}}' % number
        requests += b"PUB $JS.API.CONSUMER.CREATE.SOAK.c%d %d\r\n%b\r\n" % (number, len(body), body)
        requests += b"PUB $JS.API.CONSUMER.DELETE.SOAK.c%d 0\r\n\r\n" % number
    send_raw(port, b'CONNECT {"verbose":false}\r\n' + requests, reset=False, wait=1.0)


FAULTS: list[Callable[[int, Ports, int], None]] = [cut_in_a_publish, garbage, slow_reader, reload, crowd, consumers]


async def trouble(port: int, ports: Ports, pid: int, counts: Counts, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await asyncio.to_thread(FAULTS[counts.faults % len(FAULTS)], port, ports, pid)
        counts.faults += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), FAULT_SECONDS)


# ── what is watched ──


def held(pid: int) -> tuple[int, int]:
    """The resident bytes and the descriptors of all processes of a server."""
    pids = processes(pid)
    return sum(map(resident_bytes, pids)), sum(len(os.listdir(f"/proc/{each}/fd")) for each in pids)


def judge(samples: list[tuple[int, int]], counts: Counts, *, smoke: bool) -> str:
    """Check that memory and descriptors are stable; the samples are (resident bytes, descriptors) over time."""
    settled = samples[len(samples) // 6 :]
    half = len(settled) // 2
    early, late = (sorted(size for size, _ in part)[len(part) // 2] for part in (settled[:half], settled[half:]))
    growth = late / early - 1
    descriptors = [count for _, count in settled]
    parts = [samples[at * len(samples) // PARTS : (at + 1) * len(samples) // PARTS] for at in range(PARTS)]
    course = " ".join(f"{max(size for size, _ in part) / 1e6:.1f}" for part in parts if part)
    if growth > GROWTH and not smoke:
        counts.problems.append(f"resident memory has grown by {growth:.1%}")
    least, at_last = min(descriptors[:half]), min(descriptors[half:])  # the maximum may be a crowd
    if at_last > least + DESCRIPTORS:
        counts.problems.append(f"descriptors went from {least} to {at_last}")
    return (
        f"resident {early / 1e6:.1f} MB in the first half, {late / 1e6:.1f} MB in the second ({growth:+.1%});"
        f" descriptors {min(descriptors)} to {max(descriptors)}\nmost of each twelfth of the time, MB: {course}"
    )


async def soak(port: int, ports: Ports, pid: int, seconds: float, warming: int) -> tuple[Counts, list[tuple[int, int]]]:
    """Run for `seconds` after `warming` faults."""
    counts, stop = Counts(), asyncio.Event()
    for _ in range(DEPARTED // CROWD):
        await asyncio.to_thread(crowd, port, ports, pid)
    await fill_cache(ports.iggy)
    url = f"nats://127.0.0.1:{port}"
    works: list[Awaitable[None]] = [
        core(url, counts, stop),
        store(url, counts, stop),
        iggy(ports.iggy, counts, stop),
        pages(ports, counts, stop),
        trouble(port, ports, pid, counts, stop),
    ]
    tasks = [asyncio.ensure_future(work) for work in works]
    samples: list[tuple[int, int]] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not any(task.done() for task in tasks):
        if counts.faults < warming:
            deadline = time.monotonic() + seconds
        else:
            samples.append(held(pid))
        await asyncio.sleep(SAMPLES)
    stop.set()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, BaseException):
            counts.problems.append(f"{type(outcome).__name__}: {outcome}")
    if counts.core_received != counts.core_sent:
        counts.problems.append(f"{counts.core_sent} core messages were sent, {counts.core_received} received")
    if counts.next_sequence <= counts.last_acked:
        counts.problems.append(f"acked up to {counts.last_acked}, delivered up to {counts.next_sequence - 1}")
    return counts, samples


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench soak", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=3.0, help="30 for the whole of it (default: 3)")
    parser.add_argument("--workers", type=int, default=1, help="processes of the server (default: 1)")
    parser.add_argument("--smoke", action="store_true", help="20 seconds")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    seconds = 20.0 if arguments.smoke else 60 * arguments.minutes
    print(
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {seconds:.0f} s\n", flush=True
    )
    with tempfile.TemporaryDirectory() as directory:
        ports = Ports()
        config = Path(directory) / "server.conf"
        config.write_text(configuration(Path(directory) / "store", ports))
        doors = ["--iggy", f"127.0.0.1:{ports.iggy}", "--iggy-http", f"127.0.0.1:{ports.iggy_http}"]
        if arguments.workers > 1:
            doors += ["--workers", str(arguments.workers), "--spread_streams"]
        with start_headwater("-c", str(config), *doors) as server:
            warming = 0 if arguments.smoke else WARMING_ROUNDS * len(FAULTS)
            counts, samples = asyncio.run(soak(server.port, ports, server.pid, seconds, warming))
    print(
        f"{counts.core_sent:,} core messages, {counts.stored:,} stored and acked, {counts.read:,} read back,"
        f" {counts.iggy:,} over Iggy, {counts.pages:,} pages, {counts.faults} faults"
    )
    print(judge(samples, counts, smoke=arguments.smoke))
    for problem in counts.problems[:20]:
        print(f"PROBLEM: {problem}")
    print("nothing was lost" if not counts.problems else f"{len(counts.problems)} problems")
    return int(bool(counts.problems))


if __name__ == "__main__":
    sys.exit(main())
