"""What a message costs when there is ever more of something else: `./hw bench growth`.

For each row (GROWTHS) nats-server and ours are started once for each size and given so many subscriptions, connections,
subjects, messages, streams or consumers. Then the same work is done at one size after the other, in ROUNDS, and what counts
is the CPU of the server for a message of it: the median, and the median and the range of what it is by the smallest size's
of the same round. So what else the machine does falls on all sizes. A row also says what one more of the things takes:
memory, and CPU to make it. The goal: from the smallest to the largest size CPU a message grows by no more than GOAL.

In rows without streams each server has a core for itself, and the relay (relay.py) takes part where it can: it does what no
broker can omit, and what its messages cost more is the kernel's and the memory's. The last lines have both growths.

Rows with streams compare each server's default: ours syncs before it acknowledges, nats-server every two minutes. `streams`
is there a second time with acks from the page cache (ours then syncs each log about once a second), and a third time with
acks from the disk. What these servers hold is made on both at once.

`--rows` chooses rows, `--largest` leaves out sizes above a number. Most of the time goes into ten million messages, five
thousand streams twice, and fifty thousand consumers.
"""

import argparse
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from broker_footprint import ask_jetstream
from contestants import (
    Contestant,
    build_relay,
    describe_machine,
    refuse_interpreted,
    start_headwater,
    start_nats_server,
    start_relay,
)
from growth_core import (
    around_wildcard,
    churn,
    churn_of_patterns,
    connections,
    listeners,
    numbered,
    subscriptions,
    talkers,
    under_wildcard,
)
from growth_stored import by_batch, by_sequence, consumers, stored, streams, subjects
from growth_work import Cost, Ready, apart, compare
from load_generator import Failure

START_TIMEOUT = 180.0  # seconds: the largest sizes leave the disk and the page cache behind that they were stored with
UNSYNCED = "2m"  # acknowledged from the page cache; nats-server syncs so often, ours about once a second all the same
GOAL = 1.2  # times the CPU a message at the smallest size
ROUNDS = 7  # an odd number: the median is one of them
STORED_ROUNDS = 5
SMOKE_SIZES = (10, 20)
SMOKE_MESSAGES = 500
Start = Callable[..., Contestant]


class Growth(NamedTuple):
    """A row: what there is more and more of, in which `sizes`, in how many messages it is measured, and how. `relay`: it
    takes part. `sync_interval`: of both servers; "" for each one's own default, None for servers without streams."""

    title: str
    sizes: tuple[int, ...]
    messages: int
    prepare: Callable[[ExitStack, Contestant, int, int], Ready]
    relay: bool = False
    sync_interval: str | None = ""


SUBJECTS = (100, 10_000, 100_000)
LINKS = (100, 1000, 10_000)
STREAMS = (100, 1000, 5000)
GROWTHS = {
    "subscriptions": Growth("subscriptions of one client", SUBJECTS, 250_000, subscriptions, True, None),
    "numbered": Growth("subscriptions, number last", SUBJECTS, 250_000, numbered, True, None),
    "churn": Growth("subscriptions, while others come and go", SUBJECTS, 250_000, churn, True, None),
    "patterns": Growth("subscriptions, while patterns come and go", SUBJECTS, 250_000, churn_of_patterns, False, None),
    "wildcard": Growth("subjects under one wildcard", SUBJECTS, 250_000, under_wildcard, True, None),
    "middle": Growth("subjects with a wildcard in the middle", SUBJECTS, 250_000, around_wildcard, False, None),
    "connections": Growth("connections, silent", (10, 1000, 10_000), 250_000, connections, True, None),
    "talkers": Growth("connections that publish in turn", LINKS, 20_000, talkers, True, None),
    "listeners": Growth("connections that listen to one subject", LINKS, 20_000, listeners, True, None),
    "subjects": Growth("subjects in a stream", (1000, 100_000, 1_000_000), 50_000, subjects),
    "stored": Growth("messages in a stream: gets", (10_000, 1_000_000, 10_000_000), 20_000, stored),
    "sequences": Growth("messages in a stream: gets by sequence", (10_000, 1_000_000), 20_000, by_sequence),
    "batches": Growth("messages in a stream: gets of a hundred", (10_000, 1_000_000), 50_000, by_batch),
    "streams": Growth("streams", STREAMS, 5_000, streams),
    "streams-unsynced": Growth(
        "streams, acked from the page cache", (100, 5000), 20_000, streams, sync_interval=UNSYNCED
    ),
    "streams-synced": Growth("streams, acked from the disk", (100,), 2_000, streams, sync_interval="always"),
    "consumers": Growth("consumers", (100, 1000, 50_000), 20_000, consumers),
}


def flags_of(growth: Growth, directory: str) -> list[str]:
    """The flags of a server, with its streams in `directory`."""
    if growth.sync_interval is None:
        return []
    if not growth.sync_interval:
        return ["-js", "-sd", directory]
    file = Path(directory, "server.conf")
    file.write_text(f'jetstream {{ store_dir: "{directory}/store", sync_interval: "{growth.sync_interval}" }}\n')
    return ["-c", str(file)]


def prepared(stack: ExitStack, growth: Growth, start: Start, sizes: Sequence[int], messages: int) -> list[Ready]:
    """A server for each size, which has so many of the things. `stack` ends them."""
    found = []
    for size in sizes:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(start(*flags_of(growth, directory), start_timeout=START_TIMEOUT))
        if growth.sync_interval is not None:
            with socket.create_connection(("127.0.0.1", server.port), 60) as link:
                ask_jetstream(link)  # ours loads it after its greeting: no memory of what is measured
        found.append(growth.prepare(stack, server, size, messages))
    return found


def measure(
    growth: Growth, starts: dict[str, Start], sizes: Sequence[int], messages: int, rounds: int | None
) -> dict[str, list[Cost]]:
    """Of each server the cost at each size. Without streams one is ended before the next is prepared: with 11,000
    connections each, two would need more descriptors than many systems let a process have."""
    found = {}
    if growth.sync_interval is None:
        for name, start in starts.items():
            with ExitStack() as stack:
                ready = prepared(stack, growth, start, sizes, messages)
                stack.enter_context(apart([one.server for one in ready]))
                found[name] = compare(ready, rounds or ROUNDS, 2)
        return found
    with ExitStack() as stack, ThreadPoolExecutor(len(starts)) as threads:
        waiting = {
            name: threads.submit(prepared, stack.enter_context(ExitStack()), growth, start, sizes, messages)
            for name, start in starts.items()
        }
        stored = {name: future.result() for name, future in waiting.items()}
        return {name: compare(stored[name], rounds or STORED_ROUNDS, 1) for name in starts}


def show(growth: Growth, sizes: Sequence[int], found: dict[str, list[Cost]]) -> list[str]:
    """The lines of one row; a bar says how CPU a message compares with that at the smallest size."""
    lines = [f"{growth.title}: server CPU us/message"]
    for name, costs in found.items():
        for size, cost in zip(sizes, costs, strict=True):
            bytes_each, made_each = cost.bytes / size, 1e6 * cost.made / size
            bar = "#" * min(40, round(10 * cost.growth))
            lines.append(
                f"  {name:<12}{size:>10,}  {statistics.median(cost.cpu):>8.3f}  {cost.span:>19}"
                f"  {bytes_each:>9,.0f} bytes  {made_each:>8.2f} us each  {bar}"
            )
    return lines


def worst(costs: Sequence[Cost]) -> Cost:
    return max(costs[1:], key=lambda cost: cost.growth)


def judge(growth: Growth, found: dict[str, list[Cost]]) -> str:
    """Whether ours kept the goal, and how it and the others grew, each at the size where it grew most."""
    ours = worst(found["headwater"])
    others = [f"{name} {worst(costs).span}" for name, costs in found.items() if name != "headwater"]
    verdict = "met" if ours.growth <= GOAL else "MISSED"
    return f"  {growth.title + ':':<40} {ours.span}; {', '.join(others) or 'alone'}: {verdict}"


def relay_start(directory: str) -> Start | None:
    """Starts the relay, which is compiled in `directory`; None, with a message, where that is impossible."""
    if missing := build_relay(Path(directory)):
        print(f"the relay is NOT compared: it could not be compiled: {missing}", file=sys.stderr, flush=True)
        return None
    return lambda *_, **__: start_relay(Path(directory))


def run(arguments: argparse.Namespace, relay: Start | None) -> None:
    """Measure and print the rows, and what became of the goal."""
    starts: dict[str, Start] = {"headwater": start_headwater}
    if not arguments.ours:
        starts["nats-server"] = start_nats_server
    judged = []
    for name in arguments.rows.split(","):
        growth = GROWTHS[name]
        began = time.monotonic()
        sizes = tuple(size for size in growth.sizes if size <= arguments.largest)
        messages, rounds = growth.messages, arguments.rounds
        if arguments.smoke:
            sizes, messages, rounds = SMOKE_SIZES, SMOKE_MESSAGES, 1
        those = {**starts, "relay": relay} if growth.relay and relay is not None else starts
        found = measure(growth, those, sizes, messages, rounds)
        print("\n".join(show(growth, sizes, found)), flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        if len(sizes) > 1:
            judged.append(judge(growth, found))
    if arguments.smoke:
        print("\nSmoke run.")
    else:
        print(
            f"\nGrowth, at most {GOAL}x; the highest median of a row's pairs, and the range of these:",
            *judged,
            sep="\n",
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench growth", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small sizes: only proves that it runs")
    parser.add_argument("--rows", default=",".join(GROWTHS), help="some of " + ", ".join(GROWTHS))
    parser.add_argument("--largest", type=int, default=1 << 60, help="leave out sizes above this")
    parser.add_argument("--rounds", type=int, help=f"at each size (default: {ROUNDS}, with streams {STORED_ROUNDS})")
    parser.add_argument("--ours", action="store_true", help="without nats-server and relay")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    print(f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}\n", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        run(arguments, None if arguments.ours else relay_start(directory))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as error:
        sys.exit(f"bench growth: {error}")
