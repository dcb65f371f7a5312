"""Runs the crossings of one place: all ways in through one set of streams, all ways out over them.

    live readers listen ─▶ probe: what the readers subscribed to is known to the writer ─▶ all ways in, one after the other
    ─▶ the owner has stored it all ─▶ the other readers read ─▶ what came is compared, cell by cell

A way that fails takes its own cells with it and no others: what it raised is their outcome.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
from crossings import ways_in, ways_out
from crossings.errand import Errand
from crossings.messages import Got, Sent, Sorted, problems
from crossings.table import TOPIC, Cell, Place, WayIn, WayOut, failing
from crossings.world import PATIENCE, SUBJECTS, World, until

from headwater.errors import HeadwaterError

SENDING = 2 * PATIENCE
READING = 60.0  # seconds for one reader of what is there
WITH_SPARK = 100.0  # for a job of Spark's, which takes two on a quiet machine
PROBE = "crossings.probe"
BRIEFLY = 3.0  # for one whose cells are all known to fail


@dataclass
class Failure:
    """Why a way gave nothing; `skip` where the machine lacks something, which is no fault."""

    reason: str
    skip: bool = False


@dataclass
class Reader:
    """One way out over one stream: what it got so far."""

    way: WayOut
    stream: str
    got: list[Got] = field(default_factory=list)
    failure: Failure | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)


class Outcomes:
    """What became of each cell: nothing, or what is wrong with it. `broken`: why there was no place for any of them.
    `disappointing`: a cell that has to work did not."""

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.disappointing = bool(broken)
        self.of: dict[str, Failure | None] = {}

    def check(self, cell: Cell) -> None:
        """Raises what a test raises."""
        assert not self.broken, f"the place could not be taken: {self.broken}"
        failure = self.of[cell.name]
        if failure is not None and failure.skip:
            pytest.skip(failure.reason)
        self.disappointing |= failure is not None and not failing(cell)
        assert failure is None, failure.reason


OutcomesOf = Callable[[Place], Outcomes]


class Run:
    def __init__(self, world: World, cells: Sequence[Cell]) -> None:
        self._world = world
        self._cells = cells
        self._sent: dict[tuple[str, str], list[Sent] | Failure] = {}  # by way in and stream
        self._readers: dict[tuple[str, str], Reader] = {}  # by way out and stream
        for cell in cells:
            self._readers.setdefault((cell.way_out.key, cell.stream), Reader(cell.way_out, cell.stream))

    async def outcomes(self) -> Outcomes:
        """Go through it all."""
        readers = list(self._readers.values())
        live = [asyncio.create_task(self._read(reader, 0)) for reader in readers if reader.way.live]
        try:
            async with asyncio.timeout(READING):
                await asyncio.gather(*(reader.ready.wait() for reader in readers if reader.way.live))
            await self._probe()
            await self._send_all()
            truth = {stream: await self._truth(stream) for stream in {cell.stream for cell in self._cells}}
            others = [self._read(reader, truth[reader.stream][1]) for reader in readers if not reader.way.live]
            await asyncio.gather(*others, self._wait_for_live())
        finally:
            for task in live:
                task.cancel()
            await asyncio.gather(*live, return_exceptions=True)
        outcomes = Outcomes()
        for cell in self._cells:
            outcomes.of[cell.name] = self._judge(cell, truth[cell.stream][0])
        return outcomes

    # ── in ──

    async def _probe(self) -> None:
        """Wait until the writer knows of the streams, and of what the reader's connection subscribed to.

        Interest goes out in the order in which it arose: the last of each tells of all. Nothing is stored by it.
        """
        world = self._world
        reader, writer = await world.client(world.reader), await world.client(world.writer)
        subscription = await reader.subscribe(PROBE, callback=lambda message: message.respond(b""))
        subjects = [
            "$O.CROSS.C.probe",
            *([] if world.deliver else [PROBE]),
        ]  # `deliver`: the reader is in another account

        async def answered() -> bool:
            try:
                for subject in subjects:
                    await writer.request(subject, b"", headers={"Nats-Expected-Stream": "none"}, timeout=0.5)
            except HeadwaterError:
                return False
            return True

        await until(answered, "an answer to the probe")
        subscription.unsubscribe()

    async def _send_all(self) -> None:
        """One way after the other: what fails is known by its name."""
        wanted = dict.fromkeys((cell.way_in, cell.stream) for cell in self._cells)
        for way, stream in wanted:
            self._sent[way.key, stream] = await self._send(way, stream)

    async def _send(self, way: WayIn, stream: str) -> "list[Sent] | Failure":
        tag = f"{way.key}@{stream}"
        subject = SUBJECTS[stream] if stream == TOPIC else f"{SUBJECTS[stream]}.{way.key}"
        function = ways_in.FUNCTIONS[way.key]
        errand = ways_in.Errand(self._world, stream, subject, tag)
        limit = WITH_SPARK if way.marker == "spark" else SENDING
        found: list[Sent] | Failure = await attempt(lambda: function(errand), limit)
        return found

    def _expected(self, stream: str) -> list[Sent]:
        found = []
        for (_, into), sent in self._sent.items():
            if into == stream and not isinstance(sent, Failure):
                found += sent
        return found

    async def _truth(self, stream: str) -> tuple[dict[str, int], int]:
        """The sequence of each message by tag, as the owner has it once all is stored, and the last sequence."""
        wanted = {one.tag for one in self._expected(stream)}
        found = Sorted(self._expected(stream))
        last = 0

        async def complete() -> bool:
            nonlocal last
            state = await self._world.state(stream)
            if state is not None and state.state.last_seq > last:
                reading = ways_out.stored(self._world, self._world.owner, stream, state.state.last_seq, first=last + 1)
                async for got in reading:
                    found.add(got)
                last = state.state.last_seq
            return wanted <= found.of.keys()

        try:
            await until(complete, "")
        except AssertionError:
            pass  # what is missing is missing in its cells
        return {tag: records[0].sequence or 0 for tag, records in found.of.items()}, last

    # ── out ──

    async def _read(self, reader: Reader, last: int) -> None:
        """Collect what this reader gets, for as long as it reads."""

        async def collect() -> None:
            errand = Errand(self._world, reader.stream, last)
            async with aclosing(ways_out.FUNCTIONS[reader.way.key](errand)) as received:
                async for got in received:
                    if isinstance(got, Got):
                        reader.got.append(got)
                    else:
                        reader.ready.set()

        hopeful = any(True for _ in self._hopeful_cells(reader))
        usual = WITH_SPARK if reader.way.marker == "spark" else READING
        limit = None if reader.way.live else usual if hopeful else BRIEFLY
        failure = await attempt(collect, limit)
        reader.failure = failure if isinstance(failure, Failure) else None
        reader.ready.set()

    async def _wait_for_live(self) -> None:
        """Until every live reader has what it has to get, or there was time enough."""
        waiting = [reader for reader in self._readers.values() if reader.way.live]

        async def complete() -> bool:
            return all(
                reader.failure is not None
                or Sorted(self._expected(reader.stream), reader.got).of.keys()
                >= {one.tag for one in self._wanted_of(reader)}
                for reader in waiting
            )

        try:
            await until(complete, "")
        except AssertionError:
            pass

    def _hopeful_cells(self, reader: Reader) -> Iterable[Cell]:
        """The cells of a reader that are not known to fail."""
        mine = (reader.way, reader.stream)
        return (cell for cell in self._cells if (cell.way_out, cell.stream) == mine and not failing(cell))

    def _wanted_of(self, reader: Reader) -> Iterable[Sent]:
        ways = {cell.way_in.key for cell in self._hopeful_cells(reader)}
        for (key, stream), sent in self._sent.items():
            if key in ways and stream == reader.stream and not isinstance(sent, Failure):
                yield from sent

    # ── what came of it ──

    def _judge(self, cell: Cell, sequences: dict[str, int]) -> Failure | None:
        sent = self._sent[cell.way_in.key, cell.stream]
        if isinstance(sent, Failure):
            return Failure(f"way in: {sent.reason}", sent.skip)
        reader = self._readers[cell.way_out.key, cell.stream]
        checked = cell.way_out.shows if cell.place.carries_headers else cell.way_out.shows - {"headers"}
        got = Sorted(self._expected(cell.stream), reader.got)
        found = list(problems(sent, got, sequences, checked, is_map=cell.way_out.is_map))
        if reader.failure is not None and found:
            return Failure(f"way out: {reader.failure.reason}\n" + "\n".join(found), reader.failure.skip)
        return Failure("\n".join(found)) if found else None


async def attempt(work: Callable[[], Awaitable[Any]], limit: float | None) -> Any:
    """What the work returns, or the Failure that it ended with."""
    timeout = asyncio.timeout(limit)
    try:
        async with timeout:
            return await work()
    except pytest.skip.Exception as skipped:
        return Failure(str(skipped), skip=True)
    except Exception as error:  # noqa: BLE001  (whatever went wrong is the outcome of the cells of this way)
        if timeout.expired():
            return Failure(f"nothing came of it within {limit} s")
        return Failure(f"{type(error).__name__}: {error}")
