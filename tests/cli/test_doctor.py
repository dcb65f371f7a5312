"""The doctor reports facts, counts only what makes a part impossible, and leaves nothing behind."""

import importlib.metadata
import json
import socket
from pathlib import Path

import pytest

import headwater
from headwater.cli import doctor
from headwater.errors import EnvironmentProblem


@pytest.fixture(autouse=True)
def _no_java_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.spark_runtime.java.java_home", lambda: Path("/opt/java"))


def test_json_has_a_finding_for_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--json", "--dir", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["headwater"]["value"] == headwater.__version__
    assert report["hot modules"]["value"] == ("compiled" if headwater.__compiled__ else "interpreted")
    assert report["java"]["value"] == "/opt/java"
    assert report["fdatasync"]["value"].endswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_text_has_one_line_for_each_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--dir", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(list(doctor.examine(tmp_path)))


def test_no_java_is_a_remark_and_not_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_found() -> Path:
        raise EnvironmentProblem("no java on PATH", hint="install one")

    monkeypatch.setattr("headwater.spark_runtime.java.java_home", nothing_found)
    finding = doctor.java()
    assert not finding.problem
    assert "install one" in finding.remark


def test_a_directory_that_cannot_be_written_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--dir", str(tmp_path / "absent")]) == 1
    assert "! fdatasync" in capsys.readouterr().out


def test_a_missing_package_is_a_problem_only_where_it_is_needed() -> None:
    assert not doctor.distribution("no-such-package", "optional").problem
    assert doctor.distribution("no-such-package", "needed", needed=True).problem


def test_a_pyspark_that_is_too_old_is_a_problem_and_one_without_connect_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "4.1.2")
    assert doctor.spark().problem
    assert "too old" in doctor.spark().remark
    assert doctor.spark_connect() == doctor.Finding("spark connect", "possible")

    def none(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", none)
    assert not doctor.spark().problem
    assert "grpcio" in doctor.spark_connect().value
    assert not doctor.spark_connect().problem


def test_a_port_is_free_or_taken_and_neither_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert (doctor.client_port(port).value, doctor.client_port(port).problem) == ("taken", False)
    assert doctor.client_port(port).value == "free"


def test_the_time_of_a_sync_is_the_median(tmp_path: Path) -> None:
    moments = iter([0.0, 0.001] * (doctor.SYNCS - 1) + [0.0, 9.0])
    assert doctor.sync_time(tmp_path, clock=lambda: next(moments)).value.startswith("1.000 ms")


def test_a_sync_that_costs_nothing_is_suspicious(tmp_path: Path) -> None:
    assert "suspiciously" in doctor.sync_time(tmp_path, clock=lambda: 0.0).remark
