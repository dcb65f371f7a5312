"""`headwater object …` against both servers."""

import json
import secrets
from pathlib import Path

import pytest
from support.command_line import run


def test_a_store_from_its_making_to_its_end(
    capsys: pytest.CaptureFixture[str], server_url: str, tmp_path: Path
) -> None:
    bucket = f"O{secrets.token_hex(4)}"
    content = secrets.token_bytes(300_000)
    source = tmp_path / "in.bin"
    source.write_bytes(content)
    run(capsys, server_url, "object", "add", bucket, "--description", "things", "--max-bucket-size", "10MB")
    stored = run(capsys, server_url, "object", "put", bucket, str(source), "--name", "a", "-H", "Kind: binary")
    assert "Size: 293.0 KiB" in stored
    assert "Kind: binary" in stored
    assert "--force" in run(capsys, server_url, "object", "put", bucket, str(source), "--name", "a", status=1)
    run(capsys, server_url, "object", "put", bucket, str(source), "--name", "a", "--force")
    target = tmp_path / "out.bin"
    assert "Wrote: 293.0 KiB" in run(capsys, server_url, "object", "get", bucket, "a", "--output", str(target))
    assert target.read_bytes() == content
    assert "--force" in run(capsys, server_url, "object", "get", bucket, "a", "-O", str(target), status=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.bin", "out.bin"]
    known = json.loads(run(capsys, server_url, "object", "info", bucket, "a", "--json"))
    assert (known["size"], known["chunks"]) == (300_000, 3)
    assert "Maximum Size: 10.0 MiB" in run(capsys, server_url, "object", "info", bucket)
    assert bucket in run(capsys, server_url, "object", "ls", "--names")
    assert "Bucket Contents" in run(capsys, server_url, "object", "ls", bucket)
    assert "PUT" in run(capsys, server_url, "object", "watch", bucket, "--count", "1")
    run(capsys, server_url, "object", "del", bucket, "a", "-f")
    assert "holds no object" in run(capsys, server_url, "object", "get", bucket, "a", status=1)
    assert "No entries" in run(capsys, server_url, "object", "ls", bucket)
    run(capsys, server_url, "object", "seal", bucket, "-f")
    assert "Sealed: true" in run(capsys, server_url, "object", "info", bucket)
    run(capsys, server_url, "object", "put", bucket, str(source), "--name", "b", "-f", status=1)
    run(capsys, server_url, "object", "del", bucket, "-f")
    assert "there is no object store" in run(capsys, server_url, "object", "del", bucket, "-f", status=1)


def test_what_comes_from_stdin_needs_a_name_and_a_file_has_to_be_there(
    capsys: pytest.CaptureFixture[str], server_url: str
) -> None:
    assert "--name" in run(capsys, server_url, "object", "put", "B", status=1)
    bucket = f"O{secrets.token_hex(4)}"
    run(capsys, server_url, "object", "add", bucket)
    assert "cannot be opened" in run(capsys, server_url, "object", "put", bucket, "/nowhere/x", status=1)
    run(capsys, server_url, "object", "del", bucket, "-f")
