"""A Spark Declarative Pipelines project: its files, and a run of them where pyspark has what it needs for it."""

import socket
import uuid
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.nats_server import NatsServer
from support.stream_filling import Message, fill

from headwater.cli.main import main
from headwater.errors import ConfigError, EnvironmentProblem
from headwater.spark import declarative
from headwater.spark.pipeline_config import read_pipeline_config


def test_init_writes_a_project_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "orders"
    assert main(["pipeline", "init", str(project)]) == 0
    assert {path.relative_to(project).as_posix() for path in project.rglob("*.*")} == {
        "pipeline.toml",
        "spark-pipeline.yml",
        "transformations/tables.py",
    }
    assert "name: orders" in (project / "spark-pipeline.yml").read_text()
    assert read_pipeline_config(project / "pipeline.toml").source["stream"] == "ORDERS"
    compile((project / "transformations" / "tables.py").read_text(), "tables.py", "exec")
    assert main(["pipeline", "init", str(project)]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_directory_without_a_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"spark-pipeline\.yml"):
        declarative.run_project(tmp_path, [])


def test_what_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    declarative.write_project(tmp_path / "p")
    monkeypatch.setattr(declarative, "NEEDED", ("json", "no_such_package.at_all"))
    with pytest.raises(EnvironmentProblem, match=r"no_such_package\.at_all.*spark-connect"):
        declarative.run_project(tmp_path / "p", [])


def events(subject: str, count: int) -> list[Message]:
    headers = {"ce-specversion": "1.0", "ce-source": "/s", "ce-type": "t", "ce-datacontenttype": "application/json"}
    made: list[Message] = [(subject, {**headers, "ce-id": str(n)}, b'{"n": %d}' % n) for n in range(count)]
    return [*made, (subject, None, b"no event")]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(900)
def test_spark_pipelines_runs_it_beside_another_ones_connect_server(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := declarative.missing():
        pytest.skip(f"pyspark needs {', '.join(lacking)} for declarative pipelines")
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # a JVM for a minute
    stream = f"DP{uuid.uuid4().hex}"  # a second try starts from nothing
    fill(nats_server.url, stream, [stream], events(stream, 20))
    project = tmp_path / "orders"
    declarative.write_project(project)
    config = project / "pipeline.toml"
    text = config.read_text().replace('"ORDERS"', f'"{stream}"').replace("nats://127.0.0.1:4222", nats_server.url)
    config.write_text(text)
    with closing(socket.socket()) as stranger:  # where another project's server is
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            stranger.bind(("127.0.0.1", 15002))
        except OSError:
            pass  # there is one
        assert main(["pipeline", "run", str(project)]) == 0
    tables = project / "spark-warehouse"
    rows = {path.name: pq.read_table(path).num_rows for path in tables.iterdir()}
    assert rows == {"bronze": 21, "silver": 20, "rejects": 1, "gold": 1}
