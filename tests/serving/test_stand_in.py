"""Where a script starts `nats-server`, ours can be started: the same commands against both, as the clients' suites do it.

Both go through a launcher called `nats-server` in a directory of its own, which is put on the PATH.
"""

import asyncio
import http.client
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from support.nats_server import nats_server_binary
from support.raw_wire import RawLink

READY_SECONDS = 20.0

pytestmark = pytest.mark.interop


@pytest.fixture(params=["nats-server", "headwater"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH on which `nats-server` is one or the other."""
    ours = [sys.executable, "-m", "headwater", "serve"]
    command = shlex.join([str(nats_server_binary())] if request.param == "nats-server" else ours)
    launcher = tmp_path / "bin" / "nats-server"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    launcher.chmod(0o755)
    return f"{launcher.parent}:{os.environ['PATH']}"


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two ports that were free a moment ago; the older suites want to choose."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        chosen = one.getsockname()[1], two.getsockname()[1]
    yield chosen


def start(path: str, *flags: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["nats-server", *flags], env={**os.environ, "PATH": path}, stderr=subprocess.PIPE, text=True
    )


async def greet(url: str, **options: object) -> bytes:
    client = await nats.connect(url, **options)
    try:
        subscription = await client.subscribe("greet")
        await client.publish("greet", b"hello")
        return bytes((await subscription.next_msg(5)).data)
    finally:
        await client.close()


def test_as_the_older_suite_of_nats_py_does_it(path: str, ports: tuple[int, int]) -> None:
    """Fixed ports, /varz until it answers 200, credentials by flags, SIGKILL."""
    port, monitor = ports
    process = start(path, "-p", str(port), "-m", str(monitor), "-a", "127.0.0.1", "--user", "derek", "--pass", "foobar")
    try:
        end = time.monotonic() + READY_SECONDS
        while _status(monitor) != 200:
            assert time.monotonic() < end, "no /varz"
            time.sleep(0.02)
        assert asyncio.run(greet(f"nats://derek:foobar@127.0.0.1:{port}")) == b"hello"
        with RawLink(port) as stranger:
            stranger.send(b'CONNECT {"user":"derek","pass":"wrong"}\r\n')
            assert stranger.receive_end() == b"-ERR 'Authorization Violation'\r\n"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=10)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5).close()


def _status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/varz")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_as_the_newer_suites_do_it(path: str, tmp_path: Path) -> None:
    """Any port, lines on stderr, a configuration file, streams; SIGTERM, and exit status 0 or 1."""
    config = tmp_path / "server.conf"
    config.write_text('max_payload: 2MB\nauthorization: { token: "s3cr3t" }\n')
    flags = ["--port", "-1", "--addr", "127.0.0.1", "--jetstream", "--store_dir", str(tmp_path / "data")]
    process = start(path, *flags, "--config", str(config), "--server_name", "newer", "--debug")
    try:
        assert process.stderr is not None
        url = ""
        for line in process.stderr:
            if "Listening for client connections on " in line:
                url = f"nats://{line.rpartition(' ')[2].strip()}"
            if "Server is ready" in line:
                break
        assert asyncio.run(_stream(url)) == ("newer", 2 << 20, 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
        assert process.returncode in (0, 1)  # nats-server ends with 1 on SIGTERM where a test runs it
    finally:
        process.kill()
        process.communicate(timeout=10)


async def _stream(url: str) -> tuple[str, int, int]:
    client = await nats.connect(url, token="s3cr3t")
    try:
        streams = client.jetstream()
        await streams.add_stream(name="S", subjects=["s"])
        sequence = (await streams.publish("s", b"x")).seq
        return str(client._server_info["server_name"]), int(client.max_payload), sequence
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--config", "bad.conf"], 'unknown field "foo"'),
        (["--config", "gone.conf"], "no such file"),
        (["--addr", "127.0.0.1", "--port", "TAKEN"], "address already in use"),
        (["--addr", "no.such.host.invalid", "--port", "-1"], ""),
        (["--tls"], "certificate"),
        (["--routes", "nats://127.0.0.1:1"], "solicited routes require cluster capabilities"),
    ],
)
def test_what_must_fail_fails_with_the_same_words(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.conf").write_text("port: -1\nfoo: 1\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start(path, *(flag.replace("TAKEN", str(taken.getsockname()[1])) for flag in flags))
        _, output = process.communicate(timeout=20)
    assert process.returncode in (1, 2)
    assert reason in output.lower() if reason.islower() else reason in output


def test_a_store_directory_that_is_a_file_is_told_in_the_words_that_scripts_look_for(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with start(path, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(tmp_path / "file")) as server:
        _, output = server.communicate(timeout=READY_SECONDS)
    assert server.returncode == 1
    assert "[FTL] Can't start JetStream: storage directory is not a directory" in output


def test_a_configuration_that_cannot_be_parsed_is_told_in_the_words_that_scripts_look_for(
    path: str, tmp_path: Path
) -> None:
    for text in ("port: [1", "a {", 'port: "x', "= 3"):
        (tmp_path / "bad.conf").write_text(text)
        with start(path, "-c", str(tmp_path / "bad.conf")) as server:
            _, output = server.communicate(timeout=READY_SECONDS)
        assert server.returncode == 1
        assert "Parse error on line " in output


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("include gone.conf", "error parsing include file 'gone.conf', open "),
        ("port: $NOT_SET_ANYWHERE", "variable reference for 'NOT_SET_ANYWHERE' on line 1 can not be found"),
        ("websocket { port: -1 }", "websocket requires TLS configuration"),
        ("authorization { users: [{user: a, password: b}, {user: a, password: c}] }", 'Duplicate user "a" detected'),
        (
            "jetstream { store_dir: /proc/none/store }",
            "could not create storage directory - mkdir /proc/none: no such file",
        ),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_with_the_texts_that_scripts_look_for(
    path: str, tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "bad.conf").write_text(f"{text}\n")
    with start(path, "-a", "127.0.0.1", "-p", "-1", "-c", str(tmp_path / "bad.conf")) as server:
        _, output = server.communicate(timeout=READY_SECONDS)
    assert server.returncode == 1
    assert reason in output
