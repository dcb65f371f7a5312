"""GitHub webhooks all the way: adapter, client, broker, stream, Spark, silver. What comes out is what went in."""

import asyncio
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.headwater_server import HeadwaterServer

import headwater
from headwater.client.jetstream_types import StreamConfig
from headwater.cloudevents import CloudEvent, to_binary, to_structured
from headwater.cloudevents.github import from_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

SAMPLES = Path(__file__).parents[1] / "vectors" / "github-webhooks.jsonl"
REAL = Path(__file__).parents[3] / "shared" / "data" / "github-webhooks.jsonl.gz"
NO_EVENTS = [b"no event", b'{"specversion":"1.0","id":"1"}']


def events_of(path: Path) -> list[CloudEvent]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [from_archive(line) for line in text.splitlines()]


async def publish(url: str, stream: str, events: list[CloudEvent]) -> None:
    """The events in binary and structured mode by turns, and two messages that are no events behind them."""
    async with await headwater.connect(url) as client:
        jetstream = client.jetstream()
        await jetstream.create_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"]))
        async with jetstream.publisher() as publisher:
            for number, event in enumerate(events):
                message = to_structured(event) if number % 2 else to_binary(event)
                subject = f"{stream}.{event.type}"
                await publisher.publish(subject, message.data, headers=message.headers)
            for data in NO_EVENTS:
                await publisher.publish(f"{stream}.none", data)


def stated(event: CloudEvent) -> dict[str, Any]:
    """An event as a row of silver."""
    return {
        **{name: event.attributes.get(name) for name in ("id", "source", "type", "subject", "specversion")},
        **{name: event.attributes.get(name) for name in ("datacontenttype", "dataschema")},
        "time": event.time,
        "time_raw": event.time_text,
        "extensions": event.extensions,
        "data": event.payload.decode(),
        "data_binary": None,
    }


@pytest.mark.parametrize("path", [SAMPLES, REAL], ids=lambda path: str(path.name))
def test_webhooks_come_out_of_silver_as_they_went_in(
    path: Path, spark: "SparkSession", headwater_server: HeadwaterServer, tmp_path: Path
) -> None:
    from headwater.spark import run_available_now

    if not path.exists():
        pytest.skip(f"no {path.name} beside the checkout")
    events = events_of(path)
    stream = f"HOOKS{len(events)}"
    asyncio.run(publish(headwater_server.url, stream, events))
    counts = run_available_now(spark, headwater_server.url, stream, tmp_path)
    assert (counts.bronze, counts.silver, counts.rejects) == (len(events) + 2, len(events), 2)
    silver = spark.read.parquet(str(tmp_path / "silver")).orderBy("seq").toArrow()
    expected = [stated(event) for event in events]
    rows = silver.select(list(expected[0])).to_pylist(maps_as_pydicts="strict")
    assert rows == expected
    assert silver["nats_subject"].to_pylist() == [f"{stream}.{event.type}" for event in events]
    rejects = spark.read.parquet(str(tmp_path / "rejects")).orderBy("seq").collect()
    assert [(bytes(row["data"]), row["rule"]) for row in rejects] == list(
        zip(NO_EVENTS, ["not a CloudEvent", "missing"], strict=True)
    )
