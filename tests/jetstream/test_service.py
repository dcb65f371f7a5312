"""The JetStream API held against the real nats-server: the same requests, the same answers, field by field.

What must differ (times, names that a server makes up) is masked; everything else, field names and order of magnitude
included, has to be equal.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pytest
from support.headwater_server import start_headwater
from support.jetstream_in_process import served
from support.jetstream_pair import API, ask, compare
from support.nats_server import start_nats_server

from headwater.client.blocking import BlockingClient
from headwater.client.client import connect
from headwater.client.options import ClientOptions
from headwater.durable_files.files import File, OsFile, OsFiles
from headwater.errors import RequestTimeout

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The real server's, and ours."""
    directory = tmp_path_factory.mktemp("jetstream")
    with (
        start_nats_server(directory / "real") as real,
        start_headwater(directory / "ours", "-js", "-sd", str(directory / "ours" / "js")) as ours,
    ):
        yield [real.url, ours.url]


@pytest.fixture
def clients(urls: list[str]) -> Iterator[list[BlockingClient]]:
    """A client of each server, the real one first."""
    made = [BlockingClient.connect(ClientOptions(servers=[url])) for url in urls]
    yield made
    for client in made:
        client.close()


def test_a_streams_life_is_answered_alike(clients: list[BlockingClient]) -> None:
    config = {"name": "LIFE", "subjects": ["life.>"], "duplicate_window": 60_000_000_000}
    answers = compare(
        clients,
        [
            (f"{API}STREAM.CREATE.LIFE", config),
            (f"{API}STREAM.CREATE.LIFE", config),
            (f"{API}STREAM.CREATE.LIFE", config | {"subjects": ["other"]}),
            ("life.a", b"one"),
            ("life.b", b"two"),
            (f"{API}STREAM.INFO.LIFE", None),
            (f"{API}STREAM.INFO.LIFE", {"subjects_filter": ">"}),
            (f"{API}STREAM.NAMES", None),
            (f"{API}STREAM.NAMES", {"subject": "life.x"}),
            (f"{API}STREAM.NAMES", {"subject": "nobody"}),
            (f"{API}STREAM.LIST", None),
            (f"{API}STREAM.MSG.GET.LIFE", {"seq": 1}),
            (f"{API}STREAM.MSG.GET.LIFE", {"last_by_subj": "life.b"}),
            (f"{API}STREAM.MSG.GET.LIFE", {"seq": 9}),
            (f"{API}STREAM.DELETE.LIFE", None),
            (f"{API}STREAM.DELETE.LIFE", None),
            (f"{API}STREAM.INFO.LIFE", None),
        ],
    )
    assert answers[3] == {"stream": "LIFE", "seq": 1}
    assert answers[5]["state"]["messages"] == 2


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("STREAM.CREATE.BAD", {"name": "OTHER"}),
        ("STREAM.CREATE.BAD", {"name": "BAD", "subjects": ["a..b"]}),
        ("STREAM.CREATE.BAD", {"name": "BAD", "subjects": ["bad"], "num_replicas": 3}),
        ("STREAM.CREATE.BAD", {"name": "BAD", "subjects": ["bad"], "max_age": 1}),
        ("STREAM.INFO.NONE", None),
        ("STREAM.DELETE.NONE", None),
        ("STREAM.MSG.GET.NONE", {"seq": 1}),
        ("CONSUMER.CREATE.NONE", {"stream_name": "NONE", "config": {}}),
        ("CONSUMER.INFO.NONE.c", None),
        ("CONSUMER.DELETE.NONE.c", None),
        ("CONSUMER.NAMES.NONE", None),
        ("CONSUMER.LIST.NONE", None),
    ],
)
def test_what_is_refused_is_refused_in_the_same_words(
    clients: list[BlockingClient], subject: str, body: object
) -> None:
    (answer,) = compare(clients, [(API + subject, body)])
    assert answer["error"]["err_code"] > 10_000


def test_a_request_that_is_no_json_has_the_same_number_and_a_reason_of_our_own(clients: list[BlockingClient]) -> None:
    real, ours = (ask(client, f"{API}STREAM.CREATE.BAD", b"not json")["error"] for client in clients)
    assert (ours["code"], ours["err_code"]) == (real["code"], real["err_code"]) == (400, 10025)
    assert ours["description"].startswith("invalid JSON: ")


def test_consumers_are_made_shown_and_deleted_alike(clients: list[BlockingClient]) -> None:
    def consumer(**config: object) -> dict[str, object]:
        return {"stream_name": "CONS", "config": config}

    compare(
        clients,
        [
            (f"{API}STREAM.CREATE.CONS", {"name": "CONS", "subjects": ["cons.*"]}),
            *[(f"cons.{number % 3}", b"x") for number in range(9)],
            (f"{API}CONSUMER.DURABLE.CREATE.CONS.d", consumer(durable_name="d", ack_policy="explicit")),
            (f"{API}CONSUMER.CREATE.CONS.e", consumer(name="e", ack_policy="none", inactive_threshold=30_000_000_000)),
            (
                f"{API}CONSUMER.CREATE.CONS",
                consumer(ack_policy="none", deliver_policy="by_start_sequence", opt_start_seq=4, mem_storage=True),
            ),
            (f"{API}CONSUMER.CREATE.CONS.f.cons.1", consumer(name="f", ack_policy="explicit", filter_subject="cons.1")),
            (f"{API}CONSUMER.INFO.CONS.d", None),
            (f"{API}CONSUMER.INFO.CONS.f", None),
            (f"{API}CONSUMER.INFO.CONS.none", None),
            (f"{API}CONSUMER.CREATE.CONS.g", consumer(name="g", opt_start_seq=4)),
            (f"{API}CONSUMER.DELETE.CONS.d", None),
            (f"{API}CONSUMER.DELETE.CONS.d", None),
        ],
    )


async def publish_all(url: str, cases: list[tuple[dict[str, str], bytes]]) -> list[Any]:
    """The answers to publishes with these headers and payloads, one after the other."""
    async with await connect(url) as client:
        return [
            json.loads((await client.request("pub.a", payload, headers=headers)).data) for headers, payload in cases
        ]


def test_publish_headers_are_honoured_alike(clients: list[BlockingClient], urls: list[str]) -> None:
    for client in clients:
        ask(client, f"{API}STREAM.CREATE.PUB", {"name": "PUB", "subjects": ["pub.*"], "max_msg_size": 40})

    cases: list[tuple[dict[str, str], bytes]] = [
        ({"Nats-Msg-Id": "1"}, b"x"),
        ({"Nats-Msg-Id": "1"}, b"y"),
        ({"Nats-Expected-Stream": "OTHER"}, b"x"),
        ({"Nats-Expected-Last-Sequence": "7"}, b"x"),
        ({"Nats-Expected-Last-Sequence": "1"}, b"x"),
        ({"Nats-Expected-Last-Subject-Sequence": "9"}, b"x"),
        ({"Nats-Expected-Last-Msg-Id": "nope"}, b"x"),
        ({"Nats-Msg-Id": "2"}, b"x"),
        ({"Nats-Expected-Last-Msg-Id": "2"}, b"x"),
        ({"A": "b"}, b"x" * 60),
    ]
    real, ours = (asyncio.run(publish_all(url, cases)) for url in urls)
    assert ours == real


def test_an_unknown_verb_is_met_with_silence(clients: list[BlockingClient]) -> None:
    for client in clients:
        with pytest.raises(RequestTimeout):
            client.request(f"{API}STREAM.FROB", b"", timeout=0.3)


def test_streams_messages_ids_and_durable_consumers_survive_kill_9(tmp_path: Path) -> None:
    store = str(tmp_path / "js")
    server = start_headwater(tmp_path, "-js", "-sd", store)
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    ask(client, f"{API}STREAM.CREATE.KEEP", {"name": "KEEP", "subjects": ["keep"], "duplicate_window": 10**12})
    created = ask(client, f"{API}STREAM.INFO.KEEP", None)["created"]
    for number in range(20):
        assert ask(client, "keep", b"%d" % number)["seq"] == number + 1
    durable = {"stream_name": "KEEP", "config": {"durable_name": "d", "ack_policy": "explicit"}}
    ask(client, f"{API}CONSUMER.DURABLE.CREATE.KEEP.d", durable)
    server.kill()
    client.close()
    server = start_headwater(tmp_path, "-js", "-sd", store)
    try:
        client = BlockingClient.connect(ClientOptions(servers=[server.url]))
        info = ask(client, f"{API}STREAM.INFO.KEEP", None)
        assert (info["state"]["messages"], info["state"]["last_seq"], info["created"]) == (20, 20, created)
        assert ask(client, f"{API}CONSUMER.INFO.KEEP.d", None)["num_pending"] == 20
        assert ask(client, "keep", b"20")["seq"] == 21
        client.close()
    finally:
        server.stop()


class _MeetingFile(OsFile):
    """A file of a stream whose first sync waits for that of another stream, once that is wanted."""

    __slots__ = ("stream", "tree")

    def __init__(self, descriptor: int, stream: str, tree: "_MeetingFiles") -> None:
        super().__init__(descriptor)
        self.stream = stream
        self.tree = tree

    def fdatasync(self) -> None:
        if self.tree.is_first_of(self.stream):
            self.tree.meeting.wait(20)
        super().fdatasync()


class _MeetingFiles(OsFiles):
    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.meeting = Barrier(2)
        self.left: set[str] = set()  # streams whose next sync is to wait
        self._lock = Lock()

    def is_first_of(self, stream: str) -> bool:
        with self._lock:
            found = stream in self.left
            self.left.discard(stream)
            return found

    def open(self, path: str) -> File:
        stream = "".join(Path(path).relative_to(self.root).parts[1:2])[:1]  # streams/A-…/
        return _MeetingFile(os.open(path, os.O_RDWR | os.O_CLOEXEC), stream, self)

    def create(self, path: str) -> File:
        super().create(path).close()
        return self.open(path)


def test_streams_are_closed_side_by_side(tmp_path: Path) -> None:
    """The first sync of a stream's end waits for that of the other: streams that are closed one after the other would not
    meet."""

    async def test() -> None:
        files = _MeetingFiles(tmp_path)
        async with served(tmp_path, files=files, sync="never") as desk:  # with always, nothing waits for the disk
            for name in ("A", "B"):
                await desk.make(name, subjects=[name])
                await desk.publish(name, b"written")
            files.left = {"A", "B"}
        assert files.left == set()

    asyncio.run(test())
