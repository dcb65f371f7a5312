"""An archive for executors: what is in it, and that a cluster whose workers know nothing of Headwater reads with it."""

import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support import cluster_child
from support.nats_server import NatsServer
from support.stream_filling import fill, numbered

from headwater.cli.main import main
from headwater.errors import EnvironmentProblem
from headwater.spark.class_archive import java_options
from headwater.spark.packaging import UNPACKED, made_for, make_archive, settings
from headwater.spark.session import BRIEF_JAVA_OPTIONS
from headwater.spark_runtime.cache import cache_directory
from headwater.spark_runtime.home import spark_home
from headwater.spark_runtime.interpreter import worker_python
from headwater.spark_runtime.java import java_home


def test_the_archive_has_the_package_as_it_runs_and_what_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "a b" / "deps.zip"
    archive.parent.mkdir()
    assert main(["pipeline", "package", str(archive)]) == 0
    shown = capsys.readouterr().out
    assert made_for() in shown
    assert f"spark.executorEnv.PYTHONPATH=./{UNPACKED}" in shown
    with zipfile.ZipFile(archive) as found:
        names = set(found.namelist())
    for needed in ("headwater/spark/source.py", "headwater/py.typed", "pyspark_nats.py", "pyspark_iggy.py"):
        assert needed in names
    assert any(name.startswith("msgspec/_core") for name in names)
    assert not any("__pycache__" in name for name in names)
    here = [path.name for path in Path(sys.modules["headwater"].__file__ or "").parent.rglob("*.so")]
    assert {Path(name).name for name in names if name.startswith("headwater/") and name.endswith(".so")} == set(here)
    assert settings(archive)["spark.archives"] == f"{archive}#{UNPACKED}"


def test_a_package_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="no-such-package"):
        make_archive(tmp_path / "deps.zip", ["no-such-package"])


@pytest.fixture(scope="module")
def spread(nats_server: NatsServer) -> NatsServer:
    """A server with what is read."""
    fill(nats_server.url, "SPREAD", ["spread.*"], numbered("spread", 2_000))
    return nats_server


def home_of_spark() -> Path:
    """That of local sessions: class archives are for it."""
    import pyspark

    return spark_home(Path(pyspark.__file__).parent, cache_directory(os.environ))


@contextmanager
def standalone(directory: Path) -> Iterator[str]:
    """A master and a worker with two cores as processes that know nothing of Headwater; the master's URL."""
    home = home_of_spark()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "128m",
        "PYSPARK_PYTHON": str(worker_python(Path(sys.executable), cache_directory(os.environ))),
    }
    environ["SPARK_DAEMON_JAVA_OPTS"] = BRIEF_JAVA_OPTIONS + java_options(environ)
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        master = start(stack, home, environ, f"{deploy}.master.Master", "--port", "0", "--webui-port", "0")
        url = output_of(master)
        place = ("--work-dir", str(directory / "worker"), "--webui-port", "0")
        size = ("--cores", "2", "--memory", "2g")
        output_of(start(stack, home, environ, f"{deploy}.worker.Worker", *size, *place, url))
        yield url


def start(stack: ExitStack, home: Path, environ: dict[str, str], *command: str) -> "subprocess.Popen[str]":
    """Start a daemon."""
    process = stack.enter_context(
        subprocess.Popen(
            [str(home / "bin" / "spark-class"), command[0], "--host", "127.0.0.1", *command[1:]],
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    stack.callback(process.kill)
    return process


def output_of(process: "subprocess.Popen[str]") -> str:
    """Where the master is, as soon as the daemon says it; then it may go on talking."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"(?:Starting Spark master at|Successfully registered with master) (spark://\S+)", line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found[1]
    raise RuntimeError(f"{process.args!r} ended")


def places_and_count(server: NatsServer, master: str, archive: Path) -> tuple[list[str], str]:
    """What `cluster_child` says."""
    command = [sys.executable, cluster_child.__file__, server.url, master, str(archive)]
    environ = {**os.environ, "SPARK_HOME": str(home_of_spark())}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    *homes, count = done.stdout.split()
    return homes, count


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(900)
def test_two_executors_that_know_nothing_of_it_read_with_the_archive(spread: NatsServer, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "deps.zip")
    with standalone(tmp_path) as url:
        homes, count = places_and_count(spread, url, archive)
    assert count == "2000"
    assert len(set(homes)) == 2  # the same archive, unpacked beside each of two executors
    assert all(f"/{UNPACKED}/headwater/" in home for home in homes)
