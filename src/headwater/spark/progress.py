"""What a streaming source reports of itself with each micro-batch: its name, what it takes, how far it is behind.

`StreamingQueryProgress` has no place for a Python source's name or metrics. It shows one document of ours, that of
`reportLatestOffset`, as `latestOffset` of the source; so that is where they are, beside the positions:

    {"v": 1, "streams": {"ORDERS": {"next": 124, "created": "…", "behind": 4, "rows": 20, "bytes": 4800}},
     "source": "nats[ORDERS@127.0.0.1:4222]",
     "metrics": {"minOffsetsBehindLatest": "4", "maxOffsetsBehindLatest": "4", "avgOffsetsBehindLatest": "4.0"}}

An Iggy source has the same for each partition of its topics, below `topics`; core subjects, below `core`, have `lost` in
place of `bytes`: what came and had no room.

`behind` counts the sequences left after this batch, `rows` those in it (deleted ones included), `bytes` those of its rows by
the stream's mean. The metrics have the names, and the strings for values, of Spark's Kafka source. Offsets that Spark keeps
in a checkpoint have none of this.
"""

from collections.abc import Mapping
from typing import Any

from headwater.spark.offsets import LogState, PlaceT, StreamState, to_json

Planned = Mapping[PlaceT, tuple[int, int]]  # positions [start, end) of the batch that was planned last, by log


def report(name: str, states: list[StreamState], planned: Planned[str]) -> dict[str, Any]:
    """The document for streams as they were seen last."""
    document = to_json(state.at(state.end) for state in states)
    shares = {state.place: share(state, planned) for state in states}
    for stream, taken in shares.items():
        document["streams"][stream] |= taken
    return document | measured(name, [taken["behind"] for taken in shares.values()])


def share(state: LogState[PlaceT], planned: Planned[PlaceT]) -> dict[str, int]:
    """What the batch takes of one log, and what it leaves."""
    start, end = planned.get(state.place, (state.end, state.end))
    rows, left = max(0, end - start), max(0, state.end - end)
    mean = state.bytes / state.messages if state.messages else 0.0
    return {"behind": left, "rows": rows, "bytes": round(rows * mean)}


def measured(name: str, behind: list[int]) -> dict[str, Any]:
    """The name and the metrics of a source whose logs are so much behind; at least one."""
    metrics = {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
    }
    return {"source": name, "metrics": metrics}


def source_name(streams: tuple[str, ...], servers: tuple[str, ...], context: str = "") -> str:
    """`nats[ORDERS@host:4222]`; of a NATS context its name, for the servers are in it."""
    where = f"context {context}" if context else ",".join(server.rpartition("/")[2] for server in servers)
    return f"nats[{','.join(streams)}@{where}]"
