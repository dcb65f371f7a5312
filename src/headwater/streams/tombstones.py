"""Tombstones: how the log stores a deletion. They are batches of their own dialect, written with the same append and made
durable by the same fdatasync as the records around them, so a deletion has its place in the order of all events.

    batch header of dialect 2: record count = number of ranges, offset span 0, base offset = where the log ended then
    body = ranges, back to back, each | start u64 | end u64 |     offsets [start, end) hold no record any more

A tombstone deletes only offsets below its own base, in any segment. It is needed for as long as a file still holds one
of those records; compaction (compaction.py) drops it afterwards. An empty one is allowed: it says how far a segment
reached whose last records were removed.
"""

import struct
from collections.abc import Sequence

from headwater.streams.log_format import DIALECT_TOMBSTONES, BatchHeader, encode_batch_header, header_of

RANGE = struct.Struct("<QQ")
RANGES_PER_BATCH = 1 << 16  # 1 MiB of body, like a batch of records

Range = tuple[int, int]


def encode_tombstones(
    edges: Sequence[int], base_offset: int, timestamp_ns: int, identity: bytes
) -> list[tuple[BatchHeader, bytes, bytes]]:
    """As many batches as the ranges need, at least one; each as (header, header bytes, body). `edges`: where they start and
    end, in turn."""
    batches = []
    for first in range(0, max(1, len(edges)), 2 * RANGES_PER_BATCH):
        group = edges[first : first + 2 * RANGES_PER_BATCH]
        body = struct.pack(f"<{len(group)}Q", *group)
        times = timestamp_ns, timestamp_ns
        header = header_of(body, DIALECT_TOMBSTONES, len(group) // 2, base_offset, base_offset, times)
        batches.append((header, encode_batch_header(header, identity), body))
    return batches


def decode_tombstones(header: BatchHeader, body: bytes) -> list[Range]:
    """The ranges of a checked body that make sense: not empty, and below the tombstone itself."""
    whole = len(body) - len(body) % RANGE.size
    return [(start, end) for start, end in RANGE.iter_unpack(body[:whole]) if start < end <= header.base_offset]
