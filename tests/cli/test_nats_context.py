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


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    ended = command.main(["context", *words])
    heard = capsys.readouterr()
    assert ended == status, heard.err
    return heard.out if status == 0 else heard.err


def test_a_context_from_its_making_to_its_end(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert said(capsys, "ls") == "No known contexts\n"
    made = said(capsys, "add", "prod", "-s", "nats://h:1", "--user", "u", "--password", "s3cret", "--description", "it")
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
    said(capsys, "add", "prod", "--js-domain", "hub")
    assert json.loads(path.read_bytes())["jetstream_domain"] == "hub"
    said(capsys, "copy", "prod", "dev", "-s", "nats://dev:1")
    assert said(capsys, "ls", "--names") == "dev\nprod\n"
    said(capsys, "select", "dev")
    assert (home / "context.txt").read_text() == "dev"
    assert "dev*" in said(capsys, "ls")
    shown = json.loads(said(capsys, "info", "--json"))
    assert (shown["name"], shown["url"], shown["password"]) == ("dev", "nats://dev:1", "*********")
    assert "--force" in said(capsys, "rm", "dev", status=1)
    said(capsys, "rm", "dev", "-f")
    assert not (home / "context.txt").exists()
    assert "no context is chosen" in said(capsys, "info", status=1)
    assert said(capsys, "validate") == "prod: OK\n"


def test_what_another_tool_wrote_is_kept_and_what_is_no_context_refused(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = home / "context"
    directory.mkdir(parents=True)
    (directory / "a.json").write_text('{"url": "nats://h:1", "color_scheme": "cyan"}')
    said(capsys, "add", "a", "--user", "u")
    assert json.loads((directory / "a.json").read_bytes())["color_scheme"] == "cyan"
    breaks = f"""{sys.executable} -c "import sys; open(sys.argv[1], 'w').write('no json')" """
    monkeypatch.setenv("VISUAL", breaks)
    assert "nothing was changed" in said(capsys, "edit", "a", status=1)
    monkeypatch.setenv("VISUAL", breaks.replace("no json", '{\\"url\\": \\"nats://h:2\\"}'))
    assert "nats://h:2" in said(capsys, "edit", "a")
    (directory / "b.json").write_text("[]")
    assert "b" in said(capsys, "validate", status=1)
    assert "no name of a context" in said(capsys, "add", "../x", status=1)


def test_the_chosen_context_is_who_commands_speak_to(
    capsys: pytest.CaptureFixture[str], home: Path, server_url: str
) -> None:
    said(capsys, "add", "here", "-s", server_url, "--select")
    assert command.main(["rtt"]) == 0
    assert server_url in capsys.readouterr().out
    assert "Connection: OK" in said(capsys, "info", "here", "--connect")
    assert "rtt" in run(capsys, server_url, "rtt", "1", "--json")
