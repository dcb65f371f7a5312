"""`headwater server …` on both servers: what the system account says, and checks by their exit status."""

import json
from pathlib import Path

import pytest
from support.command_line import run
from support.configured_servers import KINDS, serve

from headwater.cli import main as command

CONFIG = """
server_name: one
jetstream { store_dir: "%s" }
accounts { SYS { users: [{user: sys, password: s}] }, A { jetstream: enabled, users: [{user: a, password: a}] } }
system_account: SYS
no_auth_user: a
"""


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_the_servers_are_listed_and_pinged_by_the_system_account(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    with serve(kind, tmp_path, CONFIG % (tmp_path / "js")) as server:
        system, url = ("--user=sys", "--password=s"), f"nats://127.0.0.1:{server.port}"
        assert "one" in run(capsys, url, "server", "list", *system)
        (listed,) = json.loads(run(capsys, url, "server", "list", "--json", *system))
        assert (listed["server"]["name"], listed["data"]["server_name"]) == ("one", "one")
        assert "rtt=" in run(capsys, url, "server", "ping", *system)
        assert "API Errors" in run(capsys, url, "server", "report", *system)
        assert "max_payload" in run(capsys, url, "server", "info", "one", *system)
        assert "no server 'two'" in run(capsys, url, "server", "info", "two", *system, status=1)
        assert json.loads(run(capsys, url, "server", "info", "--json"))["server_name"] == "one"
        assert "cannot ask them" in run(capsys, url, "server", "list", "--timeout=0.2s", status=1)


def checked(capsys: pytest.CaptureFixture[str], url: str, *words: str) -> tuple[int, str]:
    status = command.main(["server", "check", *words, "--server", url])
    return status, capsys.readouterr().out.strip()


def test_checks_end_with_the_status_of_nagios(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    run(capsys, server_url, "stream", "add", "CHK", "--subjects", "chk")
    run(capsys, server_url, "consumer", "add", "CHK", "C")
    for _ in range(3):
        run(capsys, server_url, "pub", "-J", "chk", "x")
    status, line = checked(capsys, server_url, "connection")
    assert (status, line.split(":")[0]) == (0, "OK Connection")
    assert checked(capsys, server_url, "connection", "--rtt-critical", "1ns")[0] == 2
    assert checked(capsys, server_url, "stream", "--stream", "CHK")[0] == 0
    status, line = checked(capsys, server_url, "stream", "--stream", "CHK", "--messages", "4")
    assert (status, "fewer than 4" in line) == (2, True)
    assert checked(capsys, server_url, "stream", "--stream", "NONE")[0] == 2
    assert checked(capsys, server_url, "consumer", "--stream", "CHK", "--consumer", "C", "--pending-warn", "2")[0] == 1
    assert (
        checked(capsys, server_url, "consumer", "--stream", "CHK", "--consumer", "C", "--pending-critical", "2")[0] == 2
    )
    assert checked(capsys, server_url, "jetstream")[0] == 0
    status, document = checked(capsys, server_url, "jetstream", "--json")
    assert json.loads(document)["state"] == "OK"
    assert checked(capsys, "nats://127.0.0.1:1", "connection")[0] == 2
    run(capsys, server_url, "stream", "rm", "CHK", "-f")
