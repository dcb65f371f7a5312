"""`headwater kv …` against both servers."""

import json
import secrets
import subprocess
import sys

import pytest
from support.command_line import run


def test_a_bucket_from_its_making_to_its_end(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    bucket = f"B{secrets.token_hex(4)}"
    run(capsys, server_url, "kv", "add", bucket, "--history", "5")
    assert run(capsys, server_url, "kv", "put", bucket, "a", "1") == "1\n"
    assert json.loads(run(capsys, server_url, "kv", "create", bucket, "b", "2", "--json")) == {"revision": 2}
    assert "written meanwhile" in run(capsys, server_url, "kv", "create", bucket, "b", "3", status=1)
    run(capsys, server_url, "kv", "update", bucket, "b", "3", "2")
    assert run(capsys, server_url, "kv", "get", bucket, "b", "--raw") == "3"
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
    (change,) = run(capsys, server_url, "kv", "watch", bucket, "b", "--count", "1", "--json").splitlines()
    assert json.loads(change)["value"] == "3"
    watched = run(capsys, server_url, "kv", "watch", bucket, "b", "--count", "1")
    assert watched == f"[3] PUT {bucket} > b: 3\n"
    assert bucket in run(capsys, server_url, "kv", "ls")
    run(capsys, server_url, "kv", "del", bucket, "-f")
    assert "there is no bucket" in run(capsys, server_url, "kv", "del", bucket, "-f", status=1)


def test_a_value_that_is_no_text_is_kept_as_it_is(server_url: str) -> None:
    bucket, value = f"B{secrets.token_hex(4)}", b"\xff\x00\r\n"

    def kv(*words: str, given: bytes = b"") -> bytes:
        command = [sys.executable, "-m", "headwater", "--server", server_url, "kv", *words]
        return subprocess.run(command, input=given, capture_output=True, timeout=60, check=True).stdout

    kv("add", bucket)
    assert kv("put", bucket, "file", given=value) == b"<4 bytes>\n"
    assert kv("get", bucket, "file", "--raw") == value
    assert json.loads(kv("get", bucket, "file", "--json"))["value_base64"] == "/wANCg=="
    kv("update", bucket, "file", "-", "1", given=value + value)
    assert kv("get", bucket, "file", "--raw") == value + value
    kv("del", bucket, "-f")
