"""Commits all the way: published in both modes with typed extensions, through a stream and Spark into silver, and equal."""

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.headwater_server import HeadwaterServer

import headwater
from headwater.cli.demo_events import EventLines, read_lines
from headwater.client.jetstream_types import StreamConfig
from headwater.cloudevents import CloudEvent, to_binary, to_structured
from headwater.cloudevents.attributes import AttributeType
from headwater.cloudevents.extensions import Extension, Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(600)]

REAL = Path(__file__).parents[3] / "shared" / "data" / "commits.jsonl.gz"
TYPES = Registry(
    [
        Extension("filecount", AttributeType.INTEGER),
        Extension("merge", AttributeType.BOOLEAN),
        Extension("digest", AttributeType.BINARY),
    ]
)


def sample() -> Iterable[bytes]:
    """Thirty commits, some of them odd: no files, no author, other scripts, a time with a zone."""
    for number in range(30):
        found: dict[str, Any] = {
            "repo": "acme/läden" if number % 3 else "acme/shop",
            "sha": f"{number:040x}",
            "committed_at": f"2026-0{1 + number % 9}-01T00:00:00+0{number % 10}:00",
            "subject": ('Merge 変更 %41 "quoted"', "x", "")[number % 3],
            "files": [{"path": f"f{n}", "added": n, "deleted": 1} for n in range(number % 4)],
        }
        yield json.dumps(found if number % 5 else {**found, "author": "ann"}, ensure_ascii=number % 2 == 0).encode()


def with_extensions(event: CloudEvent) -> CloudEvent:
    """The event with an extension of each type that headers lose, and one whose text must be percent-encoded."""
    found = json.loads(event.payload)
    attributes = dict(event.attributes) | {
        "filecount": len(found["files"]),
        "merge": found.get("subject", "").startswith("Merge"),
        "digest": bytes.fromhex(found["sha"]),
        "partitionkey": found["repo"] + " ü%",
    }
    return CloudEvent.from_attributes(attributes, msgspec.Raw(event.payload))


async def publish(url: str, stream: str, events: list[CloudEvent]) -> None:
    async with await headwater.connect(url) as client:
        jetstream = client.jetstream()
        await jetstream.create_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"]))
        async with jetstream.publisher() as publisher:
            for number, event in enumerate(events):
                message = to_structured(event) if number % 2 else to_binary(event)
                await publisher.publish(f"{stream}.commit", message.data, headers=message.headers)


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize("held", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["sample", "held data"])
def test_commits_come_out_of_silver_attribute_by_attribute(
    held: bool, spark: "SparkSession", headwater_server: HeadwaterServer, tmp_path: Path
) -> None:
    from headwater.spark import run_available_now

    if held and not REAL.exists():
        pytest.skip(f"no {REAL.name} beside the checkout")
    lines = read_lines(REAL) if held else sample()
    events = [with_extensions(event) for _, event in EventLines("commits").events(lines)]
    stream = f"COMMITS{len(events)}"
    asyncio.run(publish(headwater_server.url, stream, events))
    counts = run_available_now(spark, headwater_server.url, stream, tmp_path)
    assert (counts.bronze, counts.silver, counts.rejects) == (len(events), len(events), 0)
    assert counts.silver_distinct == len({(event.source, event.id) for event in events})
    silver = spark.read.parquet(str(tmp_path / "silver")).orderBy("seq").toArrow()
    for row, event in zip(silver.to_pylist(maps_as_pydicts="strict"), events, strict=True):
        core = {name: row[name] for name in ("id", "source", "type", "subject", "specversion", "datacontenttype")}
        assert core == {name: event.attributes.get(name) for name in core}
        assert (row["dataschema"], row["time"], row["time_raw"]) == (None, event.time, event.time_text)
        assert TYPES.restored(row["extensions"]) == dict(event.extensions)
        assert row["data"].encode() == event.payload
        found = json.loads(event.payload)
        shown = row["commit"]
        assert (shown["repo"], shown["sha"], shown["author"]) == (found["repo"], found["sha"], found.get("author"))
        assert shown["committed_at"] == instant(found["committed_at"])
        assert shown["files"] == found["files"]
