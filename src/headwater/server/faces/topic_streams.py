"""Iggy's topics for JetStream, where one process has both: each partition of a topic is a stream, read from the same log.

    topic `eu` of stream `orders`, partition 0  ─▶  JetStream stream `iggy-orders-eu-0`, subject `iggy.orders.eu.0`

Characters of an Iggy name that are not allowed in a stream's name or a subject token become `_`; if two names would
then be equal, the later one gets the partition's catalog number as a suffix. Headers come by the mapping of
`model.header_mapping`, the message id as `Iggy-Message-Id`. Streams are added and removed with the topics; a purged
topic is a new one. Durable consumers are kept in the folder `jetstream` of the Iggy directory.
"""

import asyncio
import logging
import re
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from headwater.durable_files.files import OsFiles
from headwater.jetstream.view import ViewStream
from headwater.jetstream_state.store import StreamDirectory

if TYPE_CHECKING:
    from headwater.iggy.partition import Partition
    from headwater.iggy.service import Service
    from headwater.jetstream.service import JetStream

logger = logging.getLogger("headwater")

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
NANOSECONDS: Final = 1000
FIRST_PAUSE: Final = 0.5  # seconds before a topic that could not be shown is tried again; doubled each time
LONGEST_PAUSE: Final = 60.0


class Wanted(NamedTuple):
    """One partition of a topic."""

    stream: str
    topic: str
    partition: "Partition"

    @property
    def name(self) -> str:
        return f"iggy-{_fit(self.stream)}-{_fit(self.topic)}-{self.partition.index}"

    @property
    def subject(self) -> str:
        return f"iggy.{_fit(self.stream)}.{_fit(self.topic)}.{self.partition.index}"


def _fit(name: str) -> str:
    return _UNFIT.sub("_", name)


class TopicStreams:
    """Keeps the streams in step with the topics, while the context is open."""

    def __init__(self, service: "Service", jetstream: "JetStream") -> None:
        self._service = service
        self._jetstream = jetstream
        self._shown: dict[int, ViewStream] = {}  # by uid of the partition
        self._changed = asyncio.Event()
        self._whole = True  # whether the last refresh could make all changes
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "TopicStreams":
        self._service.changes.on_changed = self._changed.set
        self._whole = await self.refresh()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._service.changes.on_changed = None
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        for uid in list(self._shown):
            await self._hide(uid, forget=False)

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), None if self._whole else pause)
                pause = FIRST_PAUSE
            except TimeoutError:
                pause = min(2 * pause, LONGEST_PAUSE)
            self._changed.clear()
            try:
                self._whole = await self.refresh()
            except Exception:  # it is tried again; without this loop, later topics are never shown
                logger.exception("iggy_topics_not_in_step")
                self._whole = False

    def _wanted(self) -> Iterator[Wanted]:
        for stream in self._service.catalog.streams:
            for entry in stream.topics if not stream.origin else ():
                topic = self._service.topics.get(entry.uid)
                for partition in topic.partitions if topic is not None else ():
                    yield Wanted(stream.name, entry.name, partition)

    async def refresh(self) -> bool:
        """Add and remove streams to match the partitions and their names. False if that failed for one of them: it is
        logged, and the others are in step."""
        wanted = {one.partition.uid: one for one in self._wanted()}
        done = True
        for uid, view in list(self._shown.items()):
            one = wanted.get(uid)
            if one is None or view.origin is not one.partition.log or view.config.subjects != [one.subject]:
                done &= await self._try(view.name, self._hide(uid, forget=one is None))
        for uid, one in wanted.items():
            if uid not in self._shown:
                done &= await self._try(one.name, self._show(uid, one))
        return done

    async def _try(self, name: str, change: Coroutine[None, None, None]) -> bool:
        try:
            await change
        except Exception as error:  # noqa: BLE001  (whatever is wrong with one topic, the others are shown)
            logger.error("iggy_topic_not_in_step stream=%s reason=%r", name, error)
            return False
        return True

    async def _show(self, uid: int, one: Wanted) -> None:
        name = one.name if one.name not in self._jetstream.streams else f"{one.name}-{uid}"
        partition, clock_us = one.partition, self._service.clock_us
        view = ViewStream(
            name,
            one.subject,
            partition.log,
            StreamDirectory(OsFiles(), str(self._service.files.directory / "jetstream" / str(uid)), on_demand=True),
            partition.created * NANOSECONDS,
            lambda: clock_us() * NANOSECONDS,
            f"partition {partition.index} of the Iggy topic {one.topic} in {one.stream}",
        )
        partition.on_stored = view.follow_soon
        await self._jetstream.show(view)
        self._shown[uid] = view

    async def _hide(self, uid: int, *, forget: bool) -> None:
        await self._jetstream.hide(self._shown[uid], forget=forget)
        del self._shown[uid]
