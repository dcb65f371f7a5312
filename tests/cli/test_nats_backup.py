"""`headwater stream backup|restore` and `account backup|restore` against both servers, as a user types them."""

import json
import secrets
from pathlib import Path

import pytest
from support.command_line import run


def test_a_stream_and_a_whole_account_come_back(
    capsys: pytest.CaptureFixture[str], server_url: str, tmp_path: Path
) -> None:
    name = f"B{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>")
    run(capsys, server_url, "pub", "-J", "-q", f"{name}.a", "n {{Count}}", "--count", "3")
    folder = tmp_path / "one"
    assert f"Backed up Stream {name}: 3 messages" in run(capsys, server_url, "stream", "backup", name, str(folder))
    assert "holds a backup already" in run(capsys, server_url, "stream", "backup", name, str(folder), status=1)
    again = run(capsys, server_url, "stream", "restore", str(folder), status=1)
    assert "stream name already in use, cannot restore" in again
    whole = json.loads(run(capsys, server_url, "account", "backup", str(tmp_path / "all"), "--json"))
    assert name in whole["done"]
    run(capsys, server_url, "stream", "rm", name, "-f")
    assert f"Restored Stream {name}: 3 messages, 0 consumers" in run(
        capsys, server_url, "stream", "restore", str(folder)
    )
    run(capsys, server_url, "stream", "rm", name, "-f")
    for other in whole["done"]:
        if other != name:
            (tmp_path / "all" / other / "backup.json").unlink()
    (tmp_path / "all" / "broken").mkdir()
    (tmp_path / "all" / "broken" / "backup.json").write_text("{")
    failed = run(capsys, server_url, "account", "restore", str(tmp_path / "all"), status=1)
    assert "broken: " in failed
    assert json.loads(run(capsys, server_url, "stream", "info", name, "--json"))["state"]["messages"] == 3
    run(capsys, server_url, "stream", "rm", name, "-f")


def test_an_empty_stream_that_was_restored_begins_at_1(
    capsys: pytest.CaptureFixture[str], server_url: str, tmp_path: Path
) -> None:
    name = f"B{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>")
    run(capsys, server_url, "stream", "backup", name, str(tmp_path / "empty"))
    run(capsys, server_url, "stream", "rm", name, "-f")
    run(capsys, server_url, "stream", "restore", str(tmp_path / "empty"))
    state = json.loads(run(capsys, server_url, "stream", "info", name, "--json"))["state"]
    assert (state["first_seq"], state.get("last_seq", 0)) == (1, 0)
    run(capsys, server_url, "stream", "rm", name, "-f")
