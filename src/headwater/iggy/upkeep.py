"""Housekeeping: drops messages above the limits of age and size, oldest first, whole segments at a time.

Which segments to drop is a pure decision (`surplus_end`). The deletion is a tombstone in the log, durable with the next
write; the log's upkeep frees the space between two writes.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from headwater.errors import StorageError
from headwater.iggy.partition import Partition
from headwater.iggy.topics import Topic
from headwater.streams.log import Span

logger = logging.getLogger(__name__)


def surplus_end(spans: Sequence[Span], now_ns: int, max_age_ns: int, max_bytes: int) -> int:
    """The offset below which a partition's records are dropped; 0 for none. A limit of 0 is none.

    By age whole segments, the newest too; by size never the newest.
    """
    end = 0
    size = sum(span.size for span in spans)
    for place, span in enumerate(spans):
        newest = place == len(spans) - 1
        too_old = (
            max_age_ns > 0 and span.last_timestamp_ns is not None and span.last_timestamp_ns <= now_ns - max_age_ns
        )
        too_much = 0 < max_bytes < size and not newest
        if not (too_old or too_much):
            break
        end = span.end
        size -= span.size
    return end


class Housekeeper:
    """Checks every partition of `topics` each `interval` seconds, and calls `also`. `clock_us`: microseconds since 1970."""

    def __init__(
        self, topics: Mapping[int, Topic], interval: float, clock_us: Callable[[], int], also: Callable[[], None]
    ) -> None:
        self._topics = topics
        self._also = also
        self._interval = interval
        self._clock_us = clock_us
        self._task: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        if self._others:
            await asyncio.wait(self._others)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                self._also()
                await self.look()
            except Exception:  # the next look follows; without any, nothing expires, and nothing would say so
                logger.exception("housekeeping_failed next_look_in=%gs", self._interval)

    async def look(self) -> None:
        """Check all partitions once."""
        for topic in list(self._topics.values()):
            age, size = topic.entry.message_expiry * 1000, topic.entry.max_size // max(1, len(topic.partitions))
            for partition in list(topic.partitions) if age or size else ():
                if partition.closing:
                    continue
                now_ns = self._clock_us() * 1000
                end = surplus_end(partition.log.spans, now_ns, age, size)
                try:
                    if end > partition.log.start_offset:
                        await drop(partition, end)
                except StorageError as error:
                    logger.error("housekeeping_failed topic=%s reason=%s", topic.entry.name, error)
                except Exception:  # the next topics, and the next look, have their turn all the same
                    logger.exception("housekeeping_failed topic=%s", topic.entry.name)


async def drop(partition: Partition, end: int) -> None:
    """Remove the records below `end`, durably on return, with the space freed as far as possible. Raises
    StorageError."""
    partition.log.discard_range(0, end)
    partition.committer.note_deletions()
    await partition.committer.barrier()
    await partition.committer.flush()
