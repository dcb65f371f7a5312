"""A streaming source's report with each micro-batch: its name, the size of the batch, and its lag.

`StreamingQueryProgress` has no field for the name or the metrics of a Python source. It shows one document of ours, the
result of `reportLatestOffset`, as `latestOffset` of the source; so they are there, next to the positions:

    {"v": 1, "streams": {"ORDERS": {"next": 124, "created": "…", "behind": 4, "rows": 20, "bytes": 4800}},
     "source": "nats[ORDERS@127.0.0.1:4222]",
     "metrics": {"minOffsetsBehindLatest": "4", "maxOffsetsBehindLatest": "4", "avgOffsetsBehindLatest": "4.0"}}

An Iggy source has the same for each partition, below `topics`; core subjects, below `core`, have `lost` in place of
`bytes`: the number of messages for which the buffer had no room.

`behind` counts the sequences left after this batch, `rows` those in it (including deleted ones), `bytes` estimates the size
of its rows from the stream's mean. The metrics have the names and the string values of those of Spark's Kafka source. The
offsets in Spark's checkpoint contain none of this.
"""

from collections.abc import Mapping
from typing import Any

from headwater.spark.offsets import LogState, PlaceT, StreamState, to_json

Planned = Mapping[PlaceT, tuple[int, int]]  # positions [start, end) of the batch planned last, by log


def report(name: str, states: list[StreamState], planned: Planned[str]) -> dict[str, Any]:
    """The report for streams in their last known state."""
    document = to_json(state.at(state.end) for state in states)
    shares = {state.place: share(state, planned) for state in states}
    for stream, taken in shares.items():
        document["streams"][stream] |= taken
    return document | measured(name, [taken["behind"] for taken in shares.values()])


def share(state: LogState[PlaceT], planned: Planned[PlaceT]) -> dict[str, int]:
    """How much of one log the batch reads, and how much it leaves."""
    start, end = planned.get(state.place, (state.end, state.end))
    rows, left = max(0, end - start), max(0, state.end - end)
    mean = state.bytes / state.messages if state.messages else 0.0
    return {"behind": left, "rows": rows, "bytes": round(rows * mean)}


def measured(name: str, behind: list[int]) -> dict[str, Any]:
    """The name and the metrics of a source; `behind` has the lag of each of its logs, at least one."""
    metrics = {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
    }
    return {"source": name, "metrics": metrics}


def source_name(streams: tuple[str, ...], servers: tuple[str, ...], context: str = "") -> str:
    """`nats[ORDERS@host:4222]`; with a NATS context its name, because the context defines the servers."""
    where = f"context {context}" if context else ",".join(server.rpartition("/")[2] for server in servers)
    return f"nats[{','.join(streams)}@{where}]"
