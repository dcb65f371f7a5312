"""Fuzzing of the parsers that strangers reach: `./hw bench fuzz [--seconds N] [--inputs N] [--jobs N] [--targets a,b]`.

Each target (tests/fuzz/targets.py) is fuzzed twice, in separate processes, one after the other; the second half is repeated
on all targets until there were `--inputs` in all:

    guided      under atheris: libFuzzer, guided by the branches of our interpreted modules
    compiled    inputs found before and those in tests/fuzz/corpus, changed at random, through the modules as shipped; this
                is unguided, but twenty times faster, and the only way to test what Cython made of the source

Long inputs take long, and few branches need more than some lines: of LONG_ONES changed inputs one is made of whole
inputs, the others of their first SHORT bytes. Each runs through all that its target checks, in both halves the same.

Inputs that reach new branches go into a scratch corpus; `--keep` merges them into tests/fuzz/corpus, a small set of inputs
up to LONGEST bytes. Prints inputs, inputs per second and branches for each; a failing input is written to the corpus of its
target, and sets the exit code.

atheris is installed from requirements/fuzz.txt on first use. A smoke run without it says so, and skips the guided half.
"""

import argparse
import faulthandler
import gc
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from contestants import describe_machine

ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "fuzz"
CORPUS = HERE / "corpus"
LONGEST = 2048  # bytes per input
SHORT, LONG_ONES = 192, 16  # of 16 changed inputs one may have LONGEST bytes, the others have up to SHORT
SLOWEST = 60  # seconds; an input that takes longer is a finding
MOST_KEPT = 40  # inputs per target in the repository, the shortest of those found
DONE = re.compile(rb"Done (\d+) runs")
STATE = re.compile(rb"#(\d+)\s+\S+\s+cov: (\d+)")
ROUND = 2000  # inputs between two checks of the clock; all of them follow from one seed
BOUNDARIES = (
    b"\x00",
    b"\xff",
    b"\r\n",
    b"\r",
    b"\n",
    b" ",
    b"\t",
    b"{",
    b"}",
    b"[",
    b'"',
    b":",
    b".",
    b"*",
    b">",
    b"0",
    b"9" * 11,
    b"-1",
)
"""Bytes with a meaning to the parsers."""
BYTES = [bytes((value,)) for value in range(256)]


def child(name: str, arguments: list[str]) -> None:
    """In the process of a target: instrument it, and let libFuzzer run; with `compiled SECONDS FOLDER`, fuzz without
    guidance, and with `killer FOLDER` find what killed the process that did."""
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    if arguments[0] in {"compiled", "killer"}:
        faulthandler.enable()
        target = import_module("targets").TARGETS[name]
        gc.freeze()  # the modules: collections look at inputs only
        if arguments[0] == "compiled":
            change_and_try(name, target, float(arguments[1]), Path(arguments[2]))
        else:
            find_killer(name, target, Path(arguments[1]))
        return
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["headwater"]):
        targets: Any = import_module("targets")
    atheris.Setup([sys.argv[0], *arguments], targets.TARGETS[name])
    atheris.Fuzz()


def change_and_try(name: str, target: Callable[[bytes], None], seconds: float, found: Path) -> None:
    """Feed changed inputs to `target` for `seconds`; prints their number. The first failing input is kept, and ends the
    process. The seed of each round is written down first: see `find_killer`."""
    changes = changes_of(name, found)
    first = time.time_ns()
    tried, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        seed_file(found).write_bytes(b"%d" % (first + tried))
        for data in changes.made(first + tried):
            try:
                target(data)
            except BaseException:
                (CORPUS / name / f"failed-{first + tried}").write_bytes(data)
                raise
        tried += ROUND
    print(f"Done {tried} runs")


def find_killer(name: str, target: Callable[[bytes], None], found: Path) -> None:
    """Feed the round again in which the process of `change_and_try` was killed; each input is kept until the next one."""
    seed = int(seed_file(found).read_bytes())
    kept = CORPUS / name / f"failed-{seed}"
    for data in changes_of(name, found).made(seed):
        kept.write_bytes(data)
        target(data)
    kept.unlink()


def seed_file(found: Path) -> Path:
    return found.with_name(f"{found.name}.seed")


class Changes:
    """Changes `inputs` at random: some bytes are replaced, removed, repeated, or taken from another input."""

    def __init__(self, inputs: list[bytes]) -> None:
        self._whole = sorted(set(inputs))
        self._short = sorted({data[:SHORT] for data in inputs})

    def made(self, seed: int) -> Iterator[bytes]:
        """The ROUND inputs that follow from `seed`."""
        dice = random.Random(seed)
        for at in range(ROUND):
            long = at % LONG_ONES == 0
            yield changed(self._whole if long else self._short, dice, LONGEST if long else SHORT)


def changes_of(name: str, found: Path) -> Changes:
    """Changes of the inputs of a target: those in the corpus, and those that were found in this run."""
    folders = [CORPUS / name, *([found] if found.is_dir() else [])]
    return Changes([path.read_bytes() for folder in folders for path in sorted(folder.iterdir())])


def changed(inputs: list[bytes], dice: random.Random, longest: int) -> bytes:
    """One of `inputs`, changed at one to three places."""
    roll = dice.random
    data = inputs[int(roll() * len(inputs))]
    for _ in range(1 + int(roll() * 3)):
        size, kind = len(data), roll()
        at = int(roll() * (size + 1))
        if kind < 0.4:
            data = data[:at] + BOUNDARIES[int(roll() * len(BOUNDARIES))] + data[at + (kind < 0.3) :]
        elif kind < 0.6:
            data = data[:at] + BYTES[int(roll() * 256)] + data[at + 1 :]
        else:
            end = at + int(roll() ** 3 * (size - at))
            if kind < 0.75:
                data = data[:at] + data[end:]
            elif kind < 0.85:
                data = data[:end] + data[at:]
            else:
                other = inputs[int(roll() * len(inputs))]
                start = int(roll() * len(other))
                data = data[:at] + other[start : start + end - at + 8] + data[end:]
    return data[:longest]


def environment() -> dict[str, str]:
    """The environment of a guided child: only the sources can be instrumented."""
    return {**os.environ, "HEADWATER_INTERPRETED": "1", "PYTHONPATH": str(ROOT / "src")}


def has_atheris(*, install: bool) -> bool:
    """Whether atheris is available, or could be installed."""
    if importlib.util.find_spec("atheris") is not None:
        return True
    wanted = str(ROOT / "requirements" / "fuzz.txt")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", wanted]
    return install and subprocess.call(command, timeout=600) == 0


def fuzz(name: str, seconds: int, scratch: Path) -> tuple[bool, int, int]:
    """(no failure, inputs, branches) for one target."""
    found, kept = scratch / name, CORPUS / name
    found.mkdir()
    kept.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={kept}/failed-",
        f"-timeout={SLOWEST}",
        "-rss_limit_mb=4096",
    ]
    good, received = run([name, *options, str(found), str(kept)], seconds, environment())
    states = STATE.findall(received)
    inputs, branches = (int(part) for part in states[-1]) if states else (0, 0)
    return good, inputs, branches


def run(arguments: list[str], seconds: int, variables: dict[str, str]) -> tuple[bool, bytes]:
    """(success, output) of a child; the output of a failure is printed."""
    command = [sys.executable, __file__, "--child", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables) as process:
        try:
            received = process.communicate(timeout=2 * seconds + 600)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            received = process.communicate()[0] + b"\nit did not end\n"
    if process.returncode:
        print(received.decode(errors="replace")[-4000:])
    return process.returncode == 0, received


def keep(name: str, scratch: Path) -> int:
    """Merge new inputs into the repository's corpus; returns the number of inputs in it."""
    merged = scratch / f"{name}-merged"
    merged.mkdir()
    command = [sys.executable, __file__, "--child", name, "-merge=1", f"-max_len={LONGEST}", str(merged)]
    command += [str(CORPUS / name), str(scratch / name)]
    quiet = subprocess.DEVNULL
    subprocess.run(command, stdout=quiet, stderr=quiet, env=environment(), timeout=600, check=True)
    chosen = sorted(merged.iterdir(), key=lambda path: (path.stat().st_size, path.name))[:MOST_KEPT]
    for old in (CORPUS / name).iterdir():
        if not old.name.startswith("failed-"):
            old.unlink()
    for path in chosen:
        (CORPUS / name / path.name[:12]).write_bytes(path.read_bytes())
    return len(chosen)


def try_compiled(name: str, seconds: int, scratch: Path) -> tuple[bool, int]:
    """(no failure, inputs) for one target."""
    found = str(scratch / name)
    good, received = run([name, "compiled", str(seconds), found], seconds, {**os.environ})
    if not good and b"Traceback (most recent call last)" not in received:  # it crashed, or did not end
        run([name, "killer", found], seconds, {**os.environ})
    counted = DONE.search(received)
    return good, int(counted[1]) if counted else 0


class Tried:
    """What was tried of one target."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.good = True
        self.guided = self.branches = self.compiled = self.rounds = 0

    def guide(self, seconds: int, scratch: Path) -> None:
        """The guided half."""
        self.good, self.guided, self.branches = fuzz(self.name, seconds, scratch)

    def change(self, seconds: int, scratch: Path) -> None:
        """Once more the compiled half."""
        if self.good:
            self.good, inputs = try_compiled(self.name, seconds, scratch)
            self.compiled += inputs
            self.rounds += 1

    def row(self, seconds: int) -> str:
        """Its line of the table."""
        rate = self.compiled / (seconds * max(1, self.rounds))
        return (
            f"{self.name:<14}{self.guided:>15,}{self.guided / seconds:>10,.0f}{self.branches:>10,}"
            f"{self.compiled:>18,}{rate:>10,.0f}"
        )


def campaign(targets: list[Tried], seconds: int, wanted: int, jobs: int, scratch: Path, *, guided: bool) -> int:
    """Try every target; returns the number of inputs."""
    with ThreadPoolExecutor(jobs) as workers:
        if guided:
            list(workers.map(lambda each: each.guide(seconds, scratch), targets))
        total, before = 0, -1
        while total == 0 or before < total < wanted:
            list(workers.map(lambda each: each.change(seconds, scratch), targets))
            before, total = total, sum(each.guided + each.compiled for each in targets)
            if not all(each.good for each in targets):
                break
    return total


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
        return 0
    known = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
    parser = argparse.ArgumentParser(prog="hw bench fuzz", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=60, help="for each half of each target (default: 60)")
    parser.add_argument(
        "--inputs", type=lambda text: int(text.replace("_", "")), default=0, help="at least so many in all"
    )
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--targets", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--keep", action="store_true", help="merge what was found into tests/fuzz/corpus")
    parser.add_argument("--smoke", action="store_true", help="a second for each: only proves that it runs")
    arguments = parser.parse_args()
    guided = has_atheris(install=not arguments.smoke)
    if not guided:
        print("atheris is not installed: nothing is searched for, the corpus is only changed")
    seconds = 1 if arguments.smoke else arguments.seconds
    print(f"{describe_machine()}; load average {os.getloadavg()[0]:.1f}; {seconds} s for each half of each target\n")
    print(
        f"{'target':<14}{'guided inputs':>15}{'a second':>10}{'branches':>10}{'compiled inputs':>18}{'a second':>10}",
        flush=True,
    )
    targets = [Tried(name) for name in arguments.targets.split(",")]
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        total = campaign(targets, seconds, arguments.inputs, arguments.jobs, scratch, guided=guided)
        for each in targets:
            kept = f"  {keep(each.name, scratch)} kept" if arguments.keep and guided and each.good else ""
            print(f"{each.row(seconds)}{kept}{'' if each.good else '  FAILED'}")
    failed = [each.name for each in targets if not each.good]
    print(f"{total:,} inputs; {'failed: ' + ', '.join(failed) if failed else 'none failed'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
