"""`headwater bench …` measures something, on both servers."""

import json
import secrets

import pytest
from support.command_line import run

from headwater.cli import main as command


@pytest.mark.parametrize("what", ["pub", "pubsub", "request"])
def test_each_bench_prints_its_figures(capsys: pytest.CaptureFixture[str], server_url: str, what: str) -> None:
    subject = f"bench.{secrets.token_hex(4)}"
    output = json.loads(run(capsys, server_url, "bench", what, subject, "--msgs", "200", "--size", "16", "--json"))
    assert output["messages"] == 200
    assert output["messages_per_second"] > 0


def test_the_progress_ends_where_the_work_does(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    command.main(["bench", "pub", "bench.few", "--msgs", "3", "--server", server_url])
    assert "100%" in capsys.readouterr().err


def test_the_stream_bench_stores_every_message(capsys: pytest.CaptureFixture[str], server_url: str) -> None:
    name = f"S{secrets.token_hex(4)}"
    run(capsys, server_url, "stream", "add", name)
    assert "msgs/sec" in run(capsys, server_url, "bench", "js", name, "--msgs", "300", "--no-progress")
    assert json.loads(run(capsys, server_url, "stream", "info", name, "-j"))["state"]["messages"] == 300
    run(capsys, server_url, "stream", "rm", name, "-f")
