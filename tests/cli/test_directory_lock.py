"""One process at a time; the lock goes with its holder, however that ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.directory_lock import locked
from headwater.errors import EnvironmentProblem

HOLD = """
import sys
from pathlib import Path
from headwater.cli.directory_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_refused_and_the_first_may_come_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.lock"
    with locked(path), pytest.raises(EnvironmentProblem, match="another process"), locked(path):
        raise AssertionError("both hold the lock")
    with locked(path):
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(EnvironmentProblem), locked(path):
            raise AssertionError("both hold the lock")
        holder.kill()
        holder.wait(10)
        with locked(path):
            pass
