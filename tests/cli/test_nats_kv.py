"""`headwater kv …` against both servers."""

import json
import secrets

import pytest
from support.command_line import run


def test_a_bucket_from_its_making_to_its_end(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    bucket = f"B{secrets.token_hex(4)}"
    run(capsys, server_url, "kv", "add", bucket, "--history", "5")
    assert run(capsys, server_url, "kv", "put", bucket, "a", "1") == "1\n"
    assert json.loads(run(capsys, server_url, "kv", "create", bucket, "b", "2", "--json")) == {"revision": 2}
    assert "written meanwhile" in run(capsys, server_url, "kv", "create", bucket, "b", "3", status=1)
    run(capsys, server_url, "kv", "update", bucket, "b", "3", "2")
    assert run(capsys, server_url, "kv", "get", bucket, "b", "--raw") == "3\n"
    assert json.loads(run(capsys, server_url, "kv", "get", bucket, "b", "-j"))["revision"] == 3
    assert run(capsys, server_url, "kv", "ls", bucket) == "a\nb\n"
    run(capsys, server_url, "kv", "del", bucket, "a", "-f")
    assert "holds no key" in run(capsys, server_url, "kv", "get", bucket, "a", status=1)
    operations = [
        entry["operation"] for entry in json.loads(run(capsys, server_url, "kv", "history", bucket, "a", "-j"))
    ]
    assert operations == ["PUT", "DEL"]
    run(capsys, server_url, "kv", "purge", bucket, "a", "-f")
    assert "PURGE" in run(capsys, server_url, "kv", "history", bucket, "a")
    watched = run(capsys, server_url, "kv", "watch", bucket, "b", "--count", "1")
    assert watched == f"[3] PUT {bucket} > b: 3\n"
    assert bucket in run(capsys, server_url, "kv", "ls")
    run(capsys, server_url, "kv", "del", bucket, "-f")
    assert "there is no bucket" in run(capsys, server_url, "kv", "del", bucket, "-f", status=1)
