"""Runs whole benchmarks and puts their output into their sections of RESULTS.md: `./hw bench --record [NAME ...]`.

A section begins with a heading that names its command and contains one fenced block, which belongs to the command: it is
replaced as a whole and must not be edited. The text around it explains the figures and is kept. A block states the commit,
whether the tree had changes, the date, the load before the run and the speed of the machine during it, so that two runs are
never mistaken for one measurement.
A benchmark that fails leaves its section unchanged, and sets the exit code. Without names all are run but the campaigns:
those look for faults, take hours, and are recorded by name. Afterwards the parts of the documents that are computed from the
blocks are generated again.
"""

import datetime
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import machine_speed

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


def record(name: str) -> bool:
    """Run one benchmark, print its output, and record it. False when it failed."""
    heading = f"{state_of_the_tree()}, {datetime.date.today()}, load average before {os.getloadavg()[0]:.2f}"
    command = [sys.executable, str(Path(__file__).with_name(f"bench_{name}.py")), *OPTIONS.get(name, [])]
    print(f"{name}: {heading}", flush=True)
    with machine_speed.Probe() as speed:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LONGEST)
    heading += f"\nthe machine meanwhile: {speed}"
    print(heading, flush=True)
    print(done.stdout, flush=True)
    if done.returncode:
        return False
    RESULTS.write_text(replaced(RESULTS.read_text(), name, f"{heading}\n{done.stdout}"))
    return True


def main(names: Sequence[str]) -> int:
    known = sections(RESULTS.read_text())
    chosen = names or [name for name in known if name not in CAMPAIGNS]
    if unknown := sorted(set(chosen) - set(known)):
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = [name for name in chosen if not record(name)]
    if len(failed) < len(chosen):  # docs/scale.md has tables that are computed from the blocks
        subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py")], check=True)
    if failed:
        print(f"failed, and not recorded: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
