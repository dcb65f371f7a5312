"""What an account may store, as both servers say it and hold to it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, Running, serve
from support.raw_wire import RawLink, dial, split_deliveries

pytestmark = pytest.mark.interop

CONFIG = """
listen: 127.0.0.1:-1
jetstream {{ store_dir: "{store}" }}
accounts {{
    A {{ users: [{{user: a, password: p}}], jetstream {{
        max_mem: 1000000, max_file: 1000000, max_streams: 2, max_consumers: 1, max_ack_pending: 100
        store_max_stream_bytes: 500000
    }} }}
    B {{ users: [{{user: b, password: p}}], jetstream {{ max_bytes_required: true }} }}
    C {{ users: [{{user: c, password: p}}], jetstream {{ max_mem: 1000, max_file: -1 }} }}
}}
"""


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory: Path = tmp_path_factory.mktemp(str(request.param))
    with serve(str(request.param), directory, CONFIG.format(store=directory / "store")) as running:
        yield running


def enter(server: Running, user: str) -> RawLink:
    link = dial(server.port, user=user, no_responders=True, **{"pass": "p"})
    link.send(b"SUB in.* 1\r\n")
    link.settle()
    return link


def ask(link: RawLink, subject: str, request: object = None) -> Any:
    body = b"" if request is None else json.dumps(request).encode()
    link.send(b"PUB %b in.1 %d\r\n%b\r\n" % (subject.encode(), len(body), body))
    line = link.receive_line()
    while not line.startswith(b"MSG"):
        line = link.receive_line()
    output = line + link.receive(int(line.split()[-1]) + 2)
    return json.loads(split_deliveries(output)[0][0].body)


def create(link: RawLink, name: str, **config: object) -> int:
    """Makes a stream; the number of the error, 0 for none."""
    answer = ask(link, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "subjects": [name], **config})
    return int(answer.get("error", {}).get("err_code", 0))


def test_the_limits_of_an_account_are_shown_and_hold(server: Running) -> None:
    with enter(server, "a") as link:
        assert ask(link, "$JS.API.INFO")["limits"] == {
            "max_memory": 1_000_000, "max_storage": 1_000_000, "max_streams": 2, "max_consumers": 1,
            "max_ack_pending": 100, "memory_max_stream_bytes": -1, "storage_max_stream_bytes": 500_000,
            "max_bytes_required": False,
        }  # fmt: skip
        assert create(link, "LARGE", max_bytes=600_000) == 10122
        assert create(link, "MEMORY", max_bytes=2_000_000, storage="memory") == 10028
        assert create(link, "ONE", max_bytes=100) == 0
        assert create(link, "TWO") == 0
        assert create(link, "THREE") == 10027


def test_an_account_may_have_to_say_how_large_a_stream_grows(server: Running) -> None:
    with enter(server, "b") as link:
        assert create(link, "ONE") == 10113
        assert create(link, "ONE", max_bytes=100) == 0


def test_a_stream_without_a_bound_needs_some_room_that_is_not_reserved(server: Running) -> None:
    with enter(server, "c") as link:
        reserved = {"name": "ALL", "subjects": ["ALL"], "max_bytes": 1000, "storage": "memory"}
        assert create(link, "ALL", max_bytes=1000, storage="memory") == 0
        assert create(link, "MORE", storage="memory") == 10028
        assert "error" not in ask(link, "$JS.API.STREAM.UPDATE.ALL", {**reserved, "description": "still allowed"})
        assert create(link, "FILE") == 0
