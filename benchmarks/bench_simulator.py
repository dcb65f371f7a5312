"""Lives of a simulated cluster, and what they promised: `./hw bench simulator [--steps N] [--seed N]`.

The campaign of tests/simulator: brokers, disks, clients and network from one seed, the real code, a fault every second or
two of virtual time. A step is one callback of the event loop. Runs lives of 50,000 steps one after the other, in processes
of BATCH steps, and counts the promises kept; the first broken promise ends it, with the seed that reproduces it. A hundred
million steps, `--steps 100_000_000`, take an hour and a quarter of one core, or half of that with `--jobs 2`.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from contestants import describe_machine, refuse_interpreted

ROOT = Path(__file__).parents[1]
LIFE = 50_000  # steps
BATCH = 1_000_000
SEEDS = 1000  # from the first of one batch to that of the next: more than a batch has lives
DONE = re.compile(r"(\d+) steps in (\d+) lives, \d+ s: no promise was broken \((.*)\)")


def run(steps: int, seed: int) -> tuple[int, int, Counter[str]]:
    """(steps, lives, counts) of one process. Raises CalledProcessError when a promise was broken."""
    places = [os.environ.get("PYTHONPATH", ""), str(ROOT / "tests")]
    command = [sys.executable, "-m", "simulator.run", "--steps", str(steps), "--life", str(LIFE), "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), "PYTHONHASHSEED": "0"}
    received = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    found = DONE.search(received.stdout)
    if received.returncode or found is None:
        print(received.stdout[-3000:], flush=True)
        raise subprocess.CalledProcessError(received.returncode or 1, command)
    checks = Counter({name: int(count) for count, name in (part.split(" ", 1) for part in found[3].split(", "))})
    return int(found[1]), int(found[2]), checks


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="hw bench simulator", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--steps", type=lambda text: int(text.replace("_", "")), default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--smoke", action="store_true", help="one life: only proves that it runs")
    parser.add_argument("--allow-interpreted", action="store_true")
    arguments = parser.parse_args()
    mode = refuse_interpreted(allow=arguments.allow_interpreted or arguments.smoke)
    wanted = 2 * LIFE if arguments.smoke else arguments.steps
    print(
        f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; headwater {mode}; from seed {arguments.seed}\n"
    )
    steps = lives = 0
    counts: Counter[str] = Counter()
    began = time.perf_counter()
    batches = range(-(-wanted // BATCH))
    with ThreadPoolExecutor(arguments.jobs) as workers:
        work = [workers.submit(run, min(BATCH, wanted), arguments.seed + SEEDS * number) for number in batches]
        for each in work:
            try:
                more, lived, checks = each.result()
            except subprocess.CalledProcessError:
                workers.shutdown(wait=False, cancel_futures=True)
                print(f"a promise was broken after {steps:,} steps in {lives:,} lives", flush=True)
                return 1
            steps, lives = steps + more, lives + lived
            counts += checks
    seconds = time.perf_counter() - began
    for name, count in sorted(counts.items()):
        print(f"{count:>12,} {name}")
    print(
        f"\n{steps:,} steps in {lives:,} lives, {seconds:.0f} s ({steps / seconds:,.0f} a second): no promise was broken"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
