"""`headwater trace` against both servers, as a user types it."""

import json
from pathlib import Path

import pytest
from support.command_line import run
from support.configured_servers import KINDS, serve
from support.raw_wire import dial

CONFIG = """
server_name: one
jetstream { store_dir: "%s" }
"""


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_shows_who_gets_a_message_and_nobody_gets_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    with serve(kind, tmp_path, CONFIG % (tmp_path / "js")) as server, dial(server.port, name="shop") as link:
        url = f"nats://127.0.0.1:{server.port}"
        link.send(b"SUB orders.* 1\r\n")
        link.settle()
        run(capsys, url, "stream", "add", "ORDERS", "--subjects=orders.eu")
        first, *rest = run(capsys, url, "trace", "orders.eu", "42").splitlines()
        assert first.startswith("--> client ")
        assert first.endswith(", subject orders.eu, to one")
        assert [line.split(" (")[0] for line in rest if line.startswith("<--")] == ["<-- client shop"]
        assert "--| JetStream: stream ORDERS, subject orders.eu" in rest
        assert b"MSG orders.eu" not in link.settle()
        output = json.loads(run(capsys, url, "--json", "trace", "orders.eu", "42", "--deliver"))
        assert (output["missing"], [report["server"] for report in output["reports"]]) == ([], ["one"])
        assert b"orders.eu" in link.settle()
        unserved = run(capsys, url, "trace", "nobody.there").splitlines()
        assert len(unserved) == 1
