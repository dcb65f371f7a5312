"""The tests under AddressSanitizer and UndefinedBehaviorSanitizer: do the compiled modules touch memory that is not theirs?

    .venv/bin/python tests/sanitizer/run.py tests/wire tests/exchange -x     # any pytest arguments
    .venv/bin/python tests/sanitizer/run.py --run tests/sanitizer/flood.py --seconds 60     # any program

Some modules hold pointers that they do not count as references (`wire/known_subjects.py`), and all of them walk buffers with
bounds that were checked elsewhere; a mistake there seldom fails a test by itself. This compiles the modules once more, into
`build/sanitized`, and runs what it is asked to run with every allocation of Python's under the sanitizer's eyes. Linux and
GCC only. The first build takes minutes; afterwards only changed modules are built.

Leaks are not looked for: an interpreter does not free everything at its end. A finding of either sanitizer ends the run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "sanitized"
LIBRARY = PLACE / "lib"
CHECKS = "-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer"
# After setup.py's own options, which ask for no debug information at all.
COMPILER = f'#!/bin/sh\nexec gcc {CHECKS} "$@" -O1 -g1\n'


def build() -> None:
    """Bring the sanitized modules up to date, and put copies of all other modules beside them."""
    PLACE.mkdir(parents=True, exist_ok=True)
    compiler = PLACE / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    env = os.environ | {"CC": str(compiler), "HEADWATER_OPTIMIZE": "-O1"}
    env.pop("HEADWATER_INTERPRETED", None)
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", str(LIBRARY)]
    command += ["--build-temp", str(PLACE / "objects")]
    with (PLACE / "build.log").open("wb") as log:
        subprocess.run(command, cwd=ROOT, env=env, stdout=log, stderr=log, timeout=3600, check=True)
    shutil.copytree(
        ROOT / "src", LIBRARY, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )


def environment() -> dict[str, str]:
    """What Python is to run in: the sanitizers loaded before it, its own allocator out of their way."""
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        libraries.append(found.stdout.strip())
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(LIBRARY),
        "HEADWATER_CHECKOUT": str(ROOT),
        "HEADWATER_WATCHDOG": "list",  # everything takes several times as long
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_segv=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }


def main(arguments: list[str]) -> int:
    build()
    command = [sys.executable]
    if arguments[:1] == ["--run"]:
        command += arguments[1:]
    else:
        command += ["-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
