"""Runs `headwater` in this process, as a user would type it."""

import pytest

from headwater.cli import main as command


def run(capsys: pytest.CaptureFixture[str], url: str, *words: str, status: int = 0) -> str:
    """What the command prints: stdout, or stderr when it is to end with another `status` than 0."""
    ended = command.main([words[0], "--server", url, *words[1:]])
    output = capsys.readouterr()
    assert ended == status, output.err
    return output.out if status == 0 else output.err
