"""What the HTTP interface writes is read as what it was written from; what is missing or another thing is refused."""

from typing import Any

import pytest

from headwater import TypedHeaders
from headwater.errors import IggyError
from headwater.iggy_wire import http_json, http_views
from headwater.iggy_wire.commands import Message, Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.reply_codec import (
    ClientView,
    ClusterView,
    GroupView,
    Membership,
    MemberView,
    NodeView,
    OptionView,
    PartitionView,
    SentView,
    StatsView,
    StreamView,
    TokenView,
    TopicView,
    UserView,
)
from headwater.model.typed_headers import HeaderForm

OPTIONS = TypedHeaders({"segment_size": "16777216"}).encode(HeaderForm.TYPED)
TOPIC = TopicView(1, 5, 2, "t", 7, 2, 9, 1, 11, 3, OPTIONS, parts=[PartitionView(0, 5, 1, 2, 11, 3)])
GRANTED = Permissions(
    read_topics=True, streams={1: StreamPermissions(topics={2: TopicPermissions(poll_messages=True)})}
)


@pytest.mark.parametrize(
    ("kind", "view"),
    [
        ("topic", TOPIC),
        ("stream", StreamView(1, 2, 1, "s", 11, 3, details=[TOPIC])),
        ("group", GroupView(1, 2, 1, "g", [MemberView(9, [0, 1])])),
        ("user", UserView(1, 2, 1, "alice", permissions=GRANTED)),
        ("user", UserView(1, 2, 2, "alice")),
        ("token", TokenView("ci", 5)),
        ("token", TokenView("ci", 0)),
        ("client", ClientView(1, 2, 4, "127.0.0.1:5", 1, [Membership(1, 2, 3)])),
        ("client", ClientView(1, 0xFFFFFFFF, 1, "127.0.0.1:5")),
        ("option", OptionView("segment_size", 12, bytes(8), "bytes")),
        ("cluster", ClusterView("c", [NodeView("n", "127.0.0.1", 1, 2, 3, 4)])),
        ("stats", StatsView(process_id=7, cpu_usage=0.5, hostname="h", messages=9, threads=3)),
    ],
)
def test_a_view_is_read_as_it_was_written(kind: str, view: Any) -> None:
    assert getattr(http_views, kind)(getattr(http_json, kind)(view)) == view


@pytest.mark.parametrize(
    ("written", "size"),
    [("0 B", 0), ("309 B", 309), ("81884 KiB", 81884 << 10), ("3 KB", 3000), ("16 MiB", 16 << 20), ("2 EiB", 2 << 60)],
)
def test_sizes_may_have_units_as_apaches_server_writes_them(written: str, size: int) -> None:
    topic = http_json.topic(TOPIC) | {"size": written}
    topic["partitions"][0]["size"] = written
    found = http_views.topic(topic)
    assert (found.size, found.parts[0].size) == (size, size)
    assert http_views.stream({"id": 1, "created_at": 2, "name": "s", "size": written}).size == size
    assert http_views.stats({"memory_usage": written, "hostname": "5 B"}) == StatsView(
        memory_usage=size, hostname="5 B"
    )


def test_messages_are_read_as_they_were_written() -> None:
    headers = TypedHeaders([("key", "value"), ("n", 5)])
    written = http_json.polled([Message(b"x", headers, 2**100, 7, 8, 9), Message(b"y", offset=8)], 3, 8)
    partition, current, (first, second) = http_views.polled(written)
    assert (partition, current, first.payload, first.headers, first.id) == (3, 8, b"x", headers, 2**100)
    assert (first.offset, first.timestamp, first.origin_timestamp, first.partition) == (7, 8, 9, 3)
    assert (second.payload, second.headers, second.id, second.offset) == (b"y", None, 0, 8)


def test_a_send_says_where_it_went_or_that_it_is_not_said() -> None:
    entry = {"stream_id": 1, "topic_id": 2, "partition_id": 3, "base_offset": 4}
    assert http_views.sent({"confirmations": [entry]}, 3) == SentView(1, 2, 3, 4)
    assert http_views.sent({}, 3).base_offset == http_views.UNKNOWN_OFFSET


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("topic", {"id": 1}),
        ("topic", []),
        ("stream", {"id": "1", "created_at": 1, "name": "s"}),
        ("user", {"id": True, "created_at": 1, "username": "u", "status": "active"}),
        ("user", {"id": 1, "created_at": 1, "username": "u", "status": "active", "permissions": {"streams": 5}}),
        ("polled", {"partition_id": 0, "current_offset": 0, "messages": [{"header": {}, "payload": "?"}]}),
        ("stats", {"process_id": []}),
        ("stats", {"memory_usage": "much"}),
        ("stream", {"id": 1, "created_at": 1, "name": "s", "size": "5 bytes"}),
    ],
)
def test_what_is_no_view_is_refused(kind: str, source: Any) -> None:
    with pytest.raises(IggyError, match="invalid_format"):
        getattr(http_views, kind)(source)
