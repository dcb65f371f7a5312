"""`pip install` of the wheel with each extra, from an index, compiled where a compiler is. Takes minutes, and a gigabyte.

    .venv/bin/python tests/install/run.py [--interpreted] [EXTRA ...]    all, or those named; `none` is the wheel alone

Prints for each whether its program ran, seconds, and megabytes on disk; ends with 1 when one failed.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `support`

from support.extra_programs import PROGRAMS
from support.wheelhouse import Environment, InstallFailed, build


def megabytes(folder: Path) -> int:
    paths = (Path(home, name) for home, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_blocks * 512 for path in paths) // 1_000_000


def main(arguments: list[str]) -> int:
    wanted = [name for name in arguments if name != "--interpreted"] or [name or "none" for name in PROGRAMS]
    unknown = [name for name in wanted if name not in {*PROGRAMS, "none"}]
    if unknown:
        print(f"no extra {unknown[0]!r}; there are {', '.join(name or 'none' for name in PROGRAMS)}")
        return 2
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        wheel = build(Path(work, "wheel"), compiled="--interpreted" not in arguments)
        print(wheel.name, flush=True)
        for name in wanted:
            extra = "" if name == "none" else name
            started, folder = time.monotonic(), Path(work, f"with-{name}")
            try:
                environment = Environment(folder)
                environment.install(wheel, extra)
                environment.runs("-c", PROGRAMS[extra])
                result = "ok    "
            except InstallFailed as failure:
                failed += 1
                print(failure)
                result = "FAILED"
            print(f"{result} {name} ({time.monotonic() - started:.0f} s, {megabytes(folder)} MB)", flush=True)
            shutil.rmtree(folder)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
