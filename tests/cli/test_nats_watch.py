"""`headwater events`, `headwater traffic` and `account report` against both servers, as a user types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import run
from support.configured_servers import KINDS, serve
from support.raw_wire import dial

CONFIG = """
server_name: one
accounts { SYS { users: [{user: sys, password: s}] }, A { jetstream: enabled, users: [{user: a, password: a}] } }
jetstream { store_dir: "%s" }
system_account: SYS
no_auth_user: a
"""
SYSTEM = ("--user=sys", "--password=s")


def listening(url: str, *words: str) -> "subprocess.Popen[str]":
    """`headwater events`, which begins to listen."""
    command = [sys.executable, "-m", "headwater", "events", "--server", url, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_events_are_printed_as_they_happen(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    with serve(kind, tmp_path, CONFIG % (tmp_path / "js")) as server:
        url = f"nats://127.0.0.1:{server.port}"
        with (
            listening(
                url, "--count=1", "--json", "--no-js-advisory", "--subject=$SYS.ACCOUNT.A.CONNECT", *SYSTEM
            ) as comes,
            listening(
                url, "--count=1", "--no-srv-advisory", "--subject=$JS.EVENT.ADVISORY.STREAM.CREATED.>"
            ) as streams,
        ):
            for process in (comes, streams):
                assert process.stderr is not None
                assert process.stderr.readline().startswith("Listening for events on ")
            dial(server.port, user="a", **{"pass": "a", "name": "guest"}).close()
            run(capsys, url, "stream", "add", "EVENTS", "--subjects=events.>", "--user=a", "--password=a")
            output, errors = comes.communicate(timeout=60)
            event = json.loads(output)
            assert (event["kind"], event["event"]["client"]["acc"]) == ("client_connect", "A"), errors
            output, errors = streams.communicate(timeout=60)
            assert "[stream_action] stream EVENTS, action create" in output, errors
        assert comes.returncode == streams.returncode == 0


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_traffic_and_connections_are_those_of_the_servers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    with serve(kind, tmp_path, CONFIG % (tmp_path / "js")) as server:
        url = f"nats://127.0.0.1:{server.port}"
        (row,) = json.loads(run(capsys, url, "traffic", "--interval=10ms", "--count=1", "--json", *SYSTEM))
        assert row["server"] == "one"
        assert row["messages_in"] > 0, "the requests of the command itself"
        assert "no server answers" in run(capsys, url, "traffic", "--timeout=0.2s", status=1)
        with dial(server.port, user="a", **{"pass": "a", "name": "guest"}):
            names = {one.get("name") for one in json.loads(run(capsys, url, "account", "report", "--json"))}
            assert {"guest", "headwater CLI"} <= names
            assert "guest" in run(capsys, url, "account", "report")


def test_what_cannot_be_watched_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = "nats://127.0.0.1:1"
    assert "nothing left" in run(capsys, nowhere, "events", "--no-js-advisory", "--no-srv-advisory", status=1)
    assert "above 0" in run(capsys, nowhere, "traffic", "--interval=0s", status=1)
