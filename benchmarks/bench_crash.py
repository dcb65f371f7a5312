"""Power losses and mixed-up files of the log: `./hw bench crash [--points N] [--others N]`.

The campaigns of tests/streams, each case against a model that knows what was acknowledged, what was deleted, and what must
be reported as lost:

    power losses             at every call to the file system, with unsynced writes kept, lost or torn
    and deletions            the same in lives with deletions, limits, rewrites and clean stops
    sectors                  dropped, torn, stale or of another file
    files                    swapped, stale, lost, duplicated, between logs and generations

`--points` is the number of cases of the first kind, `--others` of each of the other three, both in steps of ten thousand.
Seeds are the same in each run. The first broken promise ends the run, and its seed is printed. One core does some thousand
cases a second.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from contestants import describe_machine, refuse_interpreted

ROOT = Path(__file__).parents[1]
STREAMS = ROOT / "tests" / "streams"
STEP = 10_000  # cases
SMOKE_POINTS = 300
CASES_OF_A_LIFE = 25  # mix-ups of one life in tests/streams/test_log_mixups.py
LONGEST = 12 * 3600.0  # seconds

POWER_LOSSES = ("power losses", "test_log_crash.py", "torn", "HEADWATER_CRASH_POINTS", 1)
DELETIONS = ("and deletions", "test_log_deletion.py", "ten_thousand", "HEADWATER_CRASH_POINTS", 1)
SECTORS = ("sectors", "test_log_mixups.py", "whatever_sectors", "HEADWATER_MIXUPS", CASES_OF_A_LIFE)
FILES = ("files", "test_log_mixups.py", "whatever_file", "HEADWATER_MIXUPS", CASES_OF_A_LIFE)
"""Label, test file, selected tests, the variable with their number, and how many cases each of those is."""


def run(kind: tuple[str, str, str, str, int], cases: int) -> bool:
    """Try the cases of one kind in a process of pytest, and print their number; False if a promise was broken."""
    label, file, selected, variable, each = kind
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", selected]
    began = time.perf_counter()
    done = subprocess.run(
        [*command, str(STREAMS / file)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, variable: str(cases // each)},
        timeout=LONGEST,
    )
    seconds = time.perf_counter() - began
    if done.returncode or " passed" not in done.stdout or "rerun" in done.stdout:
        print(f"{label}: a promise was broken\n{done.stdout[-5000:]}", flush=True)
        return False
    print(f"{label:<16}{cases:>12,} cases{cases / seconds:>10,.0f} a second: no promise was broken", flush=True)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hw bench crash", description=__doc__.splitlines()[0] if __doc__ else None)
    number = lambda text: int(text.replace("_", ""))  # noqa: E731
    parser.add_argument("--points", type=number, default=STEP)
    parser.add_argument("--others", type=number, default=STEP)
    parser.add_argument("--smoke", action="store_true", help=f"{SMOKE_POINTS} power losses: only proves that it runs")
    parser.add_argument("--allow-interpreted", action="store_true")
    chosen = parser.parse_args(arguments)
    mode = refuse_interpreted(allow=chosen.allow_interpreted or chosen.smoke)
    print(f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}\n", flush=True)
    if chosen.smoke:
        return int(not run(DELETIONS, SMOKE_POINTS))
    points, others = (max(1, count // STEP) * STEP for count in (chosen.points, chosen.others))
    work = [(POWER_LOSSES, points), (DELETIONS, others), (SECTORS, others), (FILES, others)]
    return int(not all(run(*each) for each in work))


if __name__ == "__main__":
    sys.exit(main())
