"""The name and the metrics of a source, as a progress report of Spark shows them."""

from headwater.spark.offsets import StreamState
from headwater.spark.progress import report, source_name


def test_a_report_has_the_positions_and_how_far_each_stream_is_behind() -> None:
    orders = StreamState("ORDERS", "then", 1, 124, messages=100, bytes=24_000)
    quiet = StreamState("QUIET", "then", 1, 1)
    document = report("nats[ORDERS,QUIET@h]", [orders, quiet], {"ORDERS": (100, 120), "QUIET": (1, 1)})
    assert document == {
        "v": 1,
        "streams": {
            "ORDERS": {"next": 124, "created": "then", "behind": 4, "rows": 20, "bytes": 4800},
            "QUIET": {"next": 1, "created": "then", "behind": 0, "rows": 0, "bytes": 0},
        },
        "source": "nats[ORDERS,QUIET@h]",
        "metrics": {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "4", "avgOffsetsBehindLatest": "2.0"},
    }


def test_nothing_is_behind_where_nothing_was_planned_or_the_stream_has_shrunk() -> None:
    state = StreamState("S", "then", 1, 10)
    assert report("n", [state], {})["streams"]["S"]["behind"] == 0
    assert report("n", [state], {"S": (12, 20)})["streams"]["S"]["behind"] == 0


def test_a_source_is_named_by_its_streams_and_its_servers() -> None:
    assert source_name(("A", "B"), ("nats://h:4222", "tls://i:4223")) == "nats[A,B@h:4222,i:4223]"
    assert source_name(("A",), ("nats://127.0.0.1:4222",), "prod") == "nats[A@context prod]"
