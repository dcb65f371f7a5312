"""The figures of a process's streams together, as a sample of /historyz has them."""

import time
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from headwater.jetstream.service import JetStream


class StreamFigures(NamedTuple):
    """The last fields of a sample; `disk_free` -1: unknown."""

    api_requests: int = 0
    api_errors: int = 0
    sync_p50_ns: int = 0
    sync_p99_ns: int = 0
    ack_p50_ns: int = 0
    ack_p99_ns: int = 0
    disk_free: int = -1
    stored_bytes: int = 0
    stored_messages: int = 0
    refused_writes: int = 0


def stream_figures(accounts: "Collection[JetStream]") -> StreamFigures:
    """Those of the streams of these accounts, at this moment."""
    services = list(accounts)
    if not services:
        return StreamFigures()
    from headwater.group_commit.write_stats import quantile

    stats, now = [service.stats for service in services], time.perf_counter()
    writes, acks = [one.writes for one in stats], [one.acks for one in stats]
    room = services[0].room
    tables = [stream.subjects for service in services for stream in service.streams.values()]
    return StreamFigures(
        sum(service.requests for service in services),
        sum(service.refusals for service in services),
        int(quantile(writes, 0.5, now) * 1e9),
        int(quantile(writes, 0.99, now) * 1e9),
        int(quantile(acks, 0.5, now) * 1e9),
        int(quantile(acks, 0.99, now) * 1e9),
        room.free if room is not None else -1,
        sum(table.size_bytes for table in tables),
        sum(table.messages for table in tables),
        sum(one.refused for one in stats),
    )
