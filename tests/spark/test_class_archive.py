"""Spark starts with the classes that a run before has kept. The lanes run this first, for all others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.main import main
from headwater.spark.class_archive import archive_path

SESSION = """
from headwater.spark import session
spark = session("classes", master="local[1]", brief=True)
print(spark.range(3).count())
print(*open(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps"))
"""


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_session_starts_with_the_classes_that_were_kept(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["spark-classes"])
    output = capsys.readouterr()
    if code and "archive of its own classes" in output.err:
        pytest.skip("this Java keeps no classes: Spark starts as without")
    assert code == 0, output.err
    archive = output.out.strip()
    child = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, timeout=300)
    count, *mapped = child.stdout.splitlines()
    assert count == "3", child.stderr
    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not show what a process has mapped")
    assert any(line.endswith(archive) for line in mapped)


def test_an_archive_is_of_one_java_and_one_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    homes = [tmp_path / "a", tmp_path / "b"]
    for home in homes:
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").touch()
    paths = {archive_path(java, spark) for java in homes for spark in homes}
    assert len(paths) == 4
    assert {path.parent for path in paths} == {tmp_path / "cache" / "headwater" / "java"}


def test_an_archive_of_another_version_in_the_same_place_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    before = archive_path(tmp_path, tmp_path)
    os.utime(tmp_path / "jars", ns=(1, 1))
    assert archive_path(tmp_path, tmp_path) != before


def test_it_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark-classes", "now"]) == 1
    assert "no arguments" in capsys.readouterr().err
