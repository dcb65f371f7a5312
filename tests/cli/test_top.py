"""`headwater top --once` on both servers, and on none."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.monitored import work
from support.nats_server import NatsServer, start_nats_server

from headwater.cli import main as command


@pytest.fixture(scope="module", params=[pytest.param("nats-server", marks=pytest.mark.interop), "headwater"])
def monitor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The monitoring URL of a server with a client, a stream and a consumer."""
    directory = tmp_path_factory.mktemp("top")
    made: tuple[HeadwaterServer | NatsServer, Path]
    if request.param == "nats-server":
        real = start_nats_server(directory, "-m", "-1")
        made = real, real.log
    else:
        made = start_headwater(directory, "-m", "-1", "-js", "-sd", str(directory / "js")), directory / "headwater.log"
    server, log = made
    with server:
        found = re.findall(r"Starting http monitor on (\S+:\d+)", log.read_text())
        link = work(server.port)
        yield f"http://{found[-1]}"
        link.close()


def test_once_as_json_has_what_a_script_needs(capsys: pytest.CaptureFixture[str], monitor: str) -> None:
    assert command.main(["top", "-m", monitor, "--once", "--json", "-d", "0.01"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["server"]["connections"] >= 1
    assert set(found["rates"]) == {"in_msgs", "out_msgs", "in_bytes", "out_bytes"}
    (stream,) = found["streams"]
    assert (stream["name"], stream["messages"], stream["consumers"][0]["name"]) == ("S", 1, "D")
    assert "worker" in [one.get("name") for one in found["connections"]]


def test_once_as_tables(capsys: pytest.CaptureFixture[str], monitor: str) -> None:
    assert command.main(["top", "-m", monitor, "--once", "-d", "0.01", "--sort", "cid"]) == 0
    shown = capsys.readouterr().out
    assert "Streams" in shown
    assert "worker" in shown


def test_no_server_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert command.main(["top", "-m", url, "--once"]) == 1
    assert "no monitoring port answers" in capsys.readouterr().err
    assert command.main(["top", "-m", "ftp://x", "--once"]) == 1
    assert "no URL of a monitoring port" in capsys.readouterr().err
    assert command.main(["top", "--json"]) == 2
    assert command.main(["top", "--sort", "nothing"]) == 2
