"""`headwater context …`: the files that the `nats` tool keeps, read and written."""

import json
import sys
from pathlib import Path

import pytest
from support.command_line import run

from headwater.cli import main as command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the contexts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("NATS_URL", "NATS_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "nats"


def output(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    ended = command.main(["context", *words])
    received = capsys.readouterr()
    assert ended == status, received.err
    return received.out if status == 0 else received.err


def test_a_context_from_its_making_to_its_end(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert output(capsys, "ls") == "No known contexts\n"
    made = output(
        capsys, "add", "prod", "-s", "nats://h:1", "--user", "u", "--password", "s3cret", "--description", "it"
    )
    assert "nats://h:1" in made
    assert "s3cret" not in made
    path = home / "context" / "prod.json"
    assert json.loads(path.read_bytes()) == {
        "url": "nats://h:1",
        "user": "u",
        "password": "s3cret",
        "description": "it",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    output(capsys, "add", "prod", "--js-domain", "hub")
    assert json.loads(path.read_bytes())["jetstream_domain"] == "hub"
    output(capsys, "copy", "prod", "dev", "-s", "nats://dev:1")
    assert output(capsys, "ls", "--names") == "dev\nprod\n"
    output(capsys, "select", "dev")
    assert (home / "context.txt").read_text() == "dev"
    assert "dev*" in output(capsys, "ls")
    shown = json.loads(output(capsys, "info", "--json"))
    assert (shown["name"], shown["url"], shown["password"]) == ("dev", "nats://dev:1", "*********")
    assert "--force" in output(capsys, "rm", "dev", status=1)
    output(capsys, "rm", "dev", "-f")
    assert not (home / "context.txt").exists()
    assert "no context is chosen" in output(capsys, "info", status=1)
    assert output(capsys, "validate") == "prod: OK\n"


def test_what_another_tool_wrote_is_kept_and_what_is_no_context_refused(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = home / "context"
    directory.mkdir(parents=True)
    (directory / "a.json").write_text('{"url": "nats://h:1", "color_scheme": "cyan"}')
    output(capsys, "add", "a", "--user", "u")
    assert json.loads((directory / "a.json").read_bytes())["color_scheme"] == "cyan"
    breaks = f"""{sys.executable} -c "import sys; open(sys.argv[1], 'w').write('no json')" """
    monkeypatch.setenv("VISUAL", breaks)
    assert "nothing was changed" in output(capsys, "edit", "a", status=1)
    monkeypatch.setenv("VISUAL", breaks.replace("no json", '{\\"url\\": \\"nats://h:2\\"}'))
    assert "nats://h:2" in output(capsys, "edit", "a")
    (directory / "b.json").write_text("[]")
    assert "b" in output(capsys, "validate", status=1)
    assert "no name of a context" in output(capsys, "add", "../x", status=1)


def test_a_url_that_is_none_is_refused_and_found(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert "bogus://h is no server URL" in output(capsys, "add", "a", "-s", "bogus://h", status=1)
    assert output(capsys, "ls") == "No known contexts\n"
    (home / "context").mkdir(parents=True)
    (home / "context" / "b.json").write_text('{"url": "bogus://h"}')
    assert command.main(["context", "validate"]) == 1
    assert "b: bogus://h is no server URL" in capsys.readouterr().out


def test_the_chosen_context_is_who_commands_speak_to(
    capsys: pytest.CaptureFixture[str], home: Path, server_url: str
) -> None:
    output(capsys, "add", "here", "-s", server_url, "--select")
    assert command.main(["rtt"]) == 0
    assert server_url in capsys.readouterr().out
    assert "Connection: OK" in output(capsys, "info", "here", "--connect")
    assert "rtt" in run(capsys, server_url, "rtt", "1", "--json")
