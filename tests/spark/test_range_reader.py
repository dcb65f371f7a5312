"""Reading ranges, by consumers of the real nats-server and of our broker and as our broker's stored batches: every row once,
whatever happens on the way."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.cut_proxy import CutProxy
from support.headwater_server import HeadwaterServer, start_headwater
from support.nats_server import NatsServer, start_nats_server
from support.stream_filling import delete_consumers, delete_message, delete_stream, fill, numbered, purge

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.errors import ConfigError, DataLossError, HeadwaterError, JetStreamError, TransportError
from headwater.net import blocking
from headwater.spark import connections, range_reader
from headwater.spark.options import SourceOptions, parse_options
from headwater.spark.range_reader import read_range, stream_state
from headwater.spark.ranges import Range
from headwater.spark_runtime import persistence
from headwater.wire.columns import ColumnDecoder
from headwater.wire.handshake import ServerInfo

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer

COUNT = 500
ALWAYS = {"readTimeout": "20"}  # options of every reader here


@pytest.fixture(scope="module", params=["nats-server", "stored batches", "consumer"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each way in which a range comes, with the same code."""
    if request.param == "nats-server":
        yield request.getfixturevalue("nats_server")
    elif request.param == "stored batches":
        yield request.getfixturevalue("headwater_server")
    else:
        directory = tmp_path_factory.mktemp("consumer")
        with (
            start_headwater(directory, "-js", "-sd", str(directory / "js")) as running,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setitem(ALWAYS, "transport", "consumer")
            yield running


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    fill(server.url, "FILLED", ["filled.*"], numbered("filled", COUNT))
    return server


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(range_reader, "BATCH_ROWS", 50)


def options_for(url: str, stream: str, **more: str) -> SourceOptions:
    return parse_options({"servers": url, "stream": stream, **ALWAYS, **more})


def whole(url: str, stream: str, start: int | None = None, end: int | None = None) -> Range[str]:
    """The stream as it is now, or a part of it."""
    client = BlockingClient.connect(ClientOptions(servers=[url]))
    state = stream_state(client, stream)
    client.close()
    return Range(stream, state.created, start or state.first, end or state.end)


def read(wanted: Range[str], options: SourceOptions) -> list[tuple[int, bytes]]:
    """(sequence, payload) of every row."""
    return [row for columns in read_range(wanted, options) for row in rows(columns)]


def rows(columns: Any) -> Iterator[tuple[int, bytes]]:
    text = columns.payloads
    for row in range(columns.rows):
        yield columns.sequences[row], bytes(text.data[text.offsets[row] : text.offsets[row + 1]])


def expected(start: int, end: int) -> list[tuple[int, bytes]]:
    return [(sequence, b"%d" % (sequence - 1)) for sequence in range(start, end)]


def test_a_range_gives_its_rows_and_no_others_each_time(filled: Server) -> None:
    options = options_for(filled.url, "FILLED", fetchBatch="37")
    wanted = whole(filled.url, "FILLED", 100, 333)
    assert read(wanted, options) == expected(100, 333)
    assert read(wanted, options) == expected(100, 333)


def test_an_empty_range_asks_nobody() -> None:
    assert read(Range("S", "now", 5, 5), options_for("nats://127.0.0.1:1", "S")) == []


def test_consumers_are_gone_after_reading(filled: Server) -> None:
    read(whole(filled.url, "FILLED"), options_for(filled.url, "FILLED"))
    client = BlockingClient.connect(ClientOptions(servers=[filled.url]))
    deadline = time.monotonic() + 10
    while client.api("CONSUMER.NAMES.FILLED").get("consumers"):
        assert time.monotonic() < deadline
    client.close()


def test_filters_give_their_subjects_and_end_when_nothing_more_matches(filled: Server) -> None:
    wanted = whole(filled.url, "FILLED")
    one = read(wanted, options_for(filled.url, "FILLED", subjects="filled.3"))
    assert [sequence for sequence, _ in one] == list(range(4, COUNT + 1, 10))
    two = read(wanted, options_for(filled.url, "FILLED", subjects="filled.3,filled.4"))
    assert len(two) == 2 * len(one)
    start = time.monotonic()
    assert read(wanted, options_for(filled.url, "FILLED", subjects="filled.none")) == []
    assert time.monotonic() - start < range_reader.EXPIRES


def test_cut_connections_cost_no_row_and_double_none(filled: Server) -> None:
    wanted = whole(filled.url, "FILLED")
    with CutProxy(filled.port, allowance=20_000) as proxy:
        assert read(wanted, options_for(proxy.url, "FILLED")) == expected(1, COUNT + 1)
        assert proxy.cuts >= 3


def test_a_consumer_that_is_deleted_under_the_reader_is_replaced(filled: Server) -> None:
    wanted = whole(filled.url, "FILLED")
    reading = read_range(wanted, options_for(filled.url, "FILLED", fetchBatch="60", transport="consumer"))
    taken = list(rows(next(reading)))
    # Consumers of readers that were cut off linger until the server forgets them.
    assert delete_consumers(filled.url, "FILLED") >= 1
    taken += [row for columns in reading for row in rows(columns)]
    assert taken == expected(1, COUNT + 1)


def test_a_reader_that_stops_early_leaves_nothing_that_disturbs_the_next(filled: Server) -> None:
    options = options_for(filled.url, "FILLED")
    wanted = whole(filled.url, "FILLED")
    reading = read_range(wanted, options)
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert read(wanted, options) == expected(1, COUNT + 1)


def test_single_messages_that_were_deleted_are_gaps_and_no_loss(server: Server) -> None:
    fill(server.url, "GAPS", ["gaps.*"], numbered("gaps", 20))
    for sequence in (5, 6, 20):
        delete_message(server.url, "GAPS", sequence)
    taken = read(whole(server.url, "GAPS", 1, 21), options_for(server.url, "GAPS"))
    assert [sequence for sequence, _ in taken] == [*range(1, 5), *range(7, 20)]


def test_a_range_whose_start_was_purged_is_a_loss_unless_that_is_accepted(server: Server) -> None:
    fill(server.url, "PURGED", ["purged.*"], numbered("purged", 20))
    wanted = whole(server.url, "PURGED")
    purge(server.url, "PURGED", below=11)
    with pytest.raises(DataLossError, match="sequences 1 to 10"):
        read(wanted, options_for(server.url, "PURGED"))
    accepted = read(wanted, options_for(server.url, "PURGED", failOnDataLoss="false"))
    assert [sequence for sequence, _ in accepted] == list(range(11, 21))


def test_rows_that_are_purged_under_the_reader_are_a_loss(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "ANSWER_BYTES", 4096)
    fill(server.url, "RACED", ["raced.*"], numbered("raced", 500))
    wanted = whole(server.url, "RACED")
    reading = read_range(wanted, options_for(server.url, "RACED", fetchBatch="50"))
    next(reading)
    purge(server.url, "RACED", below=400)
    with pytest.raises(DataLossError, match="while they were being read"):
        list(reading)


def test_a_stream_that_was_made_anew_is_a_loss(server: Server) -> None:
    fill(server.url, "ANEW", ["anew.*"], numbered("anew", 5))
    wanted = whole(server.url, "ANEW")
    delete_stream(server.url, "ANEW")
    fill(server.url, "ANEW", ["anew.*"], numbered("anew", 5))
    with pytest.raises(DataLossError, match="made anew"):
        read(wanted, options_for(server.url, "ANEW"))
    assert read(wanted, options_for(server.url, "ANEW", failOnDataLoss="false")) == []


def test_a_stream_that_is_made_anew_under_the_reader_is_a_loss(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "ANSWER_BYTES", 4096)
    for fail in ("true", "false"):
        fill(server.url, "CHANGED", ["changed.*"], numbered("changed", 500))
        wanted = whole(server.url, "CHANGED")
        reading = read_range(wanted, options_for(server.url, "CHANGED", fetchBatch="50", failOnDataLoss=fail))
        taken = list(rows(next(reading)))
        delete_stream(server.url, "CHANGED")
        fill(server.url, "CHANGED", ["changed.*"], numbered("changed", 600))
        with pytest.raises(DataLossError, match="made anew") if fail == "true" else nullcontext():
            taken += [row for columns in reading for row in rows(columns)]
        assert taken == expected(1, len(taken) + 1)  # none of the other stream's, whose sequences go on
        assert len(taken) < 500
        delete_stream(server.url, "CHANGED")


class Leader:
    """Answers as the leader of a stream of three replicas that has `sequences`, up to `last`."""

    def __init__(self, sequences: list[int], last: int, replicas: int = 3) -> None:
        self.sequences, self.last, self.replicas = sequences, last, replicas

    def api(self, subject: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        if subject == "STREAM.INFO.S":
            state = {"first_seq": self.sequences[0], "last_seq": self.last}
            return {"config": {"name": "S", "num_replicas": self.replicas}, "created": "now", "state": state}
        assert (subject, document and document["next_by_subj"]) == ("STREAM.MSG.GET.S", ">")
        assert document is not None
        left = [sequence for sequence in self.sequences if sequence >= document["seq"]]
        if not left:
            raise JetStreamError(404, 10037, "no message found")
        return {"message": {"seq": left[0]}}


@pytest.mark.parametrize(
    ("leader", "position", "words"),
    [
        (Leader([1, 2, 3], 9), 3, None),
        (Leader([1, 2, 3, 10], 10), 3, None),
        (Leader([1, 2, 3, 9], 9), 3, "sequence 9 of S is there"),
        (Leader([1, 2, 3], 5), 3, "ends at sequence 5"),
        (Leader([1, 2, 3, 9], 9, replicas=1), 3, None),
    ],
)
def test_a_range_ends_only_where_the_streams_leader_says_so(leader: Leader, position: int, words: str | None) -> None:
    wanted = Range("S", "now", 1, 10)
    context = pytest.raises(TransportError, match=words) if words else nullcontext()
    with context:
        range_reader.check_end(leader, position, wanted, options_for("nats://x", "S"))  # type: ignore[arg-type]


def test_a_stream_on_one_server_that_lost_its_end_is_a_loss() -> None:
    lost = Leader([1, 2, 3], 5, replicas=1)
    wanted = Range("S", "now", 1, 10)
    with pytest.raises(DataLossError, match="9 was planned"):
        range_reader.check_end(lost, 3, wanted, options_for("nats://x", "S"))  # type: ignore[arg-type]
    range_reader.check_end(lost, 3, wanted, options_for("nats://x", "S", failOnDataLoss="false"))  # type: ignore[arg-type]


def test_a_stream_that_does_not_exist_is_named(server: Server) -> None:
    with pytest.raises(JetStreamError, match="create the stream NOPE"):
        read(Range("NOPE", "now", 1, 2), options_for(server.url, "NOPE"))


def test_a_server_that_stays_away_is_given_up_on_after_the_read_timeout() -> None:
    start = time.monotonic()
    with pytest.raises(TransportError):
        read(Range("S", "now", 1, 2), options_for("nats://127.0.0.1:1", "S", readTimeout="0.3"))
    assert 0.3 <= time.monotonic() - start < 10


def test_a_server_that_comes_back_is_read_on_from(tmp_path: Path) -> None:
    with start_nats_server(tmp_path) as first:
        fill(first.url, "BACK", ["back.*"], numbered("back", 300))
        wanted = whole(first.url, "BACK")
        reading = read_range(wanted, options_for(first.url, "BACK", fetchBatch="60"))
        taken = list(rows(next(reading)))
        first.kill()
        with start_nats_server(tmp_path, port=first.port):
            taken += [row for columns in reading for row in rows(columns)]
    assert taken == expected(1, 301)


def test_connections_are_kept_for_the_next_range(filled: Server) -> None:
    options = options_for(filled.url, "FILLED", user="nobody-else")
    wanted = whole(filled.url, "FILLED")
    read(wanted, options)
    first = connections.take(options.server, 20)
    connections.give_back(options.server, first)
    read(wanted, options)
    again = connections.take(options.server, 20)
    assert again is first
    again.close()


def test_large_messages_do_not_make_the_reader_a_slow_consumer(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    payload = bytes(900_000)
    fill(server.url, "LARGE", ["large"], [("large", None, payload)] * 150)
    taken = 0
    for columns in read_range(whole(server.url, "LARGE"), options_for(server.url, "LARGE")):
        taken += columns.rows
        time.sleep(0.2)  # Spark busy elsewhere; without a limit 64 MiB would pile up at the server meanwhile
    assert taken == 150
    assert caplog.messages == []


def replay_without_server() -> range_reader._Replay:
    client = SimpleNamespace(info=ServerInfo(max_payload=1 << 20))
    decoder = ColumnDecoder(2, 1, 9, with_map=False, with_raw=False)
    return range_reader._Replay(client, decoder, Range("S", "now", 1, 9), options_for("nats://x", "S"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (b"NATS/1.0 409 Exceeded MaxRequestBatch of 10\r\n\r\n", ConfigError),
        (b"NATS/1.0 409 Consumer Deleted\r\n\r\n", TransportError),
        (b"NATS/1.0 503\r\n\r\n", TransportError),
        (b"NATS/1.0 400 Bad Request - x\r\n\r\n", HeadwaterError),
    ],
)
def test_statuses_that_end_a_read(status: bytes, error: type[HeadwaterError]) -> None:
    replay = replay_without_server()
    with pytest.raises(error):
        replay._act_on(status)


def test_a_pull_request_that_ends_early_says_what_it_lacks() -> None:
    replay = replay_without_server()
    replay.due = 100
    replay._act_on(b"NATS/1.0 100 Idle Heartbeat\r\n\r\n")
    replay._act_on(b"NATS/1.0 409 Batch Completed\r\nNats-Pending-Messages: 0\r\nNats-Pending-Bytes: 9\r\n\r\n")
    replay._act_on(b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 30\r\n\r\n")
    assert replay.due == 70
    too_large = b"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Messages: 25\r\n\r\n"
    replay._act_on(too_large)
    assert replay.request_bytes == range_reader.REQUEST_BYTES
    replay._act_on(too_large)
    assert replay.request_bytes == 2 * range_reader.REQUEST_BYTES
    assert replay.due == 20
    with pytest.raises(TransportError, match="without the number of messages"):
        replay._act_on(b"NATS/1.0 408 Request Timeout\r\n\r\n")


@pytest.mark.parametrize("size", [4_000, 3_333])
def test_requests_that_end_by_their_bytes_do_not_keep_the_reader_waiting(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    monkeypatch.setattr(range_reader, "REQUEST_BYTES", 0)  # so that it is twice the largest message, 2 MiB
    stream = f"MIDDLING{size}"
    fill(server.url, stream, [stream], [(stream, None, bytes(size))] * 4_000)
    wanted, options = whole(server.url, stream), options_for(server.url, stream, fetchBatch="1000", readTimeout="20")
    assert sum(columns.rows for columns in read_range(wanted, options)) == 4_000
    assert caplog.messages == []  # it took a `readTimeout` to notice that nothing was requested any more


def test_a_reset_in_mid_range_costs_no_row_and_doubles_none(filled: Server) -> None:
    wanted = whole(filled.url, "FILLED")
    with CutProxy(filled.port, allowance=20_000, reset=True) as proxy:
        assert read(wanted, options_for(proxy.url, "FILLED")) == expected(1, COUNT + 1)
        assert proxy.cuts >= 3


def test_a_server_that_resets_every_connection_is_given_up_on(filled: Server) -> None:
    wanted = whole(filled.url, "FILLED")
    with (
        CutProxy(filled.port, allowance=600, reset=True) as proxy,
        pytest.raises(TransportError, match=r"reset|closed|connect|lost"),
    ):
        read(wanted, options_for(proxy.url, "FILLED", readTimeout="0.3"))


def test_no_wait_for_deliveries_is_longer_than_the_read_timeout(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planner reads ahead with a second of patience; a server that hangs must not hold it for longer."""
    waits: list[float] = []

    def deadline_after(seconds: float) -> float:
        waits.append(seconds)
        return blocking.deadline_after(seconds)

    monkeypatch.setattr(range_reader, "deadline_after", deadline_after)
    fill(server.url, "HASTY", ["hasty.*"], numbered("hasty", 5))
    options = options_for(server.url, "HASTY", readTimeout="2.5", transport="consumer")
    assert len(read(whole(server.url, "HASTY"), options)) == 5
    assert waits and max(waits) <= 2.5
