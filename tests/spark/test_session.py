"""The environment and the settings of a session, without starting a JVM."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyspark
import pytest

import headwater
from headwater.errors import EnvironmentProblem
from headwater.spark.session import LOCAL_CHECKPOINTS, prepare_environment, require_pyspark, settings

SHOW_PREFIX = "import sys; print(sys.prefix)"


def test_workers_get_this_python_this_package_and_loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "SPARK_HOME", "PYTHONPATH"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    # The package has a function of the module's name, which hides the module from a dotted path.
    monkeypatch.setattr(importlib.import_module("headwater.spark.session"), "java_home", lambda: Path("/some/java"))
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    prepare_environment(local=True)
    assert os.environ["JAVA_HOME"] == "/some/java"
    version = subprocess.run(
        [os.environ["PYSPARK_PYTHON"], "-c", SHOW_PREFIX], capture_output=True, text=True, check=True
    )
    assert version.stdout.strip() == sys.prefix
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    home, rest = os.environ["PYTHONPATH"].split(os.pathsep)
    assert (Path(home) / "pyspark_nats.py").exists()
    assert Path(home) == Path(headwater.__file__).absolute().parents[1]  # compiled modules, if those are in use here
    assert rest == "/elsewhere"
    assert (Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit").exists()
    assert not (Path(os.environ["SPARK_HOME"]) / "python").exists()
    prepare_environment(local=True)
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [home, rest]


def test_a_spark_home_of_the_users_own_or_of_a_cluster_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(importlib.import_module("headwater.spark.session"), "java_home", lambda: Path("/some/java"))
    monkeypatch.setenv("SPARK_HOME", "/their/spark")
    prepare_environment(local=True)
    assert os.environ["SPARK_HOME"] == "/their/spark"
    monkeypatch.delenv("SPARK_HOME")
    prepare_environment(local=False)
    assert "SPARK_HOME" not in os.environ


def test_everything_stays_on_loopback_and_in_utc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    ours = settings(brief=False, log_level="ERROR")
    assert ours["spark.driver.host"] == ours["spark.driver.bindAddress"] == "127.0.0.1"
    assert ours["spark.sql.session.timeZone"] == "UTC"
    assert ours["spark.python.unix.domain.socket.enabled"] == "true"
    assert ours["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"


def test_only_what_is_on_this_machine_has_our_daemon_and_manager_of_checkpoints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    here, elsewhere = (settings(brief=False, log_level="ERROR", local=local) for local in (True, False))
    assert importlib.util.find_spec(here.pop("spark.python.daemon.module"))
    assert {key: here.pop(key) for key in LOCAL_CHECKPOINTS} == LOCAL_CHECKPOINTS
    assert here == elsewhere


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else find(name))
    with pytest.raises(EnvironmentProblem, match=rf"{missing} is not installed.*headwater\[spark\]"):
        require_pyspark()


def test_a_pyspark_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.2")
    with pytest.raises(EnvironmentProblem, match=r"4\.1\.2 is too old"):
        require_pyspark()
    for name in ("pyspark_nats", "pyspark_iggy"):  # in a session that is not ours
        with pytest.raises(EnvironmentProblem, match=r"4\.1\.2 is too old"):
            importlib.import_module(name).DefaultSource({"stream": "S"})


def test_the_jvm_is_quiet_from_its_first_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    option, *rest = settings(brief=True, log_level="ERROR")["spark.driver.extraJavaOptions"].split(" ")
    name, _, uri = option.partition("=")
    assert name == "-Dlog4j2.configurationFile"
    assert "rootLogger.level = error" in Path(unquote(urlsplit(uri).path)).read_text()
    assert rest == ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
