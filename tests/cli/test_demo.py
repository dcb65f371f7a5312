"""The demo's steps, short of Spark: what is published, what is known already, what is refused. With Spark: twice."""

import asyncio
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from headwater.cli import demo
from headwater.client.client import connect
from headwater.client.jetstream_types import ConsumerConfig
from headwater.cloudevents import NATSMessage, from_nats
from headwater.errors import EnvironmentProblem, HeadwaterError
from headwater.server.broker import Broker

LINES = b"".join(b'{"repo":"r/r","sha":"s%d","committed_at":"2024-01-01T00:00:00Z"}\n' % n for n in range(300))


def silent() -> Console:
    return Console(file=io.StringIO())


def test_every_line_is_an_event_in_binary_mode_with_a_message_id_and_a_second_run_adds_nothing(tmp_path: Path) -> None:
    events = tmp_path / "e.jsonl"
    events.write_bytes(LINES + b"no json\n")

    async def main() -> None:
        async with asyncio.timeout(60), Broker(jetstream=True, store_dir=tmp_path / "streams") as broker:
            first = await demo.publish(events, broker.url, silent())
            again = await demo.publish(events, broker.url, silent())
            assert (first.events, first.duplicates, first.refused, first.stored) == (300, 0, 1, 300)
            assert (again.events, again.duplicates, again.refused, again.stored) == (300, 300, 1, 300)
            async with await connect(broker.url) as client:
                jetstream = client.jetstream()
                made = await jetstream.create_consumer(demo.STREAM, ConsumerConfig(ack_policy="none"))
                (message, *_) = await jetstream.pull_consumer(demo.STREAM, made.name).fetch(1)
        assert message.subject == "events.commit.r_r"
        assert message.message.headers["Nats-Msg-Id"] == "/r/r s0"
        event = from_nats(NATSMessage(message.message.headers, message.data))
        assert (event.id, event.source, event.datacontenttype) == ("s0", "/r/r", "application/json")

    asyncio.run(main())


def test_publishing_to_nobody_is_an_error_that_says_so() -> None:
    with pytest.raises(HeadwaterError, match="cannot connect"):
        asyncio.run(demo.publish(Path(__file__), "nats://127.0.0.1:1", silent()))


def test_events_that_cannot_be_read_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    for step in ("all", "publish"):
        with pytest.raises(EnvironmentProblem, match=r"cannot read .*No such file"):
            demo.main(["--events", str(tmp_path / "none"), "--dir", str(tmp_path / "data"), "--step", step])
    assert list(tmp_path.iterdir()) == []


def test_progress_without_a_terminal_is_a_line_now_and_then_and_one_for_the_end() -> None:
    console, now = silent(), 0.0
    progress = demo.LineProgress(console, lambda: now)
    task = progress.add_task("publish", total=3000)
    for count in range(100, 3001, 100):
        now += 0.1
        progress.update(task, completed=count)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split("\n") == [
        "publish      100 of 3,000",
        "publish      2,100 of 3,000",
        "publish      3,000 of 3,000",
        "",
    ]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_makes_tables_and_a_second_run_leaves_them_as_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    events = tmp_path / "e.jsonl"
    events.write_bytes(LINES)
    arguments = ["--events", str(events), "--dir", str(tmp_path / "a demo")]
    for _ in range(2):
        assert demo.main(arguments) == 0
        shown = capfd.readouterr().out
        assert "gold: 1 rows" in shown
        assert "events by month" in shown and "2024-01" in shown
        assert f"report   {tmp_path / 'a demo' / 'report.html'}" in shown
        assert "<svg" in (tmp_path / "a demo" / "report.html").read_text(encoding="utf-8")
        silver = pq.read_table(tmp_path / "a demo" / "tables" / "silver", columns=["id"])
        assert sorted(silver.column("id").to_pylist()) == sorted(f"s{n}" for n in range(300))
