"""The options of a log, checked when they are made."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from headwater.errors import ConfigError

SyncPolicy = Literal["always", "interval", "never"]

SEGMENTS_OF_A_LIMIT = 8  # this many segments hold what a limit allows, so the oldest, half deleted, is an eighth of it
COMPRESSED_SEGMENT = 8 << 20  # bytes: the newest is not compressed, and publishers wait for one to be written anew
SMALLEST_SEGMENT = 64 << 10  # in smaller ones the 4 KiB head page would be a noticeable share of the file
# Bytes of the smallest segment of a stream on disk. A publisher's batches have up to 256 KiB: in a segment of 64 each opened
# a new one and removed an old one, 0.3 ms of syncs.
SEGMENT_OF_A_STREAM = 1 << 20
LARGEST_BATCH = 64 << 20  # a batch is checked as a whole, so this is what one read may have to hold in memory


@dataclass(frozen=True, slots=True)
class LogOptions:
    """`sync`: when a written batch is made durable. `always` (default): before `Log.write` returns, one fdatasync for
    the whole staged batch. `interval`: when `sync_interval_ns` of record time has passed since the last one, and
    whenever `Log.sync` is called. `never`: when the kernel writes it back; survives kill -9, not a power loss.

    `segment_bytes`: a batch that would make a segment larger than this opens a new one (a single larger batch gets a
    segment to itself). `batch_bytes`: a batch on disk is closed when its body reaches this. `cache_bytes`: newest
    batches kept in memory for readers at the end of the log. `preallocate_bytes`: room reserved ahead in the newest
    segment at first, later as much as is in it (0: none); an fdatasync that need not write a new file size takes two
    thirds of the time. `prepares`: after a large write, while no other waits, the next one like it is prepared.
    """

    segment_bytes: int = 64 << 20
    batch_bytes: int = 1 << 20
    sync: SyncPolicy = "always"
    sync_interval_ns: int = 1_000_000_000
    cache_bytes: int = 4 << 20
    preallocate_bytes: int = 256 << 10
    prepares: bool = False

    def __post_init__(self) -> None:
        if self.sync not in get_args(SyncPolicy):
            raise ConfigError(
                f"unknown sync policy {self.sync!r}",
                value=self.sync,
                limit=get_args(SyncPolicy),
                hint="use always, interval or never",
            )
        _check_range("segment_bytes", self.segment_bytes, SMALLEST_SEGMENT, 1 << 40)
        _check_range("batch_bytes", self.batch_bytes, 1, LARGEST_BATCH)
        _check_range("sync_interval_ns", self.sync_interval_ns, 0, 1 << 62)
        _check_range("cache_bytes", self.cache_bytes, 0, 1 << 40)
        _check_range("preallocate_bytes", self.preallocate_bytes, 0, 1 << 30)

    def for_limit(self, max_bytes: int, *, compressed: bool = False, least: int = SMALLEST_SEGMENT) -> "LogOptions":
        """As these, with smaller segments, of `least` bytes at least, and less room ahead where at most `max_bytes` may be
        live (0 or less: any), and where sealed segments are to be `compressed`."""
        segment_bytes = min(self.segment_bytes, COMPRESSED_SEGMENT) if compressed else self.segment_bytes
        if max_bytes <= 0:
            return replace(self, segment_bytes=segment_bytes)
        segment_bytes = max(least, min(segment_bytes, max_bytes // SEGMENTS_OF_A_LIMIT))
        return replace(
            self, segment_bytes=segment_bytes, preallocate_bytes=min(self.preallocate_bytes, segment_bytes // 4)
        )


def _check_range(name: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ConfigError(
            f"{name} must be from {lowest} to {highest}, not {value}", value=value, limit=(lowest, highest)
        )
