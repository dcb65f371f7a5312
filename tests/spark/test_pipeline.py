"""The pipeline's functions over rows as the source gives them: all kinds in one stream, read once."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from support.nats_server import NatsServer
from support.stream_filling import Message, fill

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(300)]

JSON = "application/json"


def event(id: str, data: bytes, content_type: str | None = JSON, **attributes: str) -> Message:
    headers = {"specversion": "1.0", "id": id, "source": "/acme/shop", "type": "test", **attributes}
    if content_type is not None:
        headers["datacontenttype"] = content_type
    return "all.events", {f"ce-{name}": value for name, value in headers.items()}, data


def commit(id: str, author: str, committed_at: str, **more: object) -> Message:
    data = {"repo": "acme/shop", "sha": id, "author": author, "committed_at": committed_at, **more}
    return event(id, json.dumps(data).encode(), type="commit", time=committed_at)


FILES = [{"path": "a", "added": 3, "deleted": 1}, {"path": "b", "added": 4, "deleted": None}]
SHA_A, SHA_B, SHA_C = "a" * 40, "b" * 40, "c" * 40

MESSAGES: list[Message] = [
    commit(SHA_A, "ann", "2026-01-31T23:30:00-01:00", files=FILES),  # February in UTC
    commit(SHA_B, "ann", "2026-02-10T00:00:00Z"),
    commit(SHA_C, "bob", "2026-02-11T00:00:00Z", files=FILES, subject="the subject"),
    commit(SHA_C, "bob", "2026-02-11T00:00:00Z", files=FILES),  # published twice
    event("array", b'[1, {"sha": 3}]'),
    event("scalar", b"null"),
    event("odd", b'{"sha": {"a": 1}, "repo": [], "files": 7, "committed_at": "yesterday"}'),
    event("vendor", b'{"n": 1}', "application/vnd.acme+JSON; charset=utf-8"),
    event("text", b"hello", "text/plain"),
    event("untyped-json", b'{"n": 1}', None),
    event("untyped-bytes", b"\xff\x00", None),
    event("empty", b""),
    event("broken", b'{"n": '),
    event("latin", b'"\xe9"'),
    ("all.events", {"ce-specversion": "1.0"}, b""),
    ("all.events", None, b"no event"),
]


@pytest.fixture(scope="module")
def frame(spark: "SparkSession", nats_server: NatsServer) -> "Iterator[DataFrame]":
    from headwater.spark_tables.pipeline import SOURCE_OPTIONS

    fill(nats_server.url, "ALL", ["all.*"], MESSAGES)
    reader = spark.read.format("nats").options(servers=nats_server.url, stream="ALL", **SOURCE_OPTIONS)
    read = reader.load().cache()
    yield read
    read.unpersist()


@pytest.fixture(scope="module")
def events(frame: "DataFrame") -> dict[str, Any]:
    from headwater.spark import silver

    return {row["id"]: row for row in silver(frame).collect()}


def test_bronze_is_every_row_as_on_the_wire(frame: "DataFrame") -> None:
    from headwater.spark import bronze

    made = bronze(frame)
    assert made.columns == ["stream", "subject", "seq", "timestamp", "headers_raw", "headers", "data"]
    rows = sorted(made.collect(), key=lambda row: int(row["seq"]))
    assert [bytes(row["data"]) for row in rows] == [payload for _, _, payload in MESSAGES]
    assert rows[-1]["headers_raw"] is None
    assert rows[-1]["headers"] == {}


def test_a_row_is_in_silver_or_in_rejects(frame: "DataFrame") -> None:
    from headwater.spark import rejects, silver

    silver_rows = {row["seq"] for row in silver(frame).select("seq").collect()}
    refused = {row["seq"]: row for row in rejects(frame).collect()}
    assert silver_rows | set(refused) == set(range(1, len(MESSAGES) + 1))
    assert not silver_rows & set(refused)
    reasons = [refused[seq]["reason"] for seq in sorted(refused)]
    assert "not JSON" in reasons[0]
    assert "not UTF-8" in reasons[1]
    assert "missing" in reasons[2]
    assert "not a CloudEvent" in reasons[3]
    assert [refused[seq]["rule"] for seq in sorted(refused)] == ["JSON", "invalid UTF-8", "missing", "not a CloudEvent"]
    assert bytes(refused[len(MESSAGES)]["data"]) == b"no event"


def test_json_is_text_other_data_bytes_and_none_null(events: dict[str, Any]) -> None:
    assert {id: row["data"] for id, row in events.items() if len(id) < 40} == {
        "array": '[1, {"sha": 3}]',
        "scalar": "null",
        "odd": '{"sha": {"a": 1}, "repo": [], "files": 7, "committed_at": "yesterday"}',
        "vendor": '{"n": 1}',
        "untyped-json": '{"n": 1}',
        "text": None,
        "untyped-bytes": None,
        "empty": None,
    }
    binary = {id: bytes(row["data_binary"]) for id, row in events.items() if row["data_binary"] is not None}
    assert binary == {"text": b"hello", "untyped-bytes": b"\xff\x00"}


def test_a_commit_is_a_struct_and_nothing_else_is(events: dict[str, Any]) -> None:
    assert {id for id, row in events.items() if row["commit"] is not None} == {SHA_A, SHA_B, SHA_C}
    made = events[SHA_A]["commit"]
    assert (made["repo"], made["author"], made["subject"]) == ("acme/shop", "ann", None)
    assert made["committed_at"].isoformat() == events[SHA_A]["time"].isoformat()
    assert [tuple(file) for file in made["files"]] == [("a", 3, 1), ("b", 4, None)]
    assert events[SHA_A]["time_raw"] == "2026-01-31T23:30:00-01:00"


def test_gold_counts_an_event_once_and_takes_any_event(frame: "DataFrame") -> None:
    from headwater.spark import gold, silver

    rows = {(row["type"], str(row["month"])): row for row in gold(silver(frame)).collect()}
    commits = rows["commit", "2026-02-01"]
    assert (commits["source"], commits["events"], commits["authors"]) == ("/acme/shop", 3, 2)
    assert (commits["files"], commits["lines_added"], commits["lines_deleted"]) == (4, 14, 2)
    assert commits["first_time"] < commits["last_time"]
    (other,) = (row for (kind, _), row in rows.items() if kind == "test")
    assert (other["events"], other["authors"], other["files"], other["lines_added"]) == (8, 0, 0, 0)
