"""`setup.py` translates hot modules in several processes, however Python starts them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.checkout import ROOT

HOT = "import cython\n\n\ndef twice(number: cython.int) -> cython.int:\n    return 2 * number\n"


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
def test_modules_are_translated_however_processes_are_started(start: str, tmp_path: Path) -> None:
    """`spawn` (the default on macOS) and `forkserver` (on Linux since Python 3.14) import setup.py again in each process."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    package = tmp_path / "src" / "product"
    package.mkdir(parents=True)
    for name in ("left", "right"):
        (package / f"{name}.py").write_text(HOT)
        (package / f"{name}.pxd").write_text("cpdef int twice(int number)\n")
    (package / "__init__.py").touch()
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        f"import multiprocessing\nmultiprocessing.set_start_method({start!r}, force=True)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "HEADWATER_INTERPRETED"}
    environment |= {"PYTHONPATH": f"{site}{os.pathsep}{tmp_path / 'src'}", "CC": "false"}  # to translate is enough
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", "lib", "--build-temp", "objects"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = {path.name for path in (tmp_path / "build" / "cython").rglob("*.c")}
    assert made == {"left.c", "right.c"}, done.stdout + done.stderr
