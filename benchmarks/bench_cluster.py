"""Three brokers in a cluster against three nats-servers: `./hw bench cluster`.

    routed    one publisher at the first node, one subscriber at the second: CPU of both nodes per message, and rate. With
              one repeated control line; with 100 subjects in turn, so that no line repeats; for a queue group
    mesh      three processes started one after the other, each but the first knowing the first: until every node's INFO
              names three, counted from when the last process is up as a server
    start     three processes started together: from then until every node's INFO names three
    interest  a SUB at the second node, answered by PONG, until the first message published at the first node arrives
    failover  kill -9 of a node: until one of its clients sees the end (before that the kernel frees the process' memory,
              which nothing can observe), until clients of the others are informed, and, once it is back, informed again
    mixed     the same in clusters of one nats-server, one Headwater and a third that is killed, of either make in turn: the
              two survivors notice the same death, so that only their own work differs; each of the two is the one that the
              others dialled in half of the clusters

Both clusters run all the time; repetitions alternate A B A B. nats-server runs with its default route pool and settings.
"""

import argparse
import json
import os
import select
import signal
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import NamedTuple

from contestants import (
    Contestant,
    describe_machine,
    read_cpu_time,
    refuse_interpreted,
    start_headwater,
    start_nats_server,
)
from load_generator import Failure, open_link, read_until

from headwater.testing.ports import free_port

PAYLOAD = 128
RUN_MESSAGES = 500_000
SMOKE_MESSAGES = 2_000
INTEREST_ROUNDS = 200
SMOKE_ROUNDS = 5
DEATHS = 10  # in each of the four mixed clusters
PATIENCE = 20.0  # seconds to wait for any event

Start = Callable[..., Contestant]


class Cluster(NamedTuple):
    """Three servers of one make, and the ports of their routes."""

    name: str
    start: Start
    nodes: list[Contestant]
    ports: list[int]


def start_node(start: Start, name: str, port: int, seed: int, client_port: int = -1) -> Contestant:
    routes = [] if seed == port else ["--routes", f"nats://127.0.0.1:{seed}"]
    own_port = ["-p", str(client_port)] if client_port > 0 else []
    return start("--cluster_name", "bench", "--cluster", f"nats://127.0.0.1:{port}", *routes, *own_port, name=name)


def start_cluster(name: str, start: Start, stack: ExitStack) -> Cluster:
    ports = [free_port() for _ in range(3)]
    nodes = [stack.enter_context(start_node(start, f"{name} {at}", port, ports[0])) for at, port in enumerate(ports)]
    await_names(nodes, 3)
    return Cluster(name, start, nodes, ports)


def names_in_info(node: Contestant) -> int:
    """The number of servers that `node` announces to a client."""
    link = socket.create_connection(("127.0.0.1", node.port), PATIENCE)
    try:
        info = json.loads(read_until(link, b"\r\n").removeprefix(b"INFO "))
    finally:
        link.close()
    return len(info.get("connect_urls", []))


def await_names(nodes: list[Contestant], count: int) -> float:
    """Wait until each node announces `count` servers to its clients; returns the seconds waited."""
    started = time.perf_counter()
    while any(names_in_info(node) != count for node in nodes):
        if time.perf_counter() - started > PATIENCE:
            raise Failure(f"{nodes[0].name}: no {count} servers known within {PATIENCE:g} s")
        time.sleep(0.001)
    return time.perf_counter() - started


class Traffic(NamedTuple):
    """The publisher's subjects, and the subscriber's subject and queue group."""

    name: str
    subjects: list[bytes]
    wanted: bytes
    queue: bytes = b""


TRAFFIC = [
    Traffic("routed", [b"bench.routed"], b"bench.routed"),
    Traffic("routed, 100 subjects", [b"bench.many.%d" % number for number in range(100)], b"bench.many.*"),
    Traffic("routed, queue group", [b"bench.work"], b"bench.work", b" workers"),
    Traffic(
        "routed, queue group, 100 subjects", [b"bench.job.%d" % at for at in range(100)], b"bench.job.*", b" workers"
    ),
]


def measure_routed(cluster: Cluster, traffic: Traffic, messages: int) -> tuple[float, float]:
    """CPU microseconds of both nodes per message, and messages per second."""
    publisher, subscriber = open_link(cluster.nodes[0].port), open_link(cluster.nodes[1].port)
    subscriber.sendall(b"SUB %b%b 1\r\nPING\r\n" % (traffic.wanted, traffic.queue))
    read_until(subscriber, b"PONG\r\n")
    await_interest(publisher, subscriber, traffic.subjects[0])
    payload = b"x" * PAYLOAD
    ops = [b"PUB %b %d\r\n%b\r\n" % (subject, PAYLOAD, payload) for subject in traffic.subjects]
    delivered = [b"MSG %b 1 %d\r\n%b\r\n" % (subject, PAYLOAD, payload) for subject in traffic.subjects]
    chunk = b"".join(ops) * (500 // len(ops))
    arriving = b"".join(delivered) * (500 // len(ops))
    used, seconds = carry(cluster.nodes[:2], publisher, subscriber, chunk, len(arriving), messages // 500)
    publisher.close()
    subscriber.close()
    messages -= messages % 500
    return 1e6 * used / messages, messages / seconds


def carry(
    servers: Sequence[Contestant],
    publisher: socket.socket,
    subscriber: socket.socket,
    chunk: bytes,
    arriving: int,
    times: int,
) -> tuple[float, float]:
    """Send `chunk` so many times, each of which brings the subscriber `arriving` bytes. Returns CPU seconds of all servers,
    and seconds until everything has arrived."""
    done = threading.Event()

    def read() -> None:
        buffer, left = bytearray(1 << 18), arriving * times
        while left > 0:
            got = subscriber.recv_into(buffer)
            if not got:
                return
            left -= got
        done.set()  # it may include a PING, whose six bytes are no message

    reader = threading.Thread(target=read, daemon=True)
    before = [read_cpu_time(server.pid) for server in servers]
    started = time.perf_counter()
    reader.start()
    for _ in range(times):
        publisher.sendall(chunk)
    if not done.wait(120):
        raise Failure(f"{servers[0].name}: not every message arrived")
    seconds = time.perf_counter() - started
    used = sum(read_cpu_time(server.pid).since(b).scheduled for server, b in zip(servers, before, strict=True))
    return used, seconds


def await_interest(publisher: socket.socket, subscriber: socket.socket, subject: bytes) -> float:
    """Publish until the first message arrives, then until all extra messages have arrived; returns seconds to the first."""
    started = time.perf_counter()
    first = 0.0
    sent = 0
    subscriber.settimeout(0.0005)
    received = b""
    while not first:
        if time.perf_counter() - started > PATIENCE:
            raise Failure("interest does not cross the route")
        publisher.sendall(b"PUB %b 1\r\n.\r\n" % subject)
        sent += 1
        try:
            received += subscriber.recv(65536)
        except TimeoutError:
            continue
        if b"MSG" in received:  # a PING of the server says nothing of interest
            first = time.perf_counter() - started
    subscriber.settimeout(PATIENCE)
    publisher.sendall(b"PUB %b 3\r\nend\r\n" % subject)
    while b"end\r\n" not in received:  # a PING of the server may follow
        received += subscriber.recv(65536)
    return first


def measure_interest(cluster: Cluster, rounds: int) -> list[float]:
    """Milliseconds for each new subject."""
    publisher, subscriber = open_link(cluster.nodes[0].port), open_link(cluster.nodes[1].port)
    found = []
    for number in range(rounds):
        subscriber.sendall(b"SUB bench.new.%d %d\r\nPING\r\n" % (number, number))
        read_until(subscriber, b"PONG\r\n")
        found.append(1e3 * await_interest(publisher, subscriber, b"bench.new.%d" % number))
        subscriber.sendall(b"UNSUB %d\r\n" % number)
    publisher.close()
    subscriber.close()
    return found


def measure_mesh(start: Start, name: str) -> float:
    """Seconds from when the last of three nodes accepts clients until all three know all three."""
    with ExitStack() as stack:
        ports = [free_port() for _ in range(3)]
        nodes = [stack.enter_context(start_node(start, name, port, ports[0])) for port in ports]
        return await_names(nodes, 3)


def measure_start(start: Start, name: str) -> float:
    """Seconds from the simultaneous start of three processes until all three know all three."""
    with ExitStack() as stack, ThreadPoolExecutor(3) as threads:
        ports = [free_port() for _ in range(3)]
        started = time.perf_counter()
        starting = [threads.submit(start_node, start, name, port, ports[0]) for port in ports]
        nodes = [stack.enter_context(future.result()) for future in starting]
        await_names(nodes, 3)
        return time.perf_counter() - started


def open_listener(port: int) -> socket.socket:
    """A client that requests announcements of servers, and has read all announcements so far."""
    link = socket.create_connection(("127.0.0.1", port), PATIENCE)
    read_until(link, b"\r\n")
    received = b""
    for _ in range(2):  # the first PONG brings an INFO and a PING, in no guaranteed order; the second one does not
        link.sendall(b'CONNECT {"protocol":1,"verbose":false}\r\nPING\r\n' if not received else b"PONG\r\nPING\r\n")
        pongs = received.count(b"PONG\r\n") + 1
        while received.count(b"PONG\r\n") < pongs:
            received += link.recv(65536)
    return link


def await_announced(links: list[socket.socket], count: int) -> float:
    """Wait until the client of each link has received INFO with `count` servers; returns the seconds waited."""
    started = time.perf_counter()
    received = dict.fromkeys(links, b"")
    while received:
        ready, _, _ = select.select(list(received), [], [], PATIENCE)
        if not ready:
            raise Failure(f"clients are not told of {count} servers within {PATIENCE:g} s")
        for link in ready:
            received[link] += link.recv(65536)
            if any(len(urls) == count for urls in urls_announced(received[link])):
                del received[link]
    return time.perf_counter() - started


def urls_announced(received: bytes) -> list[list[str]]:
    """The `connect_urls` of each complete INFO."""
    lines = received.split(b"\r\n")[:-1]
    return [json.loads(line[5:]).get("connect_urls", []) for line in lines if line.startswith(b"INFO ")]


def measure_failover(cluster: Cluster, stack: ExitStack) -> tuple[float, float, float]:
    """Milliseconds until the last node's sockets are closed, until its loss is announced, both counted from the kill, and
    until its return is announced, counted from when it accepts connections.
    """
    victim = cluster.nodes.pop()
    links = [open_listener(node.port) for node in (victim, *cluster.nodes)]
    started = time.perf_counter()
    os.kill(victim.pid, signal.SIGKILL)
    closed: list[float] = []

    def receive_end() -> None:
        with suppress(ConnectionResetError):
            while links[0].recv(65536):
                pass
        closed.append(time.perf_counter() - started)

    listener = threading.Thread(target=receive_end, daemon=True)
    listener.start()
    await_announced(links[1:], 2)
    noticed = time.perf_counter() - started
    listener.join(PATIENCE)
    back = stack.enter_context(
        start_node(cluster.start, cluster.name, cluster.ports[2], cluster.ports[0], client_port=victim.port)
    )
    cluster.nodes.append(back)
    rejoined = max(await_announced(links[1:], 3), await_names([back], 3))
    for link in links:
        link.close()
    return 1e3 * closed[0], 1e3 * noticed, 1e3 * rejoined


class Mixed(NamedTuple):
    """A nats-server and a Headwater, in this order, and a third node, which is killed repeatedly."""

    name: str
    survivors: list[Contestant]
    start_third: Callable[[], Contestant]


def start_mixed(name: str, start_third: Start, seed: int, stack: ExitStack) -> Mixed:
    """Start two survivors, of which the other and the third know number `seed`. The node dialled first has the third's
    lowest descriptor, and the kernel closes descriptors in order, so the two take turns."""
    ports = [free_port() for _ in range(3)]
    survivors = {
        at: stack.enter_context(start_node(start, f"mixed {at}", ports[at], ports[seed]))
        for at, start in sorted(enumerate((start_nats_server, start_headwater)), key=lambda item: item[0] != seed)
    }
    await_names(list(survivors.values()), 2)
    return Mixed(name, [survivors[0], survivors[1]], lambda: start_node(start_third, name, ports[2], ports[seed]))


def measure_same_death(mixed: Mixed) -> tuple[float, float]:
    """Milliseconds from the kill of the third node until a client of the nats-server is informed, and one of the
    Headwater."""
    with mixed.start_third() as third:
        await_names([third, *mixed.survivors], 3)
        links = [open_listener(node.port) for node in mixed.survivors]
        received = dict.fromkeys(links, b"")
        seconds: dict[socket.socket, float] = {}
        started = time.perf_counter()
        os.kill(third.pid, signal.SIGKILL)
        while len(seconds) < len(links):
            ready, _, _ = select.select([link for link in links if link not in seconds], [], [], PATIENCE)
            now = time.perf_counter() - started
            if not ready:
                raise Failure(f"a death was not noticed within {PATIENCE:g} s")
            for link in ready:
                received[link] += link.recv(65536)
                if any(len(urls) == 2 for urls in urls_announced(received[link])):
                    seconds[link] = now
        for link in links:
            link.close()
        return 1e3 * seconds[links[0]], 1e3 * seconds[links[1]]


def spell(values: list[float], digits: int = 2) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench cluster", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="a few messages: only proves that it runs")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--failover", action="store_true", help="only who dies and comes back, and meshes: a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    messages, rounds = (SMOKE_MESSAGES, SMOKE_ROUNDS) if arguments.smoke else (RUN_MESSAGES, INTEREST_ROUNDS)
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions"
    )
    results: dict[str, dict[str, list[float]]] = {}
    makes: list[tuple[str, Start]] = [("nats-server", start_nats_server), ("headwater", start_headwater)]
    with ExitStack() as stack:
        clusters = [start_cluster(name, start, stack) for name, start in makes]
        for _ in range(repetitions):
            for cluster in clusters:
                row = results.setdefault(cluster.name, {})
                for traffic in () if arguments.failover else TRAFFIC:
                    cpu, rate = measure_routed(cluster, traffic, messages)
                    row.setdefault(f"{traffic.name}: CPU us, both nodes", []).append(cpu)
                    row.setdefault(f"{traffic.name}: messages/s", []).append(rate)
                if not arguments.failover:
                    seen = statistics.median(measure_interest(cluster, rounds))
                    row.setdefault("interest visible, p50 ms", []).append(seen)
                closed, noticed, rejoined = measure_failover(cluster, stack)
                row.setdefault("killed node's sockets closed, ms", []).append(closed)
                row.setdefault("killed node noticed, ms", []).append(noticed)
                row.setdefault("rejoined, ms", []).append(rejoined)
                row.setdefault("mesh of three, ms", []).append(1e3 * measure_mesh(cluster.start, cluster.name))
                row.setdefault("start of three, ms", []).append(1e3 * measure_start(cluster.start, cluster.name))
        mixtures = [start_mixed(name, start, seed, stack) for name, start in makes for seed in (0, 1)]
        for _ in range(DEATHS if not arguments.smoke else 1):
            for mixed in mixtures:
                by_theirs, by_ours = measure_same_death(mixed)
                results["nats-server"].setdefault(f"the same killed {mixed.name} noticed, ms", []).append(by_theirs)
                results["headwater"].setdefault(f"the same killed {mixed.name} noticed, ms", []).append(by_ours)
    if arguments.json:
        print(json.dumps({"machine": heading, "results": results}, indent=1))
        return 0
    print(heading)
    for what in results["headwater"]:
        theirs, ours = results["nats-server"][what], results["headwater"][what]
        better = statistics.median(theirs) / statistics.median(ours)
        ratio = 1 / better if what.endswith("/s") else better
        digits = 0 if what.endswith("/s") else 2
        print(f"  {what:<52}{spell(theirs, digits):<28}{spell(ours, digits):<28}{ratio:.2f}x")
    print("columns: nats-server, headwater, how much better we are" if not arguments.smoke else "")
    print("Smoke run: its figures mean nothing." if arguments.smoke else "")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as error:
        sys.exit(f"bench cluster: {error}")
