"""Coverage-guided fuzzing of the parsers that strangers reach: `./hw bench fuzz [--seconds N] [--targets a,b] [--keep]`.

One process for each target (tests/fuzz/targets.py), one after the other, under atheris: libFuzzer with the branches of our
interpreted modules as its guide. Inputs that reach something new go into a scratch corpus; `--keep` merges them into
tests/fuzz/corpus, a small set, none above LONGEST bytes. Prints inputs, inputs a second and branches for each; what fails
is written beside the corpus of its target, and the exit code says so.

atheris comes from requirements/fuzz.txt on first use. A smoke run without it says so, and replays the corpus alone.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "fuzz"
CORPUS = HERE / "corpus"
LONGEST = 2048  # bytes of an input
MOST_KEPT = 40  # inputs of a target in the repository, the shortest of those that were found
DONE = re.compile(rb"Done (\d+) (?:runs|in)")
STATE = re.compile(rb"#(\d+)\s+\S+\s+cov: (\d+)")


def child(name: str, arguments: list[str]) -> None:
    """In the process of a target: instrument, then fuzz until libFuzzer has enough; `replay` runs the corpus alone."""
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    if arguments == ["replay"]:
        replayed: Any = import_module("targets")
        for path in sorted((CORPUS / name).iterdir()):
            replayed.TARGETS[name](path.read_bytes())
        return
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["headwater"]):
        targets: Any = import_module("targets")
    atheris.Setup([sys.argv[0], *arguments], targets.TARGETS[name])
    atheris.Fuzz()


def environment() -> dict[str, str]:
    """Of a child: the sources, which alone can be instrumented."""
    return {**os.environ, "HEADWATER_INTERPRETED": "1", "PYTHONPATH": str(ROOT / "src")}


def has_atheris(*, install: bool) -> bool:
    """Whether it is there, or could be installed."""
    if importlib.util.find_spec("atheris") is not None:
        return True
    wanted = str(ROOT / "requirements" / "fuzz.txt")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", wanted]
    return install and subprocess.call(command, timeout=600) == 0


def fuzz(name: str, seconds: int, scratch: Path) -> tuple[bool, int, int]:
    """(whether nothing failed, inputs, branches) of one target."""
    found, kept = scratch / name, CORPUS / name
    found.mkdir()
    kept.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={kept}/failed-",
        "-rss_limit_mb=4096",
    ]
    command = [sys.executable, __file__, "--child", name, *options, str(found), str(kept)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), timeout=seconds + 300
    )
    states = STATE.findall(done.stdout)
    inputs, branches = (int(part) for part in states[-1]) if states else (0, 0)
    if done.returncode:
        print(done.stdout.decode(errors="replace")[-4000:])
    return done.returncode == 0, inputs, branches


def keep(name: str, scratch: Path) -> int:
    """Put what was found into the corpus of the repository; returns how many inputs that has then."""
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


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3:])
        return 0
    known = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
    parser = argparse.ArgumentParser(prog="hw bench fuzz", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--targets", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--keep", action="store_true", help="merge what was found into tests/fuzz/corpus")
    parser.add_argument("--smoke", action="store_true", help="a second for each target: only proves that it runs")
    arguments = parser.parse_args()
    if not has_atheris(install=not arguments.smoke):
        print("atheris is not installed: the corpus is replayed, nothing is searched for")
        command = [sys.executable, __file__, "--child"]
        return max(subprocess.call([*command, name, "replay"], env=environment()) for name in known)
    if arguments.smoke:
        arguments.seconds = 1
    print(f"{'target':<14}{'inputs':>12}{'a second':>10}{'branches':>10}")
    failed = []
    total = 0
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.targets.split(","):
            good, inputs, branches = fuzz(name, arguments.seconds, Path(directory))
            total += inputs
            kept = f"  {keep(name, Path(directory))} kept" if arguments.keep and good else ""
            rate = inputs / max(1, arguments.seconds)
            print(f"{name:<14}{inputs:>12,}{rate:>10,.0f}{branches:>10,}{kept}{'' if good else '  FAILED'}", flush=True)
            failed += [] if good else [name]
    print(f"{total:,} inputs; {'failed: ' + ', '.join(failed) if failed else 'none failed'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
