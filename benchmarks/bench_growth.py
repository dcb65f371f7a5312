"""What a message costs when there is ever more of something else: `./hw bench growth`.

For each row (GROWTHS) nats-server and ours are started anew for each size and given so many subscriptions, connections,
subjects, streams or consumers; then the same work is done, and what counts is the server's CPU for one message of it, and
what one more of them takes in memory. The goal: from the smallest to the largest size CPU a message grows by no more than
GOAL. Work is done REPEATS times at each size and the cheapest one counts: growth is a property of the code, not of what
else the machine did.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
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
from stream_load import ask, store

GOAL = 1.2  # times the CPU a message at the smallest size
REPEATS = 3
PAYLOAD = b"x" * 128
STRIDE = 7919  # a prime: neighbours in time are not neighbours in any table
PIECE = 1 << 18  # bytes sent at once
WAIT = 120.0  # seconds without a byte
TOGETHER = 100  # requests on their way


class Flow:
    """A connection that counts the bytes it gets, in a thread; and what a publisher sends to it."""

    def __init__(self, receiver: socket.socket) -> None:
        self._receiver = receiver
        receiver.settimeout(WAIT)

    def move(self, publisher: socket.socket, operations: Sequence[bytes], expected: int) -> None:
        """Send `operations`; returns when `expected` bytes have arrived. Raises Failure when they do not."""
        sending = threading.Thread(target=publisher.sendall, args=(b"".join(operations),), daemon=True)
        sending.start()
        arrived, rest = 0, b""
        while arrived < expected:
            chunk = self._receiver.recv(PIECE)
            if not chunk:
                raise Failure(f"closed after {arrived} of {expected} bytes")
            arrived += len(chunk)
            if pings := (rest + chunk).count(b"PING\r\n"):  # nothing else has these bytes
                self._receiver.sendall(b"PONG\r\n" * pings)
                arrived -= 6 * pings
            rest = chunk[-5:]
        sending.join(WAIT)
        if arrived != expected:
            raise Failure(f"{arrived} bytes arrived where {expected} were to come")


def cheapest(server: Contestant, messages: int, work: Callable[[], None]) -> float:
    """CPU microseconds a message, of the cheapest repetition. The first one warms up and does not count."""
    work()
    costs = []
    for _ in range(REPEATS):
        before = read_cpu_time(server.pid)
        work()
        costs.append(1e6 * read_cpu_time(server.pid).since(before).scheduled / messages)
    return min(costs)


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Cost(NamedTuple):
    """Microseconds of the server's CPU a message; resident bytes that the things took together."""

    cpu: float
    bytes: int


# ── core ──


def subscriptions(server: Contestant, count: int, messages: int) -> Cost:
    """One connection with `count` literal subscriptions; each message has another subject."""
    with open_link(server.port) as publisher, open_link(server.port) as receiver:
        before = resident(server.pid)
        for first in range(0, count, 1000):
            numbers = range(first, min(first + 1000, count))
            receiver.sendall(b"".join(b"SUB grow.%06d.events %d\r\n" % (number, number) for number in numbers))
        receiver.sendall(b"PING\r\n")
        read_until(receiver, b"PONG\r\n")
        taken = resident(server.pid) - before
        order = [position * STRIDE % count for position in range(messages)]
        operations = [b"PUB grow.%06d.events %d\r\n%b\r\n" % (number, len(PAYLOAD), PAYLOAD) for number in order]
        expected = sum(
            len(b"MSG grow.%06d.events %d %d\r\n%b\r\n" % (number, number, len(PAYLOAD), PAYLOAD)) for number in order
        )
        flow = Flow(receiver)
        return Cost(cheapest(server, messages, lambda: flow.move(publisher, operations, expected)), taken)


def connections(server: Contestant, count: int, messages: int) -> Cost:
    """`count` connections with a subscription each, all silent, and one pair that talks."""
    with ExitStack() as stack:
        before = resident(server.pid)
        for number in range(count):
            link = stack.enter_context(open_link(server.port))
            link.sendall(b"SUB idle.%d.> 1\r\n" % number)
        publisher, receiver = (stack.enter_context(open_link(server.port)) for _ in range(2))
        receiver.sendall(b"SUB grow.> 1\r\nPING\r\n")
        read_until(receiver, b"PONG\r\n")
        taken = resident(server.pid) - before
        operations = [b"PUB grow.a %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)] * messages
        expected = len(b"MSG grow.a 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)) * messages
        flow = Flow(receiver)
        return Cost(cheapest(server, messages, lambda: flow.move(publisher, operations, expected)), taken)


# ── stored ──


def manage(server: Contestant, stack: ExitStack) -> socket.socket:
    control = stack.enter_context(open_link(server.port))
    control.settimeout(WAIT)
    control.sendall(b"SUB _INBOX.ask 1\r\n")
    return control


def make(control: socket.socket, requests: Iterable[tuple[str, object]]) -> None:
    """JetStream requests, TOGETHER of them on their way. Raises Failure when one is refused."""
    waiting = iter(requests)
    while batch := list(islice(waiting, TOGETHER)):
        bodies = [(subject, json.dumps(document).encode()) for subject, document in batch]
        control.sendall(b"".join(b"PUB %b _INBOX.ask %d\r\n%b\r\n" % (s.encode(), len(b), b) for s, b in bodies))
        said = b""
        while said.count(b"MSG _INBOX.ask ") < len(batch) or not said.endswith(b"}\r\n"):
            chunk = control.recv(PIECE)
            if b"PING\r\n" in chunk:
                control.sendall(b"PONG\r\n")
                chunk = chunk.replace(b"PING\r\n", b"")
            if not chunk and not said:
                raise Failure("closed instead of an answer")
            said += chunk
        if b'"error"' in said:
            raise Failure(f"a request was refused: {said[said.index(b'error') :][:200]!r}")


def publishes(subject: Callable[[int], bytes], numbers: Sequence[int]) -> list[bytes]:
    return [b"PUB %b _INBOX.fill %d\r\n%b\r\n" % (subject(number), len(PAYLOAD), PAYLOAD) for number in numbers]


def subjects(server: Contestant, count: int, messages: int) -> Cost:
    """A stream that holds a message on each of `count` subjects; then more, each on one of them."""
    with ExitStack() as stack:
        control, link = manage(server, stack), stack.enter_context(open_link(server.port))
        before = resident(server.pid)
        ask(control, "$JS.API.STREAM.CREATE.GROW", {"name": "GROW", "subjects": ["grow.>"], "storage": "file"})
        store(link, (one for one in publishes(lambda number: b"grow.%08d" % number, range(count))))
        taken = resident(server.pid) - before
        again = publishes(lambda number: b"grow.%08d" % number, [n * STRIDE % count for n in range(messages)])
        return Cost(cheapest(server, messages, lambda: refill(server, again)), taken)


def refill(server: Contestant, operations: list[bytes]) -> None:
    with open_link(server.port) as link:
        store(link, operations)


def streams(server: Contestant, count: int, messages: int) -> Cost:
    """`count` streams; messages go to one after the other."""
    with ExitStack() as stack:
        control = manage(server, stack)
        before = resident(server.pid)
        make(
            control,
            (
                (f"$JS.API.STREAM.CREATE.G{n}", {"name": f"G{n}", "subjects": [f"grow.{n}"], "storage": "file"})
                for n in range(count)
            ),
        )
        taken = resident(server.pid) - before
        width = min(count, 100)  # at a time: how many files are written to is another question
        again = publishes(lambda number: b"grow.%d" % number, [n % width * (count // width) for n in range(messages)])
        return Cost(cheapest(server, messages, lambda: refill(server, again)), taken)


def consumer(number: int) -> tuple[str, object]:
    """The request that makes it."""
    stream, name = f"G{number // 100}", f"c{number % 100}"
    settings = {"durable_name": name, "ack_policy": "explicit", "filter_subject": f"grow.{number // 100}.{name}"}
    return f"$JS.API.CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": settings}


def consumers(server: Contestant, count: int, messages: int) -> Cost:
    """`count` pull consumers, a hundred a stream, each with a subject of its own to filter by; messages go to one stream."""
    with ExitStack() as stack:
        control = manage(server, stack)
        make(
            control,
            (
                (f"$JS.API.STREAM.CREATE.G{n}", {"name": f"G{n}", "subjects": [f"grow.{n}.*"], "storage": "file"})
                for n in range(max(1, count // 100))
            ),
        )
        before = resident(server.pid)
        make(control, (consumer(number) for number in range(count)))
        taken = resident(server.pid) - before
        again = publishes(lambda number: b"grow.0.c%d" % number, [n % 100 for n in range(messages)])
        return Cost(cheapest(server, messages, lambda: refill(server, again)), taken)


class Growth(NamedTuple):
    """A row: what there is more and more of, in which `sizes`, in how many messages it is measured, and how."""

    title: str
    sizes: tuple[int, ...]
    messages: int
    measure: Callable[[Contestant, int, int], Cost]


GROWTHS = {
    "subscriptions": Growth("subscriptions of one client", (100, 10_000, 100_000), 200_000, subscriptions),
    "connections": Growth("connections, silent", (10, 1000, 10_000), 200_000, connections),
    "subjects": Growth("subjects in a stream", (1000, 100_000, 1_000_000), 50_000, subjects),
    "streams": Growth("streams", (100, 1000, 5000), 20_000, streams),
    "consumers": Growth("consumers", (100, 2000, 10_000), 20_000, consumers),
}


def run(growth: Growth, start: Callable[[str], Contestant], size: int, messages: int) -> Cost:
    with tempfile.TemporaryDirectory() as directory, start(directory) as server:
        return growth.measure(server, size, messages)


def show(growth: Growth, sizes: Sequence[int], found: dict[str, list[Cost]]) -> list[str]:
    """The lines of one row; a bar says how CPU a message compares with that at the smallest size."""
    lines = [f"{growth.title}: server CPU us/message"]
    for name, costs in found.items():
        for size, cost in zip(sizes, costs, strict=True):
            times = cost.cpu / costs[0].cpu
            each = cost.bytes / size
            bar = "#" * min(60, round(10 * times))
            lines.append(f"  {name:<12}{size:>10,}  {cost.cpu:>8.3f}  {times:>5.2f}x  {each:>9,.0f} bytes each  {bar}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench growth", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small sizes: only proves that it runs")
    parser.add_argument("--rows", default=",".join(GROWTHS), help="some of " + ", ".join(GROWTHS))
    parser.add_argument("--ours", action="store_true", help="without nats-server")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    print(f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}\n", flush=True)
    starts: dict[str, Callable[[str], Contestant]] = {
        "headwater": lambda directory: start_headwater("-js", "-sd", directory),
        "nats-server": lambda directory: start_nats_server("-js", "-sd", directory),
    }
    if arguments.ours:
        del starts["nats-server"]
    over = []
    for name in arguments.rows.split(","):
        growth = GROWTHS[name]
        sizes = (10,) if arguments.smoke else growth.sizes
        messages = 500 if arguments.smoke else growth.messages
        found: dict[str, list[Cost]] = {server: [] for server in starts}
        for size in sizes:
            for server, start in starts.items():
                found[server].append(run(growth, start, size, messages))
        print("\n".join(show(growth, sizes, found)), flush=True)
        ours = found["headwater"]
        if not arguments.smoke and max(cost.cpu for cost in ours) > GOAL * ours[0].cpu:
            over.append(f"{growth.title} {max(cost.cpu for cost in ours) / ours[0].cpu:.2f}x")
    print(f"\nabove the goal of {GOAL}x: {', '.join(over) or 'none'}" if not arguments.smoke else "\nSmoke run.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as error:
        sys.exit(f"bench growth: {error}")
