"""Without the extra `iggy` there is a sentence, wherever the package is wanted first."""

import subprocess
import sys

import pytest

WANTED = "Iggy needs the package xxhash (pip install 'headwater[iggy]')"


@pytest.mark.parametrize("module", ["headwater.iggy.face", "headwater.iggy_client.client"])
def test_what_is_missing_is_named(module: str) -> None:
    program = f"import sys; sys.modules['xxhash'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.splitlines()[-1] == f"headwater.errors.EnvironmentProblem: {WANTED}"


def test_a_server_with_iggy_says_so_too() -> None:
    program = "import sys; sys.modules['xxhash'] = None; from headwater.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "serve", "-a", "127.0.0.1", "-p", "-1", "--iggy", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert WANTED in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
