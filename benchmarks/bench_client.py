"""CPU time per message of our client against other clients, on nats-server and on our broker: `./hw bench client`.

Each run is a separate process, and its CPU time between the first message and the last is measured (`client_load.py`).
Within a case the contestants alternate A B A B. A ratio is the peer's CPU per message divided by ours, so above 1 we are
better; for requests there is also the ratio of requests per second. Payloads have 128 bytes.

Peers: nats-py with a callback (its fastest way to receive), natsrpy (async-nats under Python), and libnats with a callback
(`libnats_load.py`, compiled here because driving libnats from Python would add Python's cost). libnats takes part if it and
a C compiler are installed (Debian: libnats-dev), and is otherwise reported as absent.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from client_load import HELD, Outcome, Spec
from contestants import (
    Contestant,
    compile_module,
    describe_machine,
    refuse_interpreted,
    start_headwater,
    start_nats_server,
)

RUN_TIMEOUT = 120.0
LOAD = str(Path(__file__).with_name("client_load.py"))


MANY = 250_000  # messages; requests are fewer, and the same number for all
PYTHON_SHARE = 5  # for many messages nats-py gets a fifth, because it needs ten times the CPU for each


@dataclass(frozen=True, slots=True)
class Case:
    """A row: our method, the peers' method, the number of messages for each, and the goal against nats-py."""

    name: str
    ours: str
    theirs: str
    messages: int
    slow_messages: int  # for natsrpy, which needs about 50 us per message
    goal: float
    rate_goal: float = 0.0
    c_goal: float = 0.0  # against libnats

    def messages_of(self, role: str) -> int:
        """The number of messages for one client, so that a run takes at most about a second of its CPU."""
        if role == "natsrpy":
            return self.slow_messages
        return self.messages // PYTHON_SHARE if role == "nats-py" and self.messages >= MANY else self.messages


CASES = [
    Case("publish", "publish", "publish", 400_000, 10_000, 10, c_goal=1.2),
    Case("publish, many", "publish_many", "publish", 400_000, 10_000, 10, c_goal=1.2),
    Case("async for", "iterate", "callback", 250_000, 10_000, 10, c_goal=1.0),
    Case("callback", "callback", "callback", 250_000, 10_000, 10),
    Case("coroutine callback", "coroutine", "callback", 250_000, 10_000, 0),
    Case("batches", "batches", "callback", 250_000, 10_000, 20),
    Case("arrow", "arrow", "callback", 250_000, 10_000, 20),
    Case("request, 64 outstanding", "request64", "request64", 19_200, 3_200, 5, 3),
    Case("request, 1 outstanding", "request1", "request1", 3_000, 1_000, 1.5, c_goal=1.0),
]
FLOOD = Case("flood, nobody reads", "flood", "flood", 200_000, 0, 0)
SMOKE_MESSAGES = 640
BUILD = "what drives it could not be compiled"


class Load:
    """A child process of this benchmark: `client_load.py` with one spec."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._process = subprocess.Popen(
            _command(spec), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            self._fail(self._process.communicate(timeout=RUN_TIMEOUT)[1])

    def result(self, entered: str = "") -> Outcome:
        """Write `entered` to its standard input, and wait for its end."""
        try:
            received, complaints = self._process.communicate(entered, timeout=RUN_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._fail(f"no result within {RUN_TIMEOUT:.0f} s")
        if self._process.returncode != 0:
            self._fail(complaints)
        return Outcome(**json.loads(received.splitlines()[-1]))

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=RUN_TIMEOUT)

    def _fail(self, why: str) -> None:
        raise SystemExit(f"{self._spec.role} {self._spec.case}: {why.strip()[-600:]}")


_libnats: list[str] = []  # the command that runs it, once it is built


def _command(spec: Spec) -> list[str]:
    if spec.role == "libnats":
        return [*_libnats, spec.case, str(spec.port), str(spec.messages)]
    return [sys.executable, LOAD, json.dumps(asdict(spec))]


def build_libnats(directory: Path) -> str:
    """Compile `libnats_load.py` in a directory of its own; returns the reason when that is impossible, else ""."""
    if missing := compile_module(directory, "libnats.pxd", "libnats_load.pxd", "libnats_load.py", timeout=RUN_TIMEOUT):
        return f"{BUILD}: {missing}"
    here = Path(__file__).parent
    drive = f"import sys; sys.path[:0] = {[str(directory), str(here)]}; import libnats_load; libnats_load.main()"
    _libnats[:] = [sys.executable, "-c", drive]
    return ""


def run_once(role: str, way: str, port: int, messages: int, loop: str) -> Outcome:
    """One run, with its feeder or responder if the case needs one."""
    spec = Spec(role, way, port, messages, loop)
    if way.startswith("publish"):
        return Load(spec).result()
    if way.startswith("request"):
        answering = Load(Spec("responder", way, port, 0))
        answering.wait_ready()
        try:
            return Load(spec).result()
        finally:
            answering.stop()
    receiving = Load(spec)
    receiving.wait_ready()
    Load(Spec("feed", way, port, messages)).result()
    return receiving.result("fed\n" if way == "flood" else "")


@dataclass(frozen=True, slots=True)
class Figures:
    """One contestant's results in one case."""

    outcomes: list[Outcome]

    @property
    def cpu(self) -> float:
        """Median CPU microseconds per message."""
        return statistics.median(1e6 * one.cpu / one.messages for one in self.outcomes)

    @property
    def rate(self) -> float:
        """Median messages per second."""
        return statistics.median(one.messages / one.seconds for one in self.outcomes)

    @property
    def memory(self) -> float:
        """The median increase in memory, in MiB."""
        return statistics.median(one.memory for one in self.outcomes)

    def spell(self) -> str:
        values = [1e6 * one.cpu / one.messages for one in self.outcomes]
        return f"{self.cpu:.3g} us ({min(values):.3g}-{max(values):.3g})"


def measure(case: Case, port: int, peers: list[str], repetitions: int, loop: str, *, smoke: bool) -> dict[str, Figures]:
    """Run A B C A B C …"""
    few = SMOKE_MESSAGES + (HELD if case is FLOOD else 0)
    found: dict[str, list[Outcome]] = {role: [] for role in ["headwater", *peers]}
    for _ in range(repetitions):
        for role, outcomes in found.items():
            way = case.ours if role == "headwater" else case.theirs
            messages = few if smoke else case.messages_of(role)
            outcomes.append(run_once(role, way, port, messages, loop))
    return {role: Figures(outcomes) for role, outcomes in found.items()}


def describe(case: Case, figures: dict[str, Figures]) -> list[str]:
    """The lines of one case."""
    ours = figures["headwater"]
    lines = [f"{case.name:<26} headwater {ours.spell():<28} {ours.rate / 1000:.0f} k/s"]
    for role, peer in figures.items():
        if role == "headwater":
            continue
        verdict = ""
        if role == "libnats" and case.c_goal:
            verdict = f"  goal >= {case.c_goal:g}x: {'met' if peer.cpu / ours.cpu >= case.c_goal else 'MISSED'}"
        if role == "nats-py" and case.goal:
            met = peer.cpu / ours.cpu >= case.goal and ours.rate / peer.rate >= case.rate_goal
            wanted = f">= {case.goal:g}x" + (f" and {case.rate_goal:g}x the rate" if case.rate_goal else "")
            verdict = f"  goal {wanted}: {'met' if met else 'MISSED'}"
        lines.append(
            f"{'':<26} {role:<9} {peer.spell():<28} {peer.rate / 1000:.0f} k/s   CPU {peer.cpu / ours.cpu:.1f}x"
            f"  rate {ours.rate / peer.rate:.1f}x{verdict}"
        )
    return lines


def describe_flood(figures: dict[str, Figures]) -> str:
    """One line: the memory used by a flood into a subscription that holds HELD messages."""
    messages = next(iter(figures.values())).outcomes[0].messages
    taken = ", ".join(f"{role} {each.memory:.0f} MiB at {each.spell()}" for role, each in figures.items())
    return f"{FLOOD.name:<26} {messages:,} messages into a subscription that holds {HELD:,}: {taken}"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hw bench client", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one repetition: only proves that it runs")
    parser.add_argument("--cases", default="", help="comma-separated parts of names, of: publish, async for, arrow, …")
    parser.add_argument("--servers", default="nats-server,headwater", help="comma-separated")
    parser.add_argument("--peers", default="nats-py,natsrpy,libnats", help="comma-separated")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--allow-interpreted", action="store_true", help="measure even what is not compiled")
    return parser.parse_args()


def start_server(name: str) -> Contestant:
    return start_nats_server() if name == "nats-server" else start_headwater()


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        return run(parse_arguments(), Path(directory))


def run(arguments: argparse.Namespace, directory: Path) -> int:
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    wanted = [part.strip() for part in arguments.cases.split(",") if part.strip()]
    cases = [case for case in CASES if not wanted or any(part in case.name for part in wanted)]
    peers = [part for part in arguments.peers.split(",") if part]
    repetitions = 1 if arguments.smoke else max(1, arguments.repetitions)
    heading = (
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; {arguments.loop}; headwater {mode};"
        f" {repetitions} repetitions; client CPU per message of 128 bytes"
    )
    absent = ""
    results: dict[str, dict[str, dict[str, Figures]]] = {}
    if "libnats" in peers and (missing := build_libnats(directory)):
        peers.remove("libnats")
        absent = f"libnats is NOT compared: {missing}"
    if not arguments.json:
        print(heading, absent, sep="\n", end="\n\n")
    for name in arguments.servers.split(","):
        results[name] = {}
        with start_server(name) as server:
            for case in cases:
                figures = measure(case, server.port, peers, repetitions, arguments.loop, smoke=arguments.smoke)
                results[name][case.name] = figures
                if not arguments.json:
                    print(f"on {name}: " + "\n".join(describe(case, figures)), flush=True)
            if not wanted or "flood" in wanted:
                roles = [role for role in peers if role == "nats-py"]
                figures = measure(FLOOD, server.port, roles, repetitions, arguments.loop, smoke=arguments.smoke)
                results[name][FLOOD.name] = figures
                if not arguments.json:
                    print(f"on {name}: {describe_flood(figures)}", flush=True)
    if arguments.json:
        rows = {
            server: {case: {role: asdict(one) for role, one in by_role.items()} for case, by_role in by_case.items()}
            for server, by_case in results.items()
        }
        print(json.dumps({"machine": heading, "servers": rows}, indent=1))
    elif arguments.smoke:
        print("\nSmoke run: it proves that the benchmark runs; its figures mean nothing.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
