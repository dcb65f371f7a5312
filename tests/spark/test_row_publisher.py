"""Rows into streams and to subscribers: all of them, in order, over connections that break, or not at all and why."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pyarrow as pa
import pytest
from support.cut_proxy import CutProxy
from support.headwater_server import HeadwaterServer
from support.nats_py_flush import flushed
from support.nats_server import NatsServer, start_nats_server
from support.stream_filling import fill, stored

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.errors import JetStreamError, NoResponders, PayloadTooLarge, RequestTimeout, TransportError
from headwater.spark import row_publisher
from headwater.spark.row_publisher import Published, RowPublisher, inflight
from headwater.spark.sink_options import parse_sink_options
from headwater.spark.sink_rows import rows_of
from headwater.spark_runtime import persistence
from headwater.wire.row_frames import Rows

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(persistence, "FIRST_PAUSE", 0.001)
    yield


def publish(url: str, count: int, size: int = 20, id_prefix: bytes = b"q/", **more: str) -> tuple[Published, Rows]:
    """`count` rows whose payload begins with their number, in batches of 700."""
    options = parse_sink_options({"servers": url, **more})
    publisher = RowPublisher(options)
    rows = None
    for start in range(0, count, 700):
        data = pa.array([b"%d" % number + bytes(size) for number in range(start, min(count, start + 700))])
        rows = rows_of(pa.RecordBatch.from_pydict({"data": data}), options, id_prefix, start)
        publisher.publish(rows)
    assert rows is not None
    return publisher.finish(), rows


def numbers(messages: list[tuple[str, dict[str, str], bytes]]) -> list[int]:
    return [int(data.rstrip(b"\0")) for _, _, data in messages]


def test_every_row_is_stored_in_order_with_its_id(server: Server) -> None:
    fill(server.url, "SINK", ["sink.*"], [])
    done, _ = publish(server.url, 1500, subject="sink.a")
    assert (done.rows, done.duplicates, done.streams) == (1500, 0, {"SINK"})
    held = stored(server.url, "SINK")
    assert numbers(held) == list(range(1500))
    assert [headers["Nats-Msg-Id"] for _, headers, _ in held] == [f"q/{number}" for number in range(1500)]
    again, _ = publish(server.url, 1500, subject="sink.a")
    assert (again.rows, again.duplicates) == (1500, 1500)
    assert len(stored(server.url, "SINK")) == 1500


def test_connections_that_break_lose_nothing_and_double_nothing(server: Server) -> None:
    fill(server.url, "CUTS", ["cuts"], [])
    with CutProxy(server.port, 40_000, of_client=True) as proxy:  # of 170 kB; our broker's acks are a few hundred bytes
        done, _ = publish(proxy.url, 2100, subject="cuts", window="150")
        assert proxy.cuts >= 3
    assert done.rows == 2100
    assert sorted(numbers(stored(server.url, "CUTS"))) == list(range(2100))


def test_rows_are_not_published_again_when_their_ids_may_be_forgotten(nats_server: NatsServer) -> None:
    fill(nats_server.url, "FORGOTTEN", ["forgotten"], [])
    rows = pa.RecordBatch.from_pydict({"data": pa.array([bytes(100)] * 700)})
    with CutProxy(nats_server.port, 20_000) as proxy:
        options = parse_sink_options({"servers": proxy.url, "subject": "forgotten", "minDuplicateWindow": "0.000001"})
        publisher = RowPublisher(options, check_stream=lambda client, stream: None)
        with pytest.raises(TransportError):
            publisher.publish(rows_of(rows, options, b"q/", 0))
        assert proxy.cuts == 1


def test_each_stream_that_takes_rows_is_checked(nats_server: NatsServer) -> None:
    for name in ("TAKES_LEFT", "TAKES_RIGHT"):
        fill(nats_server.url, name, [name.lower()], [])
    options = parse_sink_options({"servers": nats_server.url})
    checked: list[str] = []
    publisher = RowPublisher(options, check_stream=lambda client, stream: checked.append(stream))
    rows = pa.RecordBatch.from_pydict(
        {"subject": pa.array(["takes_left", "takes_left", "takes_right"]), "data": pa.array([b"1", b"2", b"3"])}
    )
    publisher.publish(rows_of(rows, options, b"q/", 0))
    publisher.finish()
    assert sorted(checked) == ["TAKES_LEFT", "TAKES_RIGHT"]


def test_what_another_subscriber_answers_is_no_acknowledgement(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_publisher, "ACK_SECONDS", 0.2)

    async def main() -> None:
        client = await nats.connect(nats_server.url)

        async def answer(message: Any) -> None:
            await message.respond(b'{"ok":true}')

        await client.subscribe("answered.by.nobody", cb=answer)
        await client.flush()
        with pytest.raises(RequestTimeout, match="no stream but another subscriber"):
            await asyncio.to_thread(publish, nats_server.url, 3, subject="answered.by.nobody", writeTimeout="0.1")
        await client.close()

    asyncio.run(main())


def test_without_ids_a_broken_connection_may_double_but_not_lose(nats_server: NatsServer) -> None:
    fill(nats_server.url, "TWICE", ["twice"], [])
    with CutProxy(nats_server.port, 20_000) as proxy:
        publish(proxy.url, 1400, id_prefix=b"", subject="twice", delivery="at-least-once")
    assert set(numbers(stored(nats_server.url, "TWICE"))) == set(range(1400))


def test_a_server_that_restarts_costs_time_only(tmp_path: Path) -> None:
    with start_nats_server(tmp_path) as first:
        fill(first.url, "AWAY", ["away"], [])
        publish(first.url, 100, subject="away")
        first.kill()
        with start_nats_server(tmp_path, port=first.port):
            done, _ = publish(first.url, 700, subject="away")
            assert (done.rows, done.duplicates) == (700, 100)


def test_large_rows_are_bounded_in_bytes(server: Server) -> None:
    fill(server.url, "WIDE", ["wide"], [])
    done, rows = publish(server.url, 60, size=900_000, subject="wide")
    assert inflight(rows, 2000) == 18
    assert done.rows == 60
    assert numbers(stored(server.url, "WIDE")) == list(range(60))


@pytest.mark.parametrize(
    ("limits", "options", "words", "way_out"),
    [
        (
            {"max_msgs": 10},
            {},
            "row 10 of the batch, to 'full.0', was refused: maximum messages exceeded",
            "raise its limits",
        ),
        ({"max_bytes": 900}, {}, "to 'full.1', was refused: maximum bytes exceeded", "raise its limits"),
        (
            {"max_msg_size": 100},
            {"size": 200},
            "row 0 of the batch, to 'full.2', was refused: message size",
            "max_msg_size",
        ),
        ({}, {"stream": "OTHER"}, "to 'full.3' for stream OTHER, was refused: expected stream", "option stream"),
    ],
)
def test_a_row_that_is_refused_ends_the_task_with_its_subject_and_a_way_out(
    server: Server, limits: dict[str, Any], options: dict[str, Any], words: str, way_out: str
) -> None:
    subject = words.partition("to '")[2].partition("'")[0]
    fill(server.url, f"FULL{subject[-1]}", [subject], [], discard="new", **limits)
    with pytest.raises(JetStreamError, match=re.escape(words)) as refused:
        publish(server.url, 20, subject=subject, window="1", **options)
    assert way_out in refused.value.hint


def test_rows_read_from_an_atomic_batch_or_a_stream_with_sources_are_stored(server: Server) -> None:
    """Such messages keep these headers, which another stream refuses, or takes for a batch without an end."""
    fill(server.url, "COPIED", ["copied"], [])
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    config = client.api("STREAM.INFO.COPIED")["config"]
    client.api("STREAM.UPDATE.COPIED", {**config, "allow_atomic": True})
    client.close()
    kind = pa.map_(pa.string(), pa.string())
    headers = [[("Nats-Batch-Id", "b"), ("Nats-Batch-Sequence", "1"), ("a", "1")], [("Nats-Stream-Source", "S 5 > >")]]
    batch = pa.RecordBatch.from_pydict({"data": pa.array([b"0", b"1"]), "headers": pa.array(headers, kind)})
    options = parse_sink_options({"servers": server.url, "subject": "copied", "writeTimeout": "0.1"})
    publisher = RowPublisher(options)
    publisher.publish(rows_of(batch, options, b"c/", 0))
    publisher.finish()
    assert [found for _, found, _ in stored(server.url, "COPIED")] == [
        {"a": "1", "Nats-Msg-Id": "c/0"},
        {"Nats-Msg-Id": "c/1"},
    ]


def test_a_header_that_the_stream_does_not_allow_is_refused_with_a_way_out(server: Server) -> None:
    fill(server.url, "LASTING", ["lasting"], [])
    headers = pa.array([[("Nats-TTL", "5s")]], pa.map_(pa.string(), pa.string()))
    batch = pa.RecordBatch.from_pydict({"data": pa.array([b"0"]), "headers": headers})
    options = parse_sink_options({"servers": server.url, "subject": "lasting"})
    with pytest.raises(JetStreamError, match="per-message TTL is disabled") as refused:
        RowPublisher(options).publish(rows_of(batch, options, b"c/", 0))
    assert "column headers" in refused.value.hint


def test_a_stream_that_acknowledges_nothing_is_thought_of(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_publisher, "ACK_SECONDS", 0.2)
    fill(server.url, "SILENT", ["silent"], [], no_ack=True)
    with pytest.raises(RequestTimeout, match="no_ack"):
        publish(server.url, 1, subject="silent", writeTimeout="0.1")


def test_rows_for_a_sealed_stream_are_refused_with_a_way_out(server: Server) -> None:
    fill(server.url, "SEALED", ["sealed"], [])
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    config = client.api("STREAM.INFO.SEALED")["config"]
    client.api("STREAM.UPDATE.SEALED", {**config, "sealed": True})
    client.close()
    with pytest.raises(JetStreamError, match="sealed") as refused:
        publish(server.url, 1, subject="sealed", writeTimeout="0.1")
    assert "another stream" in refused.value.hint


def test_a_subject_that_no_stream_takes_is_given_up_on_after_the_timeout(server: Server) -> None:
    with pytest.raises(NoResponders, match=r"no stream takes 'nobody\.listens', the subject of row 0"):
        publish(server.url, 3, subject="nobody.listens", writeTimeout="0.1")


def test_a_row_above_the_servers_limit_is_refused_before_it_is_sent(server: Server) -> None:
    with pytest.raises(PayloadTooLarge):
        publish(server.url, 1, size=2 << 20, subject="sink.big")


def test_a_server_that_stays_away_is_given_up_on() -> None:
    with pytest.raises(TransportError):
        publish("nats://127.0.0.1:1", 1, subject="x", writeTimeout="0.2")


def test_core_subscribers_get_every_row(server: Server) -> None:
    async def main() -> list[Any]:
        async with asyncio.timeout(30):
            client = await nats.connect(server.url)
            subscription = await client.subscribe("core.>")
            await flushed(client)
            done, _ = await asyncio.to_thread(publish, server.url, 1500, id_prefix=b"", subject="core.x", target="core")
            assert done.rows == 1500
            got = [await subscription.next_msg(5) for _ in range(1500)]
            await client.close()
            return got

    assert [int(message.data.rstrip(b"\0")) for message in asyncio.run(main())] == list(range(1500))
