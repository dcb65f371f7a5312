"""Long scans of a stream, interleaved with the broker's other work: a stream may hold a million subjects.

Each scan yields to the loop after a thousand entries. Entries added or removed meanwhile may or may not be in the
result, as if that had happened a moment earlier or later; entries present throughout are.
"""

import asyncio
from collections.abc import AsyncIterator
from heapq import merge

from headwater.jetstream_state.contents import PASSED, SCAN_BYTES, SCAN_RECORDS, Contents
from headwater.jetstream_state.sequence import offset_of, sequence_of
from headwater.jetstream_state.subject_table import SubjectFilter, SubjectTable
from headwater.streams.log import StoredRecord

SUBJECTS = 1024  # scanned in one turn, some 3 us each


class Scan:
    """A scan of the durable records from `offset` on that match, up to `end`, or to the end of the log at the last turn."""

    def __init__(self, contents: Contents, offset: int, end: int | None, wanted: SubjectFilter | None) -> None:
        self._log = contents.log
        self._offset = offset
        self._end = end
        self._subjects = wanted.wanted if wanted is not None else None

    @property
    def goes_on(self) -> bool:
        """Whether there is something left to scan."""
        return self._offset < self._log.end_offset and (self._end is None or self._offset < self._end)

    def turn(self, most: int | None = None) -> list[StoredRecord]:
        """The records of one turn, `most` at most if it is set; there may be none."""
        most = most or SCAN_RECORDS
        some, self._offset = self._log.read_matching(self._offset, self._subjects, most, SCAN_BYTES, PASSED)
        if self._end is None or not some or some[-1].offset < self._end:
            return some
        return [record for record in some if record.offset < self._end]


async def records(
    contents: Contents,
    offset: int,
    end: int | None = None,
    wanted: SubjectFilter | None = None,
    most: int | None = None,
) -> AsyncIterator[list[StoredRecord]]:
    """The durable records from `offset` on that match, in batches of one turn, which may be empty; up to `end`, or to the
    end of the log at the last read. `most`: in one turn. There is no pause after the last batch."""
    scan = Scan(contents, offset, end, wanted)
    while scan.goes_on:
        yield scan.turn(most)
        if scan.goes_on:
            await asyncio.sleep(0)


async def next_matching(contents: Contents, sequence: int, wanted: SubjectFilter) -> StoredRecord | None:
    """The first message at or above `sequence` that matches."""
    if wanted.literals and not contents.subjects.count(wanted):
        return None
    known = contents.known_from(sequence, wanted)
    if known is not None:
        return contents.load(known[0]) if known else None
    async for some in records(contents, max(offset_of(sequence), 0), wanted=wanted, most=1):
        if some:
            return some[0]
    return None


async def count_matching(contents: Contents, sequence: int, wanted: SubjectFilter | None) -> int:
    """The number of matching messages from `sequence` on, up to date on return: there is no pause after the last step.
    Messages removed meanwhile may still be counted; none is left out."""
    table, log = contents.subjects, contents.log
    if wanted is None or wanted.literals or len(table) <= SUBJECTS:
        known = contents.count_from(sequence, wanted)
        if known is not None:
            return known
    elif sequence <= sequence_of(log.start_offset):
        return await _count_in_table(contents, wanted)
    count = 0
    async for some in records(contents, offset_of(sequence), wanted=wanted):
        count += len(some)
    return count


async def _count_in_table(contents: Contents, wanted: SubjectFilter) -> int:
    """Count in the table of subjects, and in the log the messages that arrive during that scan."""
    table, log = contents.subjects, contents.log
    begin, count = log.end_offset, 0
    growing: dict[bytes, int] = {}  # subjects that grew during the scan, with the end of the log when they were counted
    for some_names in table.names(SUBJECTS):
        for name in some_names:
            if wanted.matches(name):
                held, last = table.entry(name)
                count += held
                if abs(last) > sequence_of(begin - 1):
                    growing[name] = log.end_offset
        await asyncio.sleep(0)
    async for some in records(contents, begin, wanted=wanted):
        for record in some:
            if record.offset >= growing.get(record.subject, begin):
                count += 1
    return count


async def last_sequences(table: SubjectTable, wanted: SubjectFilter, below: int) -> list[int]:
    """Sequences below `below` of the last message of each matching subject, ascending."""
    if wanted.literals or len(table) <= SUBJECTS:
        return [sequence for sequence in table.lasts(wanted) if sequence < below]
    found: list[int] = []
    for names in table.names(SUBJECTS):
        lasts = table.lasts_of([name for name in names if wanted.matches(name)])
        found += [sequence for sequence in lasts if 0 < sequence < below]
        await asyncio.sleep(0)
    found.sort()
    return found


async def lasts_up_to(contents: Contents, wanted: SubjectFilter, up_to: int) -> list[int]:
    """Sequences of the last message at or below `up_to` of each matching subject, ascending."""
    if up_to >= contents.log.end_offset:
        return await last_sequences(contents.subjects, wanted, up_to + 1)
    lasts: dict[bytes, int] = {}
    async for some in records(contents, 0, up_to, wanted):
        lasts.update((one.subject, sequence_of(one.offset)) for one in some)
    return sorted(lasts.values())


async def page_of_counts(table: SubjectTable, pattern: bytes, offset: int, limit: int) -> tuple[int, dict[str, int]]:
    """How many subjects match, and one page of them in order, each with its number of messages."""
    wanted = SubjectFilter([pattern])
    runs: list[list[bytes]] = []
    for names in table.names(SUBJECTS):
        matching = [name for name in names if wanted.matches(name)]
        if matching:
            runs.append(sorted(matching))
        await asyncio.sleep(0)
    page: dict[str, int] = {}
    for place, name in enumerate(merge(*runs)):
        if place >= offset + limit:
            break
        if place >= offset:
            page[name.decode("utf-8", "replace")] = table.total(name)
        if place % SUBJECTS == 0:
            await asyncio.sleep(0)
    return sum(map(len, runs)), page
