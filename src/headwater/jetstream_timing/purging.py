"""Purges, a turn at a time: one may take a scan of the whole log, or of many subjects.

begin ─▶ the first turn ─▶ it was the last one ─▶ consumers adjusted, without a task
                 └─ more to do ─▶ a coroutine, with a pause after each turn
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable

from headwater.jetstream_state.contents import SCAN_BYTES, SCAN_RECORDS, Contents
from headwater.jetstream_state.purge_reach import PurgeReach
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.jetstream_timing.looking import count_matching, next_matching

SCAN_ALONE = 4096  # messages removed in one turn where there are no consumers, some 0.5 us each
OnRemoved = Callable[[Iterable[tuple[int, bytes]]], None]


class Purge:
    """A purge of `contents`: of all messages, or those that are `wanted`; only those `below` a sequence, or all but the
    last `keep`. `count`: messages removed, once it is done. `on_removed` is called with the (sequence, subject) pairs of
    each turn, `on_purged` at the end, unless `contents` does that; None: there are no consumers."""

    def __init__(
        self,
        contents: Contents,
        wanted: SubjectFilter | None,
        below: int,
        keep: int,
        on_removed: OnRemoved,
        on_purged: Callable[[PurgeReach], None] | None,
    ) -> None:
        self.count = 0
        self._contents = contents
        self._wanted = wanted
        self._of_all = not (wanted or below or keep)
        self._on_purged = on_purged
        self._steps = purging(contents, wanted, below, keep, on_removed, has_consumers=on_purged is not None)

    def begin(self) -> Coroutine[object, object, None] | None:
        """Take the first turn; returns what else is to be done, None for nothing. Raises StorageError, as that does."""
        if self._of_all:
            self.count = self._contents.clear()
            self._contents.begins = True
            return None
        if not self._step():
            return self._rest()
        if self._on_purged is None:
            return None
        reach = known_reach(self._contents, self._wanted)
        if reach is None:
            return self._adjust(self._on_purged)
        self._on_purged(reach)
        return None

    def _step(self) -> bool:
        """Take a turn; whether it was the last."""
        try:
            next(self._steps)
        except StopIteration as end:
            self.count = end.value
            return True
        return False

    async def _rest(self) -> None:
        ended = False
        while not ended:
            await asyncio.sleep(0)
            ended = self._step()
        if self._on_purged is not None:
            await self._adjust(self._on_purged)

    async def _adjust(self, on_purged: Callable[[PurgeReach], None]) -> None:
        on_purged(await purge_reach(self._contents, self._wanted))


def purging(
    contents: Contents,
    wanted: SubjectFilter | None,
    below: int,
    keep: int,
    on_removed: OnRemoved,
    *,
    has_consumers: bool = True,
) -> Generator[None, None, int]:
    """Remove matching messages, only those `below` a sequence, or all but the last `keep`, a turn per step; `on_removed` is
    called with the (sequence, subject) pairs removed in each turn. Returns how many were removed. Raises StorageError."""
    few = keep > 0 or (wanted is not None and wanted.literals)  # else counting takes as long as looking at all
    table = contents.subjects
    most = max(0, (table.count(wanted) if few and wanted is not None else table.messages) - keep)
    end = offset_of(below) if below else contents.log.end_offset
    known = contents.known_from(1, wanted) if wanted is not None else None
    if known is not None:
        return (yield from _drop_known(contents, [each for each in known if offset_of(each) < end][:most], on_removed))
    gone, offset = 0, contents.log.start_offset
    a_turn = SCAN_RECORDS if has_consumers else SCAN_ALONE
    while gone < most and offset < min(end, contents.log.end_offset):
        places, offset = contents.drop_matching(wanted, offset, end, min(most - gone, a_turn))
        on_removed(zip(map(sequence_of, places.offsets), places.subjects, strict=True))
        gone += len(places)
        if gone < most and offset < min(end, contents.log.end_offset):
            yield
    return gone


def _drop_known(contents: Contents, sequences: list[int], on_removed: OnRemoved) -> Generator[None, None, int]:
    """Remove the messages with these sequences; returns how many."""
    gone = 0
    for start in range(0, len(sequences), SCAN_RECORDS):
        if start:
            yield
        some = contents.load_all(sequences[start : start + SCAN_RECORDS], SCAN_BYTES)
        removed = contents.drop([record for record in some if record is not None])
        on_removed(removed)
        gone += len(removed)
    return gone


def known_reach(contents: Contents, wanted: SubjectFilter | None) -> PurgeReach | None:
    """As `purge_reach`, without a scan: of a purge without a filter, and of subjects without any message left; else None."""
    first, end = sequence_of(contents.log.start_offset), sequence_of(contents.log.end_offset)
    if wanted is None:
        return PurgeReach(None, first, first)
    return PurgeReach(wanted, first, end) if wanted.literals and not contents.subjects.count(wanted) else None


async def purge_reach(contents: Contents, wanted: SubjectFilter | None) -> PurgeReach:
    """What a purge of `wanted` means for the consumers, now that it is done."""
    first, end = sequence_of(contents.log.start_offset), sequence_of(contents.log.end_offset)
    if wanted is None:
        return PurgeReach(None, first, first)
    left = await next_matching(contents, first, wanted) if await count_matching(contents, first, wanted) else None
    return PurgeReach(wanted, first, end if left is None else sequence_of(left.offset))
