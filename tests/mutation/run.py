"""A mutation pass: which small mistakes in a package would its own fast tests let through?

    .venv/bin/python tests/mutation/run.py PACKAGE [--sample 200] [--seed 1] [--modules sublist guard]

mutmut makes the mutants (another operator, another number, an argument left out, ...) in a copy of the checkout below
`build/mutation`, and runs those tests of the package's own folder that reach the changed function, interpreted and up to
the first failure. A random sample of the mutants is tried, the same for the same sources, sample and seed. What survives is
left in `build/mutation/<package>/survivors.txt` as diffs: a person has to judge them (docs/testing.md).

Left out: the halves of `if cython.compiled:` that the interpreter never enters, and lines that only word an error or a line
of the log. One process at the lowest priority; a mutant is ended after five times what its tests take and half a minute.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build" / "mutation" / "packages"
MODULES = {
    "wire": ["wire/*.py"],
    "model": ["model/*.py"],
    "streams": ["streams/*.py"],
    "durable_files": ["durable_files/*.py"],
    "consumer": ["jetstream_state/consumer.py"],
    "jetstream_state": ["jetstream_state/*.py"],
    "jetstream_sources": ["jetstream_sources/*.py"],
    "jetstream_room": ["jetstream_room/*.py"],
    "exchange": ["exchange/*.py", "authorization/*.py", "options/*.py"],
    "cluster": ["cluster/*.py"],
    "leaf": ["leaf/*.py"],
    "iggy": ["iggy/*.py"],
}
TESTS = {
    "wire": ["tests/wire"],
    "model": ["tests/model"],
    "streams": ["tests/streams"],
    "durable_files": ["tests/durable_files"],
    "consumer": ["tests/jetstream_state/test_consumer.py", "tests/jetstream/test_delivering.py"],
    "jetstream_state": ["tests/jetstream_state"],
    "jetstream_sources": ["tests/jetstream_sources"],
    "jetstream_room": ["tests/jetstream_room"],
    "exchange": ["tests/exchange", "tests/authorization", "tests/options"],
    "cluster": ["tests/cluster"],
    "leaf": ["tests/leaf"],
    "iggy": ["tests/iggy"],
}
KEPT = ("tests/conftest.py", "tests/support", "tests/vectors", "benchmarks", "docs/log-format.md")
FAST = "not (slow or spark or interop or kill)"
WITH_PEERS = {"cluster", "leaf"}  # most of their tests hold a connection against nats-server, in fractions of a second
WORDING = (r"^\s*raise ", r"logger\.", r"\bhint=", r'^\s*f?"')
SURVIVED = (0, 33)  # exit codes: all tests passed; no test reaches the function
DAY = 86_400


def install() -> None:
    """mutmut, by hash, beside the environment and not in it."""
    done = PACKAGES / "installed"
    pins = ROOT / "requirements" / "mutation.txt"
    if done.exists() and done.read_text() == pins.read_text():
        return
    shutil.rmtree(PACKAGES, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    subprocess.run([*command, "--target", str(PACKAGES), "-r", str(pins)], check=True, timeout=600)
    done.write_text(pins.read_text())


def prepare(package: str, modules: list[str]) -> Path:
    """A copy of what the pass needs, with mutmut's configuration; `modules` are those to mutate, none for all."""
    place = ROOT / "build" / "mutation" / package
    shutil.rmtree(place, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", place / "src", ignore=ignore)
    for name in (*KEPT, *TESTS[package]):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=ignore)
        else:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    for path in (place / "src").rglob("*.py"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(r"(?m)^( *if cython\.compiled:)$", r"\1  # pragma: no mutate block", text), "utf-8")
    marks = FAST.replace("interop or ", "") if package in WITH_PEERS else FAST
    mutated = [f"{package}/{name}.py" for name in modules] or MODULES[package]
    settings = {
        "source_paths": ["src/headwater"],
        "only_mutate": [f"src/headwater/{pattern}" for pattern in mutated],
        "do_not_mutate_patterns": list(WORDING),
        "also_copy": ["benchmarks", "docs"],
        "pytest_add_cli_args_test_selection": TESTS[package],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "--hypothesis-profile", "brief", "-m", marks],
        "use_git_change_detection": False,
        "track_dependencies": False,
        "timeout_constant": 6.0,
        "timeout_multiplier": 5.0,
    }
    pytest = (ROOT / "pyproject.toml").read_text("utf-8").partition("[tool.pytest.ini_options]")[2].partition("\n[")[0]
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    text = "\n".join(["[tool.mutmut]", *lines, "", "[tool.pytest.ini_options]", pytest])
    (place / "pyproject.toml").write_text(text, "utf-8")
    return place


def mutmut(place: Path, *arguments: str) -> str:
    """Its output; it is asked in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(PACKAGES), "HEADWATER_INTERPRETED": "1", "HEADWATER_CHECKOUT": str(ROOT)}
    command = ["nice", "-n", "19", sys.executable, "-P", "-m", "mutmut", *arguments]
    answer = subprocess.run(
        command,
        cwd=place,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DAY,
        check=False,
    )
    with (place / "mutmut.log").open("a", encoding="utf-8") as log:
        log.write(f"$ mutmut {arguments[0]}\n{answer.stdout}\n")
    return answer.stdout


def results(place: Path) -> dict[str, int | None]:
    """Exit codes of the tests, by mutant; None for those that were not tried."""
    found: dict[str, int | None] = {}
    for path in sorted((place / "mutants").rglob("*.meta")):
        found.update(json.loads(path.read_text("utf-8"))["exit_code_by_key"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", choices=list(MODULES))
    parser.add_argument("--sample", type=int, default=200, help="mutants to try; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modules", nargs="*", default=[], help="only these of the package, without .py")
    arguments = parser.parse_args()
    install()
    place = prepare(arguments.package, arguments.modules)
    mutmut(place, "run", "--max-children", "1", "none")  # makes the mutants, and learns which tests reach which
    names = sorted(results(place))
    if not names:
        sys.exit(f"mutmut made no mutants; see {place / 'mutmut.log'}")
    count = min(arguments.sample or len(names), len(names))
    chosen = random.Random(arguments.seed).sample(names, count)
    mutmut(place, "run", "--max-children", "1", *chosen)
    codes = {name: code for name, code in results(place).items() if name in set(chosen)}
    survivors = sorted(name for name, code in codes.items() if code in SURVIVED)
    untried = [name for name, code in codes.items() if code is None]
    with (place / "survivors.txt").open("w", encoding="utf-8") as out:
        for name in survivors:
            note = " (no test of the folder reaches it)" if codes[name] == 33 else ""
            out.write(f"=== {name}{note}\n{mutmut(place, 'show', name)}\n")
    print(
        f"{arguments.package}: {len(names)} mutants, {count} tried (seed {arguments.seed}), {len(survivors)} survived"
    )
    if untried:
        print(f"{len(untried)} were not tried; see {place / 'mutmut.log'}")
    print(f"their diffs: {place / 'survivors.txt'}")
    return 1 if untried else 0


if __name__ == "__main__":
    sys.exit(main())
