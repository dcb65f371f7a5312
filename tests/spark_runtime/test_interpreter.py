"""Spark asks an unquoted shell for its Python: a path with a blank needs a stand-in without one."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headwater.errors import EnvironmentProblem
from headwater.spark_runtime.interpreter import worker_python


def test_a_plain_path_stands_for_itself(tmp_path: Path) -> None:
    assert worker_python(Path("/usr/bin/python3.11"), tmp_path) == Path("/usr/bin/python3.11")
    assert not any(tmp_path.iterdir())


def test_an_interpreter_behind_a_blank_gets_a_script_that_behaves_like_it(tmp_path: Path) -> None:
    real = tmp_path / "it's a $path" / "python"
    real.parent.mkdir()
    real.symlink_to(sys.executable)
    cache = tmp_path / "cache"
    made = worker_python(real, cache)
    found = subprocess.run(["sh", "-c", f"command -v {made}"], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(made)
    code = "import sys; print(sys.argv[1:])"
    done = subprocess.run([str(made), "-c", code, "a b", "$c"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['a b', '$c']"
    assert worker_python(real, cache) == made


def test_a_cache_behind_a_blank_is_passed_over_for_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    made = worker_python(Path("/a b/python"), tmp_path / "home of" / "headwater")
    assert made.is_relative_to(tmp_path / "tmp" / "headwater")


def test_where_every_path_has_a_blank_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "t m p"))
    with pytest.raises(EnvironmentProblem, match="XDG_CACHE_HOME"):
        worker_python(Path("/a b/python"), tmp_path / "home of" / "headwater")
