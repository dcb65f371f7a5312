"""Runs whole benchmarks and puts their output into RESULTS.md: `./hw bench --record [--patience MINUTES] [NAME ...]`.

A section begins with a heading that names its command and contains one fenced block, which belongs to the command: it is
replaced as a whole and must not be edited. The text around it explains the figures and is kept. A block states the commit,
whether the tree had changes, the date, the load before the run and the speed of the machine during it, so that two runs are
never mistaken for one measurement. With patience a block waits for a quiet machine (`patience.py`), and is taken again
if that did not stay quiet; the run at the better speed is kept, whatever its figures, and the heading says so.
A benchmark that fails leaves its section unchanged, and sets the exit code. Without names all are run but the campaigns:
those look for faults, take hours, and are recorded by name. Afterwards the parts of the documents that are computed from the
blocks are generated again.
"""

import argparse
import datetime
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import machine_speed
from patience import Patience

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
NOTICE = "<!-- Written by `./hw bench --record {name}`. -->"
BLOCK = r"<!-- Written by `\./hw bench --record {name}`\. -->\n```text\n.*?\n```\n"
CAMPAIGNS = ("crash", "fuzz", "simulator", "soak")
# Seconds for one benchmark; of the campaigns, fuzz and simulator take one to two hours on two idle cores.
LONGEST = 4 * 3600.0

OPTIONS = {
    "client": ["--peers", "nats-py,libnats"],
    "crash": ["--points", "1_000_000", "--others", "100_000"],
    "fuzz": ["--seconds", "120", "--inputs", "100_000_000", "--jobs", "2"],
    "simulator": ["--steps", "100_000_000", "--seed", "100_000", "--jobs", "2"],
    "soak": ["--minutes", "30"],
    "spark": ["--peers", "kafka"],
    "stall": ["--repetitions", "1"],
    "streams": ["--operations", "2000"],
}
"""Options of the recorded runs that differ from the defaults. natsrpy takes minutes per row; the
campaigns' counts are a hundred million each."""


def sections(text: str) -> list[str]:
    """The names of the blocks in `text`, in order."""
    return re.findall(r"<!-- Written by `\./hw bench --record (\w+)`\. -->", text)


def replaced(text: str, name: str, printed: str) -> str:
    """`text` with `printed` in the block of `name`. Raises ValueError unless there is exactly one such block."""
    block = f"{NOTICE.format(name=name)}\n```text\n{printed.strip()}\n```\n"
    pattern = re.compile(BLOCK.format(name=re.escape(name)), re.DOTALL)
    found = len(pattern.findall(text))
    if found != 1:
        raise ValueError(f"{name}: {found} blocks in place of one")
    return pattern.sub(lambda _: block, text)


def state_of_the_tree() -> str:
    """The commit, and whether files differ from it, not counting RESULTS.md itself."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = [
        line for line in _git("status", "--porcelain").splitlines() if not line.endswith("benchmarks/RESULTS.md")
    ]
    return f"commit {commit}{' with changes' if changed else ''}"


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.rstrip()


@dataclass
class Run:
    """One run of a benchmark: what goes into its block, and how fast the machine was meanwhile."""

    heading: str
    printed: str
    samples: list[float]
    """Nanoseconds for an addition, as `machine_speed.Probe` took them."""
    speed: str
    seconds: float
    failed: bool

    @property
    def middle(self) -> float:
        """Nanoseconds for an addition: the median."""
        return statistics.median(self.samples)


def run(name: str) -> Run:
    """Run one benchmark and print its output."""
    heading = f"{state_of_the_tree()}, {datetime.date.today()}, load average before {os.getloadavg()[0]:.2f}"
    command = [sys.executable, str(Path(__file__).with_name(f"bench_{name}.py")), *OPTIONS.get(name, [])]
    print(f"{name}: {heading}", flush=True)
    begun = time.monotonic()
    with machine_speed.Probe() as probe:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LONGEST)
    seconds = time.monotonic() - begun
    print(f"the machine meanwhile: {probe}\n{done.stdout}", flush=True)
    return Run(heading, done.stdout, probe.samples, str(probe), seconds, bool(done.returncode))


def record(name: str, patience: Patience) -> bool:
    """Run one benchmark, again if the machine was not quiet and patience is left, and record it. False when it failed."""
    patience.await_quiet()
    taken = run(name)
    other = ""
    if not patience.is_quiet(*taken.samples) and not taken.failed and patience.left >= taken.seconds:
        patience.await_quiet()
        again = run(name)
        patience.spend(again.seconds)
        if again.failed:
            return False
        taken, left_out = (again, taken) if again.middle < taken.middle else (taken, again)
        other = f"; another run, at {left_out.middle:.0f} ns, is left out"
    if taken.failed:
        return False
    heading = f"{taken.heading}\nthe machine meanwhile: {taken.speed}{other}"
    RESULTS.write_text(replaced(RESULTS.read_text(), name, f"{heading}\n{taken.printed}"))
    return True


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hw bench --record", description="benchmarks, whole, into RESULTS.md")
    parser.add_argument("--patience", type=float, default=0.0, metavar="MINUTES", help="for a quiet machine, in all")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(words)
    known = sections(RESULTS.read_text())
    chosen = options.names or [name for name in known if name not in CAMPAIGNS]
    if unknown := sorted(set(chosen) - set(known)):
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    patience = Patience(options.patience * 60)
    failed = [name for name in chosen if not record(name, patience)]
    if len(failed) < len(chosen):  # docs/scale.md has tables that are computed from the blocks
        subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py")], check=True)
    if failed:
        print(f"failed, and not recorded: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
