"""`headwater consumer …` against both servers: what `test_nats_streams` has not done already."""

import json
import secrets

import pytest
from support.command_line import run


def test_a_consumer_is_edited_copied_paused_and_read_from(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    name = f"S{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>")
    run(capsys, server_url, "pub", "-J", "-q", f"{name}.a", "n {{Count}}", "--count", "3")
    run(capsys, server_url, "consumer", "add", name, "C")
    assert "No difference" in run(capsys, server_url, "consumer", "edit", name, "C", "--wait", "30s", "-f")
    planned = run(capsys, server_url, "consumer", "edit", name, "C", "--wait", "5s", "--dry-run")
    assert planned == "ack_wait: 30000000000 -> 5000000000\n"
    assert "--force" in run(capsys, server_url, "consumer", "edit", name, "C", "--wait", "5s", status=1)
    edited = run(capsys, server_url, "consumer", "edit", name, "C", "--wait", "5s", "--filter", f"{name}.a", "-f")
    assert "Ack Wait: 5s" in edited
    assert f"Filter Subjects: {name}.a" in edited
    assert "Ack Wait: 5s" in run(capsys, server_url, "consumer", "copy", name, "C", "D")
    assert run(capsys, server_url, "consumer", "sub", name, "D", "--raw", "--count", "3") == "n 1\nn 2\nn 3\n"
    paused = json.loads(run(capsys, server_url, "consumer", "pause", name, "C", "1h", "-f", "--json"))
    assert paused["paused"] is True
    assert "goes on" in run(capsys, server_url, "consumer", "resume", name, "C", "-f")
    assert "n 1" in run(capsys, server_url, "consumer", "next", name, "C")
    taken = json.loads(run(capsys, server_url, "consumer", "next", name, "C", "--json"))
    assert (taken["seq"], taken["delivered"], taken["data"]) == (2, 1, "n 2")
    run(capsys, server_url, "consumer", "next", name, "C")
    assert "no message for" in run(capsys, server_url, "consumer", "next", name, "C", "--timeout", "1ms", status=1)
    run(capsys, server_url, "stream", "rm", name, "-f")


def test_a_consumer_has_priority_groups(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    name = f"P{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>")
    flags = ("--priority=pinned_client", "--priority-groups=a", "--pinned-ttl=30s", "--json")
    made = json.loads(run(capsys, server_url, "consumer", "add", name, "c", *flags))["config"]
    assert (made["priority_policy"], made["priority_groups"], made["priority_timeout"]) == (
        "pinned_client",
        ["a"],
        30 * 10**9,
    )
    assert "go together" in run(capsys, server_url, "consumer", "add", name, "d", "--priority=overflow", status=1)
    wrong = ("--priority=overflow", "--priority-groups=a", "--pinned-ttl=1s")
    assert "is for --priority=pinned_client" in run(capsys, server_url, "consumer", "add", name, "d", *wrong, status=1)
    run(capsys, server_url, "stream", "rm", name, "-f")
