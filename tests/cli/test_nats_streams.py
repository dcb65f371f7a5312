"""`headwater stream …` and `consumer …` against both servers, as a user types them."""

import json
import secrets
from pathlib import Path

import pytest
from support.command_line import run


def test_a_stream_from_its_making_to_its_end(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    name = f"S{secrets.token_hex(4)}"
    made = run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>", "--max-age=1h", "--max-bytes=1MB")
    assert f"Subjects: {name}.>" in made
    assert "Maximum Bytes: 1.0 MiB" in made
    assert "Maximum Age: 3600s" in made
    for number in range(3):
        stored = run(capsys, server_url, "pub", "-J", f"{name}.{number}", f"body {number}", "-H", "K:v")
        assert f"Stored in Stream: {name} Sequence: {number + 1}" in stored
    assert name in run(capsys, server_url, "stream", "ls", "--names")
    info = json.loads(run(capsys, server_url, "stream", "info", name, "--json"))
    assert info["state"]["messages"] == 3
    assert json.loads(run(capsys, server_url, "stream", "subjects", name, "-j"))[f"{name}.1"] == 1
    got = run(capsys, server_url, "stream", "get", name, "2")
    assert f"{name}#2" in got
    assert "K: v" in got
    assert "body 1" in got
    assert "body 2" in run(capsys, server_url, "stream", "get", name, "-S", f"{name}.2")
    viewed = run(capsys, server_url, "stream", "view", name, "--id", "2")
    assert "body 0" not in viewed
    assert "body 2" in viewed
    shown = run(capsys, server_url, "stream", "view", name, "--id", "2", "--json").splitlines()
    assert [(json.loads(line)["seq"], json.loads(line)["data"]) for line in shown] == [(2, "body 1"), (3, "body 2")]
    run(capsys, server_url, "stream", "rmm", name, "1", "-f")
    assert "Purged 2" in run(capsys, server_url, "stream", "purge", name, "-f")
    run(capsys, server_url, "stream", "rm", name, "-f")
    assert "there is no stream" in run(capsys, server_url, "stream", "rm", name, "-f", status=1)
    assert "stream not found" in run(capsys, server_url, "stream", "info", name, status=1)


def test_a_consumer_takes_messages_and_acknowledges_them(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    name = f"S{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>")
    run(capsys, server_url, "pub", "-J", "-q", f"{name}.a", "n {{Count}}", "--count", "3")
    made = run(capsys, server_url, "consumer", "add", name, "C", "--filter", f"{name}.a", "--deliver", "2")
    assert "Deliver Policy: by_start_sequence" in made
    assert run(capsys, server_url, "consumer", "next", name, "C", "--raw", "--count", "2") == "n 2\nn 3\n"
    info = json.loads(run(capsys, server_url, "consumer", "info", name, "C", "--json"))
    assert (info["num_pending"], info.get("num_ack_pending", 0)) == (0, 0)
    assert run(capsys, server_url, "consumer", "ls", name, "-n") == "C\n"
    assert "Consumers of" in run(capsys, server_url, "consumer", "ls", name)
    assert "no deliver policy" in run(capsys, server_url, "consumer", "add", name, "D", "--deliver", "x", status=1)
    run(capsys, server_url, "consumer", "rm", name, "C", "-f")
    assert "No Consumers" in run(capsys, server_url, "consumer", "ls", name)
    run(capsys, server_url, "stream", "rm", name, "-f")


def test_what_would_lose_something_is_not_done_without_a_yes(
    capsys: pytest.CaptureFixture[str], server_url: str
) -> None:
    name = f"S{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name)
    assert "--force" in run(capsys, server_url, "stream", "rm", name, status=1)
    assert name in run(capsys, server_url, "stream", "ls")
    run(capsys, server_url, "stream", "rm", name, "--force")


def test_a_stream_is_edited_copied_and_sealed(
    capsys: pytest.CaptureFixture[str], server_url: str, tmp_path: Path
) -> None:
    name, other = f"S{secrets.token_hex(4)}", f"S{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>", "--max-msgs", "10")
    assert "No difference" in run(capsys, server_url, "stream", "edit", name, "--max-msgs", "10", "-f")
    planned = run(capsys, server_url, "stream", "edit", name, "--max-msgs", "20", "--dry-run", "--json")
    assert json.loads(planned) == {"changed": {"max_msgs": [10, 20]}}
    assert "Maximum Messages: 10" in run(capsys, server_url, "stream", "info", name)
    assert "--force" in run(capsys, server_url, "stream", "edit", name, "--max-msgs", "20", status=1)
    edited = run(capsys, server_url, "stream", "edit", name, "--max-msgs=20", "--subjects", f"{name}.a,{name}.b", "-f")
    assert "max_msgs: 10 -> 20" in edited
    assert f"Subjects: {name}.a, {name}.b" in edited
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"name": name, "subjects": [f"{name}.c"], "max_msgs": 5, "duplicate_window": 10**9}))
    assert "Maximum Messages: 5" in run(capsys, server_url, "stream", "edit", name, "--config", str(config), "-f")
    copied = run(capsys, server_url, "stream", "copy", name, other, "--subjects", f"{other}.>")
    assert "Maximum Messages: 5" in copied
    run(capsys, server_url, "pub", "-J", f"{other}.a", "1")
    assert "Messages: 1" in run(capsys, server_url, "stream", "state", other)
    assert other in run(capsys, server_url, "stream", "report")
    assert "is sealed" in run(capsys, server_url, "stream", "seal", other, "-f")
    run(capsys, server_url, "pub", "-J", f"{other}.a", "2", status=1)
    for each in (name, other):
        run(capsys, server_url, "stream", "rm", each, "-f")


def test_json_has_the_servers_fields_and_copies_are_made_and_found(
    capsys: pytest.CaptureFixture[str], server_url: str
) -> None:
    name = f"F{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name, "--subjects", f"{name}.>")
    config = json.loads(run(capsys, server_url, "stream", "info", name, "--json"))["config"]
    assert (config["retention"], config["storage"], config["max_age"]) == ("limits", "file", 0)
    run(capsys, server_url, "stream", "add", f"{name}M", "--mirror", name)
    run(capsys, server_url, "stream", "add", f"{name}S", "--source", name)
    mirror = json.loads(run(capsys, server_url, "stream", "info", f"{name}M", "--json"))["config"]
    assert (mirror["mirror"]["name"], mirror.get("subjects")) == (name, None)
    sources = json.loads(run(capsys, server_url, "stream", "info", f"{name}S", "--json"))["config"]["sources"]
    assert [one["name"] for one in sources] == [name]
    assert run(capsys, server_url, "stream", "find", "--mirrored") == f"{name}M\n"
    assert run(capsys, server_url, "stream", "find", "--sourced") == f"{name}S\n"
    run(capsys, server_url, "pub", "-J", f"{name}.a", "one")
    run(capsys, server_url, "pub", "-J", f"{name}.a", "two")
    assert name not in run(capsys, server_url, "stream", "find", "--empty").split()
    assert name in run(capsys, server_url, "stream", "find", "--subject", f"{name}.a").split()
    assert name not in run(capsys, server_url, "stream", "find", "--idle", "1h").split()
    assert run(capsys, server_url, "sub", f"{name}.a", "--stream", name, "--count", "2", "--raw") == "one\ntwo\n"
    assert run(capsys, server_url, "sub", f"{name}.a", "--last", "--count", "1", "--raw") == "two\n"
    run(capsys, server_url, "consumer", "add", name, "C")
    assert "Unprocessed" in run(capsys, server_url, "consumer", "report", name)
    (report,) = json.loads(run(capsys, server_url, "consumer", "report", name, "--json"))
    assert report["num_pending"] == 2
    assert "On Disk" in run(capsys, server_url, "account", "info")
    for one in (f"{name}S", f"{name}M", name):
        run(capsys, server_url, "stream", "rm", one, "-f")


def test_words_that_an_option_does_not_take_are_answered_with_those_it_does(
    capsys: pytest.CaptureFixture[str], server_url: str
) -> None:
    name = f"W{secrets.token_hex(4)}"
    for words, known in (
        (("stream", "add", name, "--storage", "disk"), "file, memory"),
        (("stream", "add", name, "--retention", "all"), "limits, interest, workqueue"),
        (("consumer", "add", name, "C", "--ack", "never"), "explicit, all, none"),
    ):
        assert f"'{words[-1]}' is none of {known}." in run(capsys, server_url, *words, status=2)
    made = run(capsys, server_url, "stream", "add", name, "--storage", "m", "--retention", "work", "--json")
    assert [json.loads(made)["config"][each] for each in ("storage", "retention")] == ["memory", "workqueue"]
    assert "--last-for" in run(capsys, server_url, "stream", "get", name, status=1)
    run(capsys, server_url, "stream", "rm", name, "-f")
