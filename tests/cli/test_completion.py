"""The scripts for TAB: bash runs ours, and every word of the table is in both."""

import shutil
import subprocess

import pytest

from headwater.cli import completion
from headwater.cli.main import VERBS


def complete(*words: str) -> set[str]:
    """What bash would offer for the last of the words."""
    line = " ".join(f"'{word}'" for word in words)
    script = (
        f'{completion.bash()}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _headwater; echo "${{COMPREPLY[@]}}"'
    )
    ran = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert ran.stderr == ""
    return set(ran.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed: its script did not run")
def test_bash_completes_verbs_commands_and_options() -> None:
    assert complete("headwater", "str") == {"stream"}
    assert complete("headwater", "-s", "nats://x", "") == set(VERBS)
    assert {"add", "backup", "restore", "report"} <= complete("headwater", "stream", "")
    assert complete("headwater", "--context=prod", "stream", "back") == {"backup"}
    assert {"--max-msgs", "--max-bytes"} <= complete("headwater", "stream", "add", "--max-")
    assert {"--json", "--creds"} <= complete("headwater", "pub", "--")
    assert {"--count"} <= complete("headwater", "sub", "a", "--co")
    assert complete("headwater", "completion", "") == {"bash", "zsh", "fish"}
    assert complete("headwater", "nothing", "") == set()


def test_the_other_shells_have_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.main(["fish"]) == 0
    fish = capsys.readouterr().out
    for verb, commands in completion.words().items():
        assert f"-a {verb} -d " in fish
        assert all(f"-a {command}\n" in fish for command in commands if command)
    assert completion.main(["zsh"]) == 0
    assert "bashcompinit" in capsys.readouterr().out
    assert completion.main(["csh"]) == 2
    assert "bash|zsh|fish" in capsys.readouterr().err
