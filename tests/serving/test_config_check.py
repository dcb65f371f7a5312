"""`headwater config check` and `headwater serve -t`: everything that is wrong, one a line, and the exit status."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from headwater.serving import config_check
from headwater.serving.command import main as serve
from headwater.serving.config_check import main


def test_a_good_file_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "good.conf"
    path.write_text("port: 4222")
    assert main(["check", str(path)]) == 0
    output = capsys.readouterr().err
    assert output.startswith(f"headwater: configuration file {path} is valid (sha256:")
    assert serve(["-t", "-c", str(path)]) == 0
    assert capsys.readouterr().err == output


def test_a_bad_file_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.conf"
    path.write_text("port: x\n\nfoo: 1\n")
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f'headwater: {path}:1:1: "port" must be a number, not a string',
        f'headwater: {path}:3:1: unknown field "foo"',
    ]
    assert serve(["-t", "-c", str(path)]) == 1


def test_it_fails_where_a_start_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "needs.conf"
    path.write_text("http: 8222\nwebsocket { port: 8080, no_tls: true }")
    assert main(["check", str(path)]) == 0
    monkeypatch.setattr(config_check, "find_spec", lambda name: None if name == "h11" else find_spec(name))
    assert main(["check", str(path)]) == 1
    assert "monitoring needs a package that is not installed: h11" in capsys.readouterr().err
    path.write_text('tls { cert_file: "/nowhere/c.pem", key_file: "/nowhere/k.pem" }')
    assert main(["check", str(path)]) == 1
    assert "/nowhere/c.pem" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        'leafnodes { remotes: [{ url: "nats://127.0.0.1:1", credentials: "/nowhere/x" }] }',
        'jetstream { store_dir: "/etc/passwd" }',
        'jetstream { store_dir: "/etc/passwd/x" }',
        'log_file: "/nowhere/x"',
        'log_file: "/tmp"',
        'pid_file: "/nowhere/x"',
        'ports_file_dir: "/nowhere/x"',
    ],
)
def test_it_fails_where_a_start_could_not_read_or_write(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "places.conf"
    path.write_text(line)
    assert main(["check", str(path)]) == 1
    assert re.search('"(/[^"]*)"', line.rpartition(":")[2])[1] in capsys.readouterr().err  # type: ignore[index]
    path.write_text(re.sub('"/[^"]*"', f'"{tmp_path / "mine"}"', line))
    if line.startswith(("log_file", "pid_file", "jetstream")):
        assert main(["check", str(path)]) == 0
        assert not (tmp_path / "mine").exists()


def test_warnings_count_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.conf"
    path.write_text("ping_interval: 20")
    assert main(["check", str(path)]) == 0
    assert main(["check", "--strict", str(path)]) == 1
    assert f"headwater: warning: {path}:1:1: this should be converted" in capsys.readouterr().err


def test_without_a_file_there_is_nothing_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(["-t"]) == 1
    assert "must specify [-c, --config]" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "gone.conf")]) == 1
    assert "no such file or directory" in capsys.readouterr().err
    (tmp_path / "binary.conf").write_bytes(b"\xff\xfe")
    assert main(["check", str(tmp_path / "binary.conf")]) == 1
    assert "it is no text" in capsys.readouterr().err
