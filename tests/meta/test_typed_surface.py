"""A misspelt name is an error where it is written, and a natural use is none: mypy over `typed_surface.py`, once."""

import re
import subprocess
import sys
from pathlib import Path

from support.checkout import ROOT

SURFACE = ROOT / "tests" / "meta" / "typed_surface.py"
MARK = re.compile(r"  # type: ignore\[([\w-]+)\]$")
ERROR = re.compile(r"^[^\n]*?typed_surface_bare\.py:(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)


def test_every_slip_is_an_error_at_its_line_and_nothing_else_is(tmp_path: Path) -> None:
    lines = SURFACE.read_text(encoding="utf-8").splitlines()
    slips = {(number, found[1]) for number, line in enumerate(lines, 1) if (found := MARK.search(line))}
    assert len(slips) >= 40
    bare = tmp_path / "typed_surface_bare.py"
    bare.write_text("\n".join(MARK.sub("", line) for line in lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-P", "-m", "mypy", "--no-error-summary", "--hide-error-context", str(bare)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    errors = {(int(number), code) for number, code in ERROR.findall(answer.stdout)}
    assert errors == slips, answer.stdout + answer.stderr
