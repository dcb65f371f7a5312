"""The campaign: lives of a simulated cluster, one seed after the other.

    PYTHONPATH=build/compiled/lib:tests .venv/bin/python -m simulator.run --steps 1_000_000 [--life 50_000] [--seed 1]

Every life has `--life` steps under faults, a step being one callback of the event loop. It stops at the first broken
promise and says the seed; the same command with this seed and a life of the same length does the same again
(PYTHONHASHSEED is set for that; --trace writes every step to a file).
"""

import argparse
import gc
import logging
import os
import sys
import time
from collections import Counter

from simulator.scenario import Scenario

_KINDS = "acknowledged confirmed queue core keys watched batches sums scheduled mirrored"
KINDS = tuple(_KINDS.split())  # promises; each has to be tested


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=lambda text: int(text.replace("_", "")), default=1_000_000)
    parser.add_argument("--life", type=lambda text: int(text.replace("_", "")), default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", help="write what happened in the (last) life to this file")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # it determines the order of sets of strings
        os.execve(
            sys.executable,
            [sys.executable, "-m", "simulator.run", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    logging.disable(logging.CRITICAL)
    done, lives, seed = 0, 0, arguments.seed
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    while done < arguments.steps:
        scenario = Scenario(seed, nodes=1 + seed % 3)
        if arguments.trace:
            scenario.world.loop.trace = []
        try:
            scenario.run(arguments.life)
        except BaseException:
            print(f"seed {seed} (life of {arguments.life}) at step {scenario.world.loop.steps}", flush=True)
            print("\n".join(scenario.world.notes[-15:]), flush=True)
            raise
        finally:
            if arguments.trace:
                with open(arguments.trace, "w", encoding="utf-8") as out:
                    out.write("\n".join([*(scenario.world.loop.trace or []), "", *scenario.world.notes]))
        done += scenario.world.loop.steps
        lives += 1
        seed += 1
        counts.update(scenario.ledger.counts)
        counts["deaths"] += sum("dies" in note for note in scenario.world.notes)
        del scenario
        gc.collect()
    seconds = time.perf_counter() - started
    missing = [name for name in KINDS if not counts[name]]
    if missing:
        sys.exit(f"none was {', none was '.join(missing)}: these lives prove nothing")
    reported = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{done} steps in {lives} lives, {seconds:.0f} s: no promise was broken ({reported})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
