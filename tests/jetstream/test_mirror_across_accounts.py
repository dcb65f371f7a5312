"""A mirror and a source of another account's stream: its API and deliveries are imported; subjects stay what they were."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, serve
from support.raw_wire import RawLink, dial

CONFIG = """
listen: 127.0.0.1:-1
jetstream {{ store_dir: "{store}" }}
accounts {{
    FROM {{
        jetstream: enabled, users: [{{user: from, password: p}}]
        exports: [{{service: "$JS.API.CONSUMER.>"}}, {{stream: "sync.>"}}]
    }}
    TO {{
        jetstream: enabled, users: [{{user: to, password: p}}]
        imports: [
            {{service: {{account: FROM, subject: "$JS.API.CONSUMER.>"}}, to: "far.API.CONSUMER.>"}}
            {{stream: {{account: FROM, subject: "sync.>"}}}}
        ]
    }}
}}
"""
ORIGIN = {"name": "S", "external": {"api": "far.API", "deliver": "sync.copies"}}


def ask(link: RawLink, subject: str, request: object = None) -> dict[str, Any]:
    """The answer to one request."""
    payload = b"" if request is None else json.dumps(request).encode()
    link.send(b"SUB in 1\r\nUNSUB 1 1\r\nPUB %b in %d\r\n%b\r\n" % (subject.encode(), len(payload), payload))
    while not (line := link.receive_line()).startswith(b"MSG in 1 "):
        pass
    answer: dict[str, Any] = json.loads(link.receive(int(line.split()[-1])))
    link.receive(2)
    assert "error" not in answer, answer
    return answer


@pytest.mark.interop
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [{"mirror": ORIGIN}, {"sources": [ORIGIN]}], ids=["mirror", "source"])
def test_the_copies_have_the_subjects_of_the_messages(kind: str, copied: dict[str, object], tmp_path: Path) -> None:
    with (
        serve(kind, tmp_path / "server", CONFIG.format(store=tmp_path / "store")) as server,
        dial(server.port, user="from", **{"pass": "p"}) as origin,
        dial(server.port, user="to", **{"pass": "p"}) as copy,
    ):
        ask(origin, "$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s.*"]})
        for number in range(3):
            ask(origin, f"s.{number}")
        ask(copy, "$JS.API.STREAM.CREATE.C", {"name": "C"} | copied)
        until = time.monotonic() + 30
        while (state := ask(copy, "$JS.API.STREAM.INFO.C", {"subjects_filter": ">"})["state"])["messages"] < 3:
            assert time.monotonic() < until, state
        assert state["subjects"] == {"s.0": 1, "s.1": 1, "s.2": 1}
