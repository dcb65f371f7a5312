"""Stored batches: when the next request is sent, what ends a read, and what makes it go on through a consumer."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.embedded_broker import EmbeddedBroker, options_of
from support.jetstream_clusters import StreamCluster, ours_behind_real_ones, workers
from support.stream_filling import fill, numbered

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.columns.range_answer import AnswerHead
from headwater.columns.stored_columns import StoredDecoder
from headwater.errors import HeadwaterError, JetStreamError, RemoteProtocolError, TransportError
from headwater.spark.connections import READER
from headwater.spark.options import parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.spark.stored_replay import NotOffered, StoredReplay, refusal
from headwater.wire.columns import Columns

CREATED = "2026-11-22T00:00:00Z"
CREATED_NS = 1_795_305_600 * 10**9


class RecordingClient:
    """A client that takes note of the sequences that it is asked to ask for."""

    def __init__(self) -> None:
        self.starts: list[int] = []

    def ask_range(self, stream: str, start: int, end: int, max_bytes: int, inbox: str) -> None:
        self.starts.append(start)


def replay() -> tuple[StoredReplay, RecordingClient, StoredDecoder]:
    client, decoder = RecordingClient(), StoredDecoder(1, 10, with_map=False, with_raw=False)
    made = StoredReplay(client, decoder, Range("S", CREATED, 1, 10), 4096, 1.0, (50, 1000))  # type: ignore[arg-type]
    return made, client, decoder


@pytest.mark.parametrize(
    ("head", "taken", "requested"),
    [
        (AnswerHead(1, CREATED_NS, 1, 5, 1, 20), True, [5]),
        (AnswerHead(1, CREATED_NS, 1, 10, 1, 20), True, []),
        (AnswerHead(0, CREATED_NS, 1, 1, 1, 1), True, []),
        (AnswerHead(1, CREATED_NS + 1, 1, 5, 1, 20), False, []),
        (AnswerHead(1, CREATED_NS, 3, 5, 1, 20), False, []),
        (AnswerHead(1, CREATED_NS, 1, 0, 1, 20), False, []),
    ],
)
def test_the_next_request_goes_out_before_an_answer_is_decoded(
    head: AnswerHead, taken: bool, requested: list[int]
) -> None:
    made, client, _ = replay()
    assert made._on_answer(head) is taken
    assert client.starts == requested
    if not taken:
        with pytest.raises(HeadwaterError):
            made._check()


@pytest.mark.parametrize(
    ("came", "error"),
    [
        ({"errors": ['Permissions Violation for Publish to "$JS.API.HEADWATER.RANGE.S"']}, NotOffered),
        ({"errors": ["Stale Connection"]}, TransportError),
        ({"statuses": [b"NATS/1.0 503\r\n\r\n"]}, NotOffered),
        ({"refusal": b'{"error":{"code":404,"err_code":10059,"description":"stream not found"}}'}, JetStreamError),
        ({"violation": RemoteProtocolError("broken")}, TransportError),
    ],
)
def test_what_comes_in_place_of_rows_ends_the_read(came: dict[str, object], error: type[Exception]) -> None:
    made, _, _ = replay()
    nothing: dict[str, object] = {"errors": [], "statuses": [], "refusal": b"", "violation": None}
    made._decoder = SimpleNamespace(**(nothing | came))  # type: ignore[assignment]
    with pytest.raises(error):
        made._check()


def test_an_answer_that_is_nothing_known_is_quoted() -> None:
    assert isinstance(refusal(b"what?"), RemoteProtocolError)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker with a user who may not ask for stored batches."""
    directory: Path = tmp_path_factory.mktemp("guarded")
    text = (
        f'jetstream {{ store_dir: "{directory}/js" }}\n'
        "authorization { users = [ { user: a, password: a }\n"
        '  { user: b, password: b, permissions: { publish: { deny: "$JS.API.HEADWATER.>" } } } ] }'
    )
    file = directory / "server.conf"
    file.write_text(text)
    with EmbeddedBroker(options_of(file)) as running:
        yield running


def test_where_the_request_is_not_permitted_a_consumer_reads_and_the_log_says_so(
    guarded: EmbeddedBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"nats://a:a@127.0.0.1:{guarded.port}"
    fill(url, "KEPT", ["kept.*"], numbered("kept", 20))
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    client.api_headers = READER
    state = stream_state(client, "KEPT")
    client.close()
    assert state.stored_batches == 1
    wanted = Range("KEPT", state.created, 1, 21)
    for user, shown in (("a", 0), ("b", 1)):
        monkeypatch.setenv("WORD", user)
        given = {"servers": f"nats://127.0.0.1:{guarded.port}", "user": user, "password": "env:WORD", "stream": "KEPT"}
        options = parse_options(given)
        with caplog.at_level(logging.WARNING, "headwater.spark"):
            assert sum(columns.rows for columns in read_range(wanted, options)) == 20
        assert len([line for line in caplog.messages if line.startswith("read_through_consumer stream=KEPT")]) == shown


@pytest.mark.parametrize("start", [ours_behind_real_ones, workers], ids=lambda start: start.__name__)
def test_stored_batches_come_from_wherever_the_stream_is(
    start: Callable[[Path], AbstractContextManager[StreamCluster]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    count = 8_000  # two answers
    with start(tmp_path) as cluster:
        fill(cluster.urls[0], "FAR", ["far.*"], numbered("far", count))
        url = cluster.urls[-1]
        client = BlockingClient.connect(ClientOptions(servers=[url]))
        client.api_headers = READER
        state = stream_state(client, "FAR")
        client.close()
        assert state.stored_batches == 1
        options = parse_options({"servers": url, "stream": "FAR"})
        with caplog.at_level(logging.WARNING, "headwater.spark"):
            columns = list(read_range(Range("FAR", state.created, 1, count + 1), options))
    assert [payload for batch in columns for payload in payloads(batch)] == [b"%d" % n for n in range(count)]
    assert caplog.messages == []


def payloads(columns: Columns) -> list[bytes]:
    data, offsets = columns.payloads
    return [bytes(data[start:end]) for start, end in pairwise(offsets)]
