"""What a message costs when there is ever more of something else: `./hw bench growth`.

For each row (GROWTHS) nats-server and ours are started anew for each size and given so many subscriptions, connections,
subjects, messages, streams or consumers; then the same work is done, and what counts is the CPU of the server for a message
of it, and what one more of them takes: memory, and CPU to make it. The goal: from the smallest to the largest size CPU a
message grows by no more than GOAL. Work is done REPEATS times at each size and the cheapest one counts: growth is a property
of the code, not of what else the machine did. Rows with streams compare each server's default: ours syncs before it
acknowledges, nats-server every two minutes. `streams` is there a second time with acks from the page cache (ours then
syncs each log about once a second), and a third time with acks from the disk.

`--rows` chooses rows, `--largest` leaves out sizes above a number: the whole takes a quarter of an hour, most of it to store
ten million messages and to make fifty thousand consumers, twice each.
"""

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from broker_footprint import ask_jetstream
from contestants import Contestant, describe_machine, refuse_interpreted, start_headwater, start_nats_server
from growth_core import around_wildcard, connections, listeners, numbered, subscriptions, talkers, under_wildcard
from growth_stored import consumers, stored, streams, subjects
from growth_work import Cost
from load_generator import Failure

START_TIMEOUT = 180.0  # seconds: the largest sizes leave the disk and the page cache behind that they were stored with
UNSYNCED = "2m"  # acknowledged from the page cache; nats-server syncs so often, ours about once a second all the same
GOAL = 1.2  # times the CPU a message at the smallest size


class Growth(NamedTuple):
    """A row: what there is more and more of, in which `sizes`, in how many messages it is measured, and how.
    `sync_interval`: of both servers; "" for each one's own default."""

    title: str
    sizes: tuple[int, ...]
    messages: int
    measure: Callable[[Contestant, int, int], Cost]
    sync_interval: str = ""


GROWTHS = {
    "subscriptions": Growth("subscriptions of one client", (100, 10_000, 100_000), 200_000, subscriptions),
    "numbered": Growth("subscriptions, number last", (100, 10_000, 100_000), 200_000, numbered),
    "wildcard": Growth("subjects under one wildcard", (100, 10_000, 100_000), 500_000, under_wildcard),
    "middle": Growth("subjects with a wildcard in the middle", (100, 10_000, 100_000), 200_000, around_wildcard),
    "connections": Growth("connections, silent", (10, 1000, 10_000), 500_000, connections),
    "talkers": Growth("connections that publish in turn", (100, 1000, 10_000), 50_000, talkers),
    "listeners": Growth("connections that listen to one subject", (100, 1000, 10_000), 50_000, listeners),
    "subjects": Growth("subjects in a stream", (1000, 100_000, 1_000_000), 50_000, subjects),
    "stored": Growth("messages in a stream: gets", (10_000, 1_000_000, 10_000_000), 20_000, stored),
    "streams": Growth("streams", (100, 1000, 5000), 20_000, streams),
    "streams-unsynced": Growth("streams, acked from the page cache", (100, 1000, 5000), 20_000, streams, UNSYNCED),
    "streams-synced": Growth("streams, acked from the disk", (100,), 2_000, streams, "always"),
    "consumers": Growth("consumers", (100, 10_000, 50_000), 20_000, consumers),
}


def flags_of(growth: Growth, directory: str) -> list[str]:
    """The flags of a server with streams in `directory`."""
    if not growth.sync_interval:
        return ["-js", "-sd", directory]
    file = Path(directory, "server.conf")
    file.write_text(f'jetstream {{ store_dir: "{directory}/store", sync_interval: "{growth.sync_interval}" }}\n')
    return ["-c", str(file)]


def run(growth: Growth, start: Callable[..., Contestant], size: int, messages: int) -> Cost:
    with tempfile.TemporaryDirectory() as directory:
        with start(*flags_of(growth, directory), start_timeout=START_TIMEOUT) as server:
            with socket.create_connection(("127.0.0.1", server.port), 60) as link:
                ask_jetstream(link)  # ours loads it after its greeting: no memory of what is measured
            return growth.measure(server, size, messages)


def show(growth: Growth, sizes: Sequence[int], found: dict[str, list[Cost]]) -> list[str]:
    """The lines of one row; a bar says how CPU a message compares with that at the smallest size."""
    lines = [f"{growth.title}: server CPU us/message"]
    for name, costs in found.items():
        for size, cost in zip(sizes, costs, strict=True):
            times = cost.cpu / costs[0].cpu
            bytes_each, made_each = cost.bytes / size, 1e6 * cost.made / size
            bar = "#" * min(60, round(10 * times))
            lines.append(
                f"  {name:<12}{size:>10,}  {cost.cpu:>8.3f}  {times:>5.2f}x  {bytes_each:>9,.0f} bytes"
                f"  {made_each:>8.2f} us each  {bar}"
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench growth", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small sizes: only proves that it runs")
    parser.add_argument("--rows", default=",".join(GROWTHS), help="some of " + ", ".join(GROWTHS))
    parser.add_argument("--largest", type=int, default=1 << 60, help="leave out sizes above this")
    parser.add_argument("--ours", action="store_true", help="without nats-server")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    print(f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}\n", flush=True)
    starts: dict[str, Callable[..., Contestant]] = {"headwater": start_headwater, "nats-server": start_nats_server}
    if arguments.ours:
        del starts["nats-server"]
    over = []
    for name in arguments.rows.split(","):
        growth = GROWTHS[name]
        began = time.monotonic()
        sizes = (10,) if arguments.smoke else tuple(size for size in growth.sizes if size <= arguments.largest)
        messages = 500 if arguments.smoke else growth.messages
        found: dict[str, list[Cost]] = {server: [] for server in starts}
        for size in sizes:
            for server, start in starts.items():
                found[server].append(run(growth, start, size, messages))
        print("\n".join(show(growth, sizes, found)), flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
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
