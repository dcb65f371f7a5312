"""What a second worker costs, and what it brings: `./hw bench workers`.

One broker of one process and one of two workers (`serve --workers 2 --spread_streams`) run all the time; repetitions
alternate A B A B. The figure to judge by is the CPU of all workers of the broker for each message (each delivery, or each
publish into a stream): rates say little where clients, load generator and workers share two cores. What two workers could do
on two cores of their own follows from it, if work spreads evenly:

    gain = 2 x CPU of one process / CPU of two workers

    the one process      |  core 1: clients             |  core 2: the process
    two workers, run 1   |  core 1: clients, worker 2   |  core 2: worker 1, measured
                 run 2   |  core 1: clients, worker 1   |  core 2: worker 2, measured

**Each worker is measured while it has a core for itself**, as the figure supposes: what it exchanges with clients and
with the other worker goes from core to core. Until 2026-11-27 the kernel placed the processes. It likes to run a lone
broker on its clients' core, where a wake-up is nearly free and what was written is still in the cache: a delivery to one
of eight took 0.031 us there and 0.039 on a core of its own, a request of 64 at a time 0.16 and 0.49. Two workers seldom
fit there, so they were compared with a broker that had no core of its own; and both varied by two times with what the
kernel did. `--unplaced` measures in that way.

A ratio is the median of the ratios of neighbours, a run on one process and the runs on two workers after it, and its
quartiles stand beside the gain.

In the rows of core messages the payload has 128 bytes, and the control lines of a publisher are equal.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from contestants import describe_machine, refuse_interpreted, start_headwater
from load_generator import Failure
from workers_load import NAME, Brokers, Flow, Requests, Stored, Used

DELIVERIES = 4_000_000
STORED = 200_000
REQUESTED = 40_000
REQUESTED_TOGETHER = 320_000
SMOKE_MESSAGES = 4_000
GOAL = 1.7  # of throughput, on two free cores

ACROSS = Flow("4 pairs, across", (1, 1, 2, 2), (2, 2, 1, 1), pairs=True)
ACROSS_IN_TURN = Flow("1 to 1 across, 100 subjects in turn", (1,), (2,), subjects=100)
FLOWS = [
    Flow("1 to 8, four at each worker", (1,), (1, 1, 1, 1, 2, 2, 2, 2)),
    Flow("1 to 32, sixteen at each worker", (1,), (1,) * 16 + (2,) * 16),
    Flow("4 pairs, both at one worker", (1, 1, 2, 2), (1, 1, 2, 2), pairs=True),
    ACROSS,
    ACROSS_IN_TURN,
]
REQUESTS = [Requests("requests across, 1 at a time", 1)]
REQUESTS_TOGETHER = [Requests("requests across, 64 at a time", 64)]
STREAMS = [
    Stored("2 streams, published where they are", elsewhere=False),
    Stored("2 streams, published at the other worker", elsewhere=True),
]
CASES: list[tuple[Sequence[Flow | Requests | Stored], int]] = [
    (FLOWS, DELIVERIES),
    (REQUESTS, REQUESTED),
    (REQUESTS_TOGETHER, REQUESTED_TOGETHER),
    (STREAMS, STORED),
]
WITH_GOAL = (FLOWS[0].name, STREAMS[0].name)


def start(stack: ExitStack, directory: Path, count: int) -> Brokers:
    """A broker of so many workers, whose streams are spread over them."""
    options = ["--name", NAME, "-js", "-sd", str(directory / str(count))]
    if count > 1:
        options += ["--workers", str(count), "--spread_streams"]
    return Brokers(stack.enter_context(start_headwater(*options)), count)


def run(case: Flow | Requests | Stored, broker: Brokers, messages: int, unplaced: bool) -> Used:
    """The CPU of all workers, each measured in a run in which it has a core for itself, and the mean rate of these."""
    if unplaced:
        return case.run(broker, messages)
    each = [case.run(broker.with_a_core_for(worker), messages) for worker in range(1, broker.workers + 1)]
    return Used(sum(one.cpu for one in each), statistics.mean(one.rate for one in each))


def spell(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def describe(name: str, alone: list[Used], together: list[Used]) -> str:
    """The line of one row."""
    ratios = [two.cpu / one.cpu for one, two in zip(alone, together, strict=True)]
    ratio = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratio] * 3
    gain = 2 / ratio
    verdict = f"  goal {GOAL:g}x: {'met' if gain >= GOAL else 'MISSED'}" if name in WITH_GOAL else ""
    cpu = "".join(f"{spell([one.cpu for one in used], 3):<24}" for used in (alone, together))
    rate = " / ".join(f"{statistics.median(one.rate for one in used) / 1000:.0f}" for used in (alone, together))
    return f"{name:<42}{cpu}{ratio:<8.2f}{f'{gain:.2f}x ({2 / high:.2f}-{2 / low:.2f})':<20}{rate}{verdict}"


def describe_crossing(rows: dict[str, list[list[Used]]]) -> str:
    """What a message that crosses costs more than one that stays, in both workers together."""
    more = []
    for flow in (ACROSS, ACROSS_IN_TURN):
        alone, together = (statistics.median(one.cpu for one in used) for used in rows[flow.name])
        more.append(f"{together - alone:.3f} us")
    return f"crossing costs both workers {more[0]} more a message, of many with one control line, and {more[1]} in turn"


def main() -> int:
    parser = argparse.ArgumentParser(prog="hw bench workers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a few messages: only proves that it runs")
    parser.add_argument("--cases", default="", help="comma-separated parts of names: 1 to 8, pairs, streams, …")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--unplaced", action="store_true", help="let the kernel choose the cores, as until 2026-11-27")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    wanted = [part.strip() for part in arguments.cases.split(",") if part.strip()]
    sizes = [(case, size) for cases, size in CASES for case in cases]
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions"
    )
    rows: dict[str, list[list[Used]]] = {}
    if not arguments.json:
        print(
            heading,
            f"\n{'CPU us/message of all workers':<42}{'1 process':<24}{'2 workers':<24}{'ratio':<8}{'gain':<20}k/s",
            sep="\n",
        )
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        brokers = [start(stack, Path(directory), count) for count in (1, 2)]
        for case, messages in sizes:
            if wanted and not any(part in case.name for part in wanted):
                continue
            row = rows[case.name] = [[] for _ in brokers]
            for _ in range(repetitions):
                for used, broker in zip(row, brokers, strict=True):
                    used.append(run(case, broker, SMOKE_MESSAGES if arguments.smoke else messages, arguments.unplaced))
            if not arguments.json:
                print(describe(case.name, *row), flush=True)
    if arguments.json:
        print(json.dumps({"machine": heading, "rows": rows}, indent=1))
        return 0
    print("", *([describe_crossing(rows)] if {ACROSS.name, ACROSS_IN_TURN.name} <= rows.keys() else []), sep="\n")
    print(
        "gain: messages a second of two workers on two free cores by those of one process on one, if CPU is what ends it"
    )
    print("Smoke run: its figures mean nothing." if arguments.smoke else "")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as error:
        sys.exit(f"bench workers: {error}")
