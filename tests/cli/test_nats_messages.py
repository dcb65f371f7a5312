"""`headwater pub|sub|request|reply` against both servers; what waits runs as a process of its own."""

import base64
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.command_line import run
from support.headwater_server import start_headwater
from support.leafs import OURS, REAL, serve
from support.raw_wire import RawLink


@contextmanager
def waiting(url: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that listens; entered when it does."""
    command = [sys.executable, "-m", "headwater", words[0], "-s", url, *words[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        output = process.stderr.readline()
        assert output.startswith(("Subscribing", "Listening")), output
        yield process
    finally:
        process.kill()
        process.communicate(timeout=20)


def test_what_is_published_is_printed(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    subject = f"cli.{secrets.token_hex(4)}"
    with waiting(server_url, "sub", f"{subject}.*", "--count=3") as listening:
        run(capsys, server_url, "pub", f"{subject}.a", "hello", "-H", "K: v", "--reply", "re.ply")
        run(capsys, server_url, "pub", f"{subject}.b", "{{Count}}", "--count", "2", "-q")
        printed, _ = listening.communicate(timeout=20)
    assert f"[#1] Received on '{subject}.a' with reply 're.ply'\nK: v\n\nhello\n" in printed
    assert "\n1\n" in printed
    assert "\n2\n" in printed


def test_a_request_is_answered(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    subject = f"cli.{secrets.token_hex(4)}"
    with waiting(server_url, "reply", subject, "you said {{Request}}", "--count=2") as answering:
        assert run(capsys, server_url, "request", subject, "hi", "--raw") == "you said hi\n"
        answer = json.loads(run(capsys, server_url, "request", subject, "ho", "--json"))
        assert answer["data"] == "you said ho"
        printed, _ = answering.communicate(timeout=20)
    assert "[#2] Received on subject" in printed
    assert "nobody is subscribed" in run(capsys, server_url, "request", f"{subject}.x", "hi", status=1)


@pytest.mark.parametrize("words", [["--raw"], ["--json"]], ids=["raw", "json"])
def test_a_payload_that_is_no_text_arrives_as_it_is(server_url: str, words: list[str]) -> None:
    subject, payload = f"cli.{secrets.token_hex(4)}", b"\xff\x00 1\r\n"
    listen, publish = (
        [sys.executable, "-m", "headwater", "--server", server_url, verb, subject] for verb in ("sub", "pub")
    )
    with subprocess.Popen([*listen, "--count=2", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listening:
        assert listening.stderr is not None and listening.stderr.readline().startswith(b"Subscribing")
        subprocess.run(publish, input=payload, check=True, timeout=60)
        subprocess.run([*publish, "--", os.fsdecode(b"\xff")], check=True, timeout=60)
        printed, _ = listening.communicate(timeout=20)
    if words == ["--raw"]:
        assert printed == payload + b"\n\xff\n"
    else:
        shown = [json.loads(line)["data_base64"] for line in printed.splitlines()]
        assert [base64.b64decode(each) for each in shown] == [payload, b"\xff"]


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
def test_headers_that_cannot_be_read_or_printed_do_not_end_what_listens(server_url: str, words: list[str]) -> None:
    """Any publisher ended it: by a header block that is none, or by bytes that are not UTF-8."""
    subject = f"cli.{secrets.token_hex(4)}"
    with waiting(server_url, "sub", subject, "--count=3", *words) as listening:
        with RawLink(int(server_url.rpartition(":")[2])) as link:
            link.send(b'CONNECT {"headers":true,"verbose":false}\r\n')
            for block in (b"NATS/1.0\r\nno colon\r\n\r\n", b"NATS/1.0\r\nA: \xff\r\n\r\n", b"NATS/1.0\r\nA: 1\r\n\r\n"):
                link.send(b"HPUB %b %d %d\r\n%bx\r\n" % (subject.encode(), len(block), len(block) + 1, block))
            link.settle()
        printed, _ = listening.communicate(timeout=20)
    assert listening.returncode == 0
    if words:
        first, second, _ = map(json.loads, printed.splitlines())
        assert (first["headers"], first["data"], second["headers"]) == ({}, "x", {"A": ["\udcff"]})
        assert "colon" in first["headers_error"]
    else:
        assert "(a header block of 22 bytes, which cannot be read: " in printed
        assert "\nA: \\udcff\n" in printed and "\nA: 1\n" in printed


def test_the_help_of_a_command_says_how_to_name_the_server(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    for command in (["pub"], ["stream", "info"]):
        assert "--server=" in run(capsys, server_url, *command, "--help")


def test_a_wrong_line_is_told_and_ends_with_two(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    assert "No such option" in run(capsys, server_url, "pub", "a", "b", "--frobnicate", status=2)
    assert "Missing argument" in (missing := run(capsys, server_url, "sub", status=2))
    assert "(`headwater sub --help` says more)" in missing
    assert "is no header" in run(capsys, server_url, "pub", "a", "b", "-H", "nocolon", status=1)


@pytest.mark.parametrize("kind", [REAL, OURS])
@pytest.mark.parametrize(
    "words", [["pub", "shut", "x"], ["pub", "shut", "x", "-J"], ["sub", "shut"], ["request", "shut", "x"]]
)
def test_what_the_user_may_not_do_is_an_error_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str, words: list[str]
) -> None:
    config = (
        'authorization { users: [ {user: u, password: p, permissions: {publish: "open", subscribe: ["_INBOX.>"]}} ] }'
    )
    with serve(kind, tmp_path, config) as server:
        printed = run(capsys, server.url, *words, "--user=u", "--password=p", "--timeout=1h", status=1)
    assert "Permissions Violation" in printed
    assert "Published" not in printed


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
def test_what_permissions_refuse_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    settings = tmp_path / "server.conf"
    settings.write_text("authorization { users: [ { user: a, password: b, permissions: { publish: ok } } ] }")
    with start_headwater(tmp_path, "-c", str(settings)) as server:
        for url, verb in ((f"nats://a:b@127.0.0.1:{server.port}", "pub"), (server.url, "pub")):
            printed = run(capsys, url, verb, "no", "body", *words, status=1)
            assert printed.count("\n") == 1, printed
            assert "Violation" in printed


def test_who_listens_is_told_that_the_server_went_and_came_back(tmp_path: Path) -> None:
    with start_headwater(tmp_path) as server, waiting(server.url, "sub", "a", "--count=1") as listening:
        server.stop()
        assert listening.stderr is not None
        where = f"127.0.0.1:{server.port}"
        assert listening.stderr.readline().startswith(f"headwater sub: the connection to {where} was lost")
        with start_headwater(tmp_path, port=server.port):
            again = listening.stderr.readline()
            assert again.startswith(f"headwater sub: connected to {server.url} again: what was published meanwhile"), (
                again
            )
