"""CPU time and rate of our broker against nats-server, on this machine, in this run: `./hw bench broker`.

Both servers run all the time; within a case the repetitions alternate A B A B, so that other load on the machine affects
both. The figure to judge by is the server's CPU microseconds per delivered message (per published one without subscribers):
unlike a rate, it hardly depends on other load. A ratio is nats-server's figure divided by ours for CPU, and ours divided by
nats-server's for rates, so above 1 we are better and below 1 worse; both are printed. The range after a ratio covers its
repetitions.

`relay` is the floor (relay.py): a process that does only the indispensable work; the last column has its CPU divided by
ours. It is compiled when the benchmark starts, is left out without a compiler, and has no TLS.

`--interpreted` measures our broker without compiled modules; the row `interpreted` does so for the cases where nothing
repeats, which cost it most. The rows `start`, `idle` and `flat` show the costs of a broker
other than its traffic (broker_footprint.py).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import broker_footprint
from contestants import (
    Contestant,
    build_relay,
    configured,
    describe_machine,
    refuse_interpreted,
    start_headwater,
    start_nats_server,
    start_relay,
)
from load_generator import Outcome, Spec

RUN_TIMEOUT = 120.0  # seconds for one run of the generator; the longest takes about two
SMOKE_MESSAGES = 2000
SMOKE_REQUESTS = 50


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the table. `messages` is chosen to take nats-server about a second."""

    name: str
    what: str
    shape: dict[str, Any]
    setting: str = "plain"  # the configuration of both servers: `contestants.SETTINGS`


CASES = [
    Case("pub_128", "publish only, nobody listens", {"payload": 128, "messages": 2_000_000, "subscribers": 0}),
    Case("pub_1024", "the same with 1 KiB", {"payload": 1024, "messages": 500_000, "subscribers": 0}),
    Case("1to1_16", "1 publisher, 1 subscriber", {"payload": 16, "messages": 1_000_000}),
    Case("1to1_128", "1 publisher, 1 subscriber", {"payload": 128, "messages": 1_000_000}),
    Case("1to1_1024", "1 publisher, 1 subscriber", {"payload": 1024, "messages": 300_000}),
    Case("1to8_128", "1 publisher, 8 subscribers", {"payload": 128, "messages": 200_000, "subscribers": 8}),
    Case(
        "4to4_128",
        "4 pairs, a subject each",
        {"payload": 128, "messages": 1_000_000, "publishers": 4, "subscribers": 4, "own_subjects": True},
    ),
    Case("headers_128", "HPUB with 2 headers", {"payload": 128, "messages": 500_000, "headers": True}),
    Case("wild1k_128", "1,000 subjects under bench.>", {"payload": 128, "messages": 500_000, "subjects": 1000}),
    Case("wild100k_128", "100,000 subjects under bench.>", {"payload": 128, "messages": 300_000, "subjects": 100_000}),
    Case("varied_128", "no two control lines in a row alike", {"payload": 128, "messages": 1_000_000, "varied": True}),
    Case("rtt1_128", "request/reply, 1 at a time", {"payload": 128, "messages": 5_000, "request_reply": True}),
    Case(
        "rtt64_128",
        "request/reply, 64 at a time",
        {"payload": 128, "messages": 64_000, "request_reply": True, "outstanding": 64},
    ),
    Case("single_128", "one message per write", {"payload": 128, "messages": 100_000, "write_size": 0}),
    Case(
        "200to200_128",
        "200 pairs, writes of 1.25 KiB",
        {
            "payload": 128,
            "messages": 400_000,
            "publishers": 200,
            "subscribers": 200,
            "own_subjects": True,
            "write_size": 1280,
        },
    ),
    Case(
        "8to100_128",
        "8 publishers send one message each to 100 subscribers, and again",
        {"payload": 128, "messages": 4_000, "publishers": 8, "subscribers": 100, "in_step": True},
    ),
    Case("users_128", "1to1_128 with user and password", {"payload": 128, "messages": 1_000_000}, "users"),
    Case("permissions_128", "1to1_128 with permissions", {"payload": 128, "messages": 1_000_000}, "permissions"),
    Case(
        "allowed_128",
        "varied_128 with permissions",
        {"payload": 128, "messages": 400_000, "varied": True},
        "permissions",
    ),
    Case("tls_128", "1to1_128 over TLS", {"payload": 128, "messages": 300_000, "tls": True}, "tls"),
]
RELAY_CASES = frozenset(case.name for case in CASES if case.setting != "tls")
RELAY_GOAL = 1.15  # for the geometric mean of GOAL_CASES against the relay
# Goals of single rows. Rows with a relay that have no goal are listed by "Above the relay's CPU".
GOALS = {
    "pub_1024": {"the relay's CPU by ours": 1.0},
    "1to1_1024": {"the relay's CPU by ours": 1.0},
    "wild1k_128": {"the relay's CPU by ours": 1.0},
    "rtt64_128": {"the relay's CPU by ours": 0.9, "our p99 by the relay's": 1.5},
    "single_128": {"the relay's CPU by ours": 1.0, "nats-server's CPU by ours": 1.2, "our rate by nats-server's": 1.0},
    "200to200_128": {
        "the relay's CPU by ours": 1.0,
        "nats-server's CPU by ours": 1.2,
        "our rate by nats-server's": 1.0,
    },
}
INTERPRETED = ("varied_128", "wild1k_128", "rtt64_128")
INTERPRETED_GOAL = 0.3  # nats-server's CPU by ours
UPPER = frozenset({"our p99 by the relay's"})  # of these, less is better
# Batched traffic with a subscriber: what the goals for the geometric mean are about.
GOAL_CASES = ("1to1_16", "1to1_128", "1to1_1024", "1to8_128", "4to4_128", "headers_128", "wild1k_128", "wild100k_128")


@dataclass(frozen=True, slots=True)
class Figures:
    """One server's results in one case: all repetitions."""

    outcomes: list[Outcome]

    @property
    def cpu(self) -> list[float]:
        """CPU microseconds of the server per message."""
        return [1e6 * outcome.server_cpu / count_messages(outcome) for outcome in self.outcomes]

    @property
    def rate(self) -> list[float]:
        """Messages per second."""
        return [count_messages(outcome) / outcome.seconds for outcome in self.outcomes]

    @property
    def generator_share(self) -> float:
        """The generator's CPU time divided by the server's: if it is not far below 1, the generator was measured, too."""
        return statistics.median(outcome.generator_cpu / outcome.server_cpu for outcome in self.outcomes)

    @property
    def tick_error(self) -> float:
        """The deviation of the cross-check, relative to the scheduler's figure, over all repetitions together."""
        scheduled = sum(outcome.server_cpu for outcome in self.outcomes)
        return abs(sum(outcome.server_cpu_ticks for outcome in self.outcomes) - scheduled) / scheduled


def count_messages(outcome: Outcome) -> int:
    """Delivered messages, or published ones without subscribers."""
    return outcome.delivered or outcome.published


def run_generator(case: Case, server: Contestant, *, smoke: bool) -> Outcome:
    """One run in its own process. A failing generator ends the benchmark, because its figures would be wrong."""
    shape = dict(case.shape)
    if smoke:
        shape["messages"] = SMOKE_REQUESTS if "request_reply" in shape or "in_step" in shape else SMOKE_MESSAGES
    spec = json.dumps(asdict(Spec(port=server.port, pid=server.pid, **shape)))
    command = [sys.executable, str(Path(__file__).with_name("load_generator.py")), spec]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{case.name} on {server.name}: {error.stderr.strip()}") from error
    except subprocess.TimeoutExpired as error:
        raise SystemExit(f"{case.name} on {server.name}: no result within {RUN_TIMEOUT:.0f} s") from error
    return Outcome(**json.loads(done.stdout))


def measure(case: Case, servers: Sequence[Contestant], repetitions: int, *, smoke: bool) -> list[Figures]:
    """Run A B A B …; returns one Figures for each server, in order."""
    outcomes: list[list[Outcome]] = [[] for _ in servers]
    for _ in range(repetitions):
        for server, results in zip(servers, outcomes, strict=True):
            results.append(run_generator(case, server, smoke=smoke))
    return [Figures(results) for results in outcomes]


def ratio_of(better: list[float], worse: list[float]) -> tuple[float, float, float]:
    """The ratio of the medians, and the lowest and highest ratio of paired repetitions."""
    pairs = [above / below for above, below in zip(better, worse, strict=True)]
    return statistics.median(better) / statistics.median(worse), min(pairs), max(pairs)


def spell(values: list[float], scale: float = 1.0, digits: int = 3) -> str:
    low, middle, high = (
        f"{value / scale:.{digits}f}" for value in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low}-{high})"


HEADINGS = (
    f"{'case':<12} {'CPU us/message: nats-server':<29}{'headwater':<24}{'ratio':<18}{'rate ratio':<18}"
    f"{'relay':<22}{'relay/headwater'}"
)
Row = list[Figures]  # nats-server, headwater, and the relay if it takes part
# What a goal is about: its value, or None where the relay does not take part.
REACHED: dict[str, Callable[[Row], float | None]] = {
    "nats-server's CPU by ours": lambda row: ratio_of(row[0].cpu, row[1].cpu)[0],
    "our rate by nats-server's": lambda row: ratio_of(row[1].rate, row[0].rate)[0],
    "the relay's CPU by ours": lambda row: ratio_of(row[2].cpu, row[1].cpu)[0] if len(row) > 2 else None,
    "our p99 by the relay's": lambda row: delay_of(row[1], "p99") / delay_of(row[2], "p99") if len(row) > 2 else None,
}


def print_row(case: Case, row: Row) -> None:
    real, ours = row[:2]
    cpu, cpu_low, cpu_high = ratio_of(real.cpu, ours.cpu)
    rate, rate_low, rate_high = ratio_of(ours.rate, real.rate)
    floor = "-"
    if len(row) > 2:
        least, least_low, least_high = ratio_of(row[2].cpu, ours.cpu)
        floor = f"{spell(row[2].cpu):<22}{least:.2f}x ({least_low:.2f}-{least_high:.2f})"
    print(
        f"{case.name:<12} {spell(real.cpu):<29}{spell(ours.cpu):<24}"
        f"{f'{cpu:.2f}x ({cpu_low:.2f}-{cpu_high:.2f})':<18}{f'{rate:.2f}x ({rate_low:.2f}-{rate_high:.2f})':<18}{floor}"
    )
    unit = "k/s"
    print(
        f"{'':<12} {spell(real.rate, 1000, 0) + ' ' + unit:<29}{spell(ours.rate, 1000, 0) + ' ' + unit:<24}{case.what}"
    )
    if case.shape.get("request_reply") or case.shape.get("in_step"):
        waits = [f"p50 {delay_of(one, 'p50'):.0f} p99 {delay_of(one, 'p99'):.0f} us" for one in row]
        print(f"{'':<12} {waits[0]:<29}{waits[1]:<24}{'':<36}{''.join(waits[2:])}".rstrip())


def delay_of(figures: Figures, part: Literal["p50", "p99"]) -> float:
    """The median over the repetitions, in microseconds."""
    return statistics.median(one.p50 if part == "p50" else one.p99 for one in figures.outcomes)


def judge_goals(results: dict[str, Row]) -> list[str]:
    """Each goal of a single row: met or missed, and by what figures."""
    lines = []
    for name, goals in GOALS.items():
        if name not in results:
            continue
        for what, goal in goals.items():
            if (value := REACHED[what](results[name])) is not None:
                met = value <= goal if what in UPPER else value >= goal
                bound = "at most" if what in UPPER else "at least"
                lines.append(f"{name}: {what} {value:.2f}x, {bound} {goal}x: {'met' if met else 'MISSED'}")
    return lines


def summarise(results: dict[str, Row], *, smoke: bool) -> list[str]:
    """The sentences below the table, which report losses as plainly as wins."""
    if smoke:
        return ["Smoke run: it proves that the benchmark runs; its figures mean nothing."]
    cpu = {name: ratio_of(real.cpu, ours.cpu)[0] for name, (real, ours, *_) in results.items()}
    rate = {name: ratio_of(ours.rate, real.rate)[0] for name, (real, ours, *_) in results.items()}
    cpu_mean, rate_mean = statistics.geometric_mean(cpu.values()), statistics.geometric_mean(rate.values())
    lines = [
        f"Geometric mean over {len(cpu)} cases: CPU efficiency {cpu_mean:.2f}x, rate {rate_mean:.2f}x nats-server's."
    ]
    lost = [f"{name} CPU {value:.2f}x" for name, value in cpu.items() if value < 1]
    lost += [f"{name} rate {value:.2f}x" for name, value in rate.items() if value < 1]
    lines.append(f"Lost to nats-server: {', '.join(lost) if lost else 'no case'}.")
    if all(name in cpu for name in GOAL_CASES):
        mean = statistics.geometric_mean(cpu[name] for name in GOAL_CASES)
        lines.append(f"Batched cases with a listener ({', '.join(GOAL_CASES)}): {mean:.2f}x; the goal is 3x.")
    floor = {name: ratio_of(row[2].cpu, row[1].cpu)[0] for name, row in results.items() if len(row) > 2}
    if all(name in floor for name in GOAL_CASES):
        mean = statistics.geometric_mean(floor[name] for name in GOAL_CASES)
        lines.append(f"The same cases against the relay: {mean:.2f}x; the goal is {RELAY_GOAL}x.")
    if floor:
        dear = sorted((value, name) for name, value in floor.items() if value < 1)
        listed = ", ".join(f"{name} {value:.2f}x" for value, name in dear)
        lines.append(f"Above the relay's CPU: {listed or 'no case'}.")
    lines += judge_goals(results)
    shares = ", ".join(
        f"{name} {max(real.generator_share, ours.generator_share):.2f}" for name, (real, ours, *_) in results.items()
    )
    apart = max(one.tick_error for row in results.values() for one in row[:2])
    lines.append(f"Generator CPU by server CPU, the higher of the two: {shares}.")
    lines.append(f"schedstat against utime+stime: at most {apart:.1%} apart.")
    return lines


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hw bench broker", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one repetition: only proves that it runs")
    names = [*(case.name for case in CASES), "interpreted", *broker_footprint.ROWS]
    parser.add_argument("--cases", default="", help=f"comma-separated, of: {','.join(names)}")
    parser.add_argument("--repetitions", type=int, default=5, help="for each server and case (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument(
        "--allow-interpreted", action="store_true", help="measure our broker even where it is not compiled"
    )
    parser.add_argument("--interpreted", action="store_true", help="measure our broker as it runs without a compiler")
    return parser.parse_args()


def choose_cases(names: str) -> list[Case]:
    """The selected cases, in the table's order; part of a name is enough (`1to1`)."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    chosen = [case for case in CASES if not wanted or any(name in case.name for name in wanted)]
    if not chosen and not choose_rows(names):
        raise SystemExit(f"no case matches {names!r}; there are {', '.join(case.name for case in CASES)}")
    return chosen


def choose_rows(names: str) -> list[str]:
    """The selected rows other than traffic."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    return [row for row in ("interpreted", *broker_footprint.ROWS) if not wanted or row in wanted]


def measure_interpreted(repetitions: int, *, smoke: bool) -> list[str]:
    """The row `interpreted`: our broker as it runs without a compiler."""
    lines = []
    with start_nats_server() as real, start_headwater(interpreted=True) as ours:
        for case in (case for case in CASES if case.name in INTERPRETED):
            theirs, mine = measure(case, (real, ours), repetitions, smoke=smoke)
            ratio, low, high = ratio_of(theirs.cpu, mine.cpu)
            verdict = "met" if ratio >= INTERPRETED_GOAL else "MISSED"
            lines.append(
                f"interpreted: {case.name}: CPU us/message: nats-server {spell(theirs.cpu)}, headwater {spell(mine.cpu)},"
                f" {ratio:.2f}x ({low:.2f}-{high:.2f}), at least {INTERPRETED_GOAL}x: {verdict}"
            )
    return lines


def join_relay(stack: ExitStack) -> list[Contestant]:
    """The relay, compiled and started until the stack is left; empty, with a message, when it cannot be compiled."""
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    if missing := build_relay(directory):
        print(f"the relay is NOT compared: it could not be compiled: {missing}", file=sys.stderr, flush=True)
        return []
    return [stack.enter_context(start_relay(directory))]


def main() -> int:
    arguments = parse_arguments()
    cases = choose_cases(arguments.cases)
    if arguments.interpreted:
        mode = "INTERPRETED on purpose"
    else:
        mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; {repetitions} repetitions"
    )
    if not arguments.json:
        print(heading, HEADINGS if cases else "", sep="\n\n")
    results: dict[str, Row] = {}
    with ExitStack() as stack:
        floor = join_relay(stack) if cases and not arguments.interpreted else []
        for setting in dict.fromkeys(case.setting for case in cases):
            with (
                configured(setting) as options,
                start_nats_server(*options) as real,
                start_headwater(*options, interpreted=arguments.interpreted) as ours,
            ):
                for case in cases:
                    if case.setting != setting:
                        continue
                    servers = [real, ours, *(floor if case.name in RELAY_CASES else [])]
                    results[case.name] = measure(case, servers, repetitions, smoke=arguments.smoke)
                    if not arguments.json:
                        print_row(case, results[case.name])
                        sys.stdout.flush()
    if results and not arguments.json:
        print("", *summarise(results, smoke=arguments.smoke), sep="\n", flush=True)
    footprint: list[str] = []
    for row in choose_rows(arguments.cases) if not arguments.interpreted else []:
        if row == "interpreted":
            lines = measure_interpreted(repetitions, smoke=arguments.smoke)
        else:
            lines = broker_footprint.measure(row, smoke=arguments.smoke, repetitions=repetitions)
        footprint += lines
        if not arguments.json:
            print("", *lines, sep="\n", flush=True)
    if arguments.json:
        names = ("nats-server", "headwater", "relay")
        rows = {
            case: {name: [asdict(one) for one in figures.outcomes] for name, figures in zip(names, row, strict=False)}
            for case, row in results.items()
        }
        summary = summarise(results, smoke=arguments.smoke) if results else []
        print(json.dumps({"machine": heading, "cases": rows, "summary": [*summary, *footprint]}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
