"""Creations at several workers at once: which of them may go on.

    owner ──ASK.claim──▶ the first worker ──ASK.check──▶ every other worker but the owner
      ▲                        │   one claim after the other              │
      └── what all have of the account, and of the room ◀─────────────────┘

The owner of the new stream decides with that, as a single broker does. Until its stream exists it counts its own claim in
the answers to later checks. The first worker sends it the answer before any later check, on the same connection, so of two
streams with overlapping subjects the later one is always refused.

Nothing is remembered anywhere but at the owner: when it dies, its claims are gone with it; when the first worker dies, the
next one goes on. While any worker is away, what needs a claim is refused.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Iterable
from contextlib import asynccontextmanager

import msgspec

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.captured_subjects import CapturedSubjects
from headwater.jetstream_room.whole import NOTHING, Elsewhere
from headwater.jetstream_workers.line import Line

FIRST = 1
STORAGES = ("memory", "file")


class Claim(msgspec.Struct, frozen=True):
    """A stream that worker `owner` is about to create, or to change from `old`."""

    owner: int
    config: StreamConfig
    old: StreamConfig | None = None

    @property
    def copies(self) -> bool:
        """Whether the origins of the stream matter."""
        return self.config.mirror is not None or bool(self.config.sources)

    @property
    def is_harmless(self) -> bool:
        """Whether it takes nothing that its old configuration had not."""
        old, config = self.old, self.config
        if old is None or self.copies:
            return False
        return set(config.subjects) <= set(old.subjects) and config.max_bytes == old.max_bytes

    def taken(self) -> Elsewhere:
        """What the stream will take beyond its old configuration."""
        before = max(0, self.old.max_bytes) if self.old is not None else 0
        more: dict[str, int] = {self.config.storage: max(0, max(0, self.config.max_bytes) - before)}
        return Elsewhere(streams=int(self.old is None), reserved=more, reserved_by_all=more)


class Gate:
    """Lets one claim after the other be checked: only at the first worker, for all accounts."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._one = asyncio.Lock()

    async def check(self, account: str, payload: bytes, here: Callable[[Claim], Elsewhere]) -> bytes:
        """What all workers but the owner have; `here(claim)`: what this one has. Raises JetStreamError 10008."""
        claim = msgspec.json.decode(payload, type=Claim)
        async with self._one:
            answers = await self._line.ask_others(account, "check", payload, besides=claim.owner)
            found = NOTHING if claim.owner == FIRST else here(claim)
            for answer in answers:
                found = found.joined(msgspec.json.decode(answer, type=Elsewhere))
            return msgspec.json.encode(found)


class Claims:
    """Those of one account at one worker. `account`: its token on the line; `configs()`: of its streams here;
    `overlap(name, subjects)`: whether one of those captures one of these, as `CapturedSubjects.overlap`;
    `reserved_here(storage)`: the bytes that the streams of all accounts here reserve; `weight_here(storage)`: the bytes in
    this account's."""

    def __init__(
        self,
        line: Line,
        account: str,
        configs: Callable[[], Iterable[StreamConfig]],
        overlap: Callable[[str, list[str]], bool],
        reserved_here: Callable[[str], int],
        weight_here: Callable[[str], int],
    ) -> None:
        self._line = line
        self._account = account
        self._configs = configs
        self._overlap = overlap
        self._reserved_here = reserved_here
        self._weight_here = weight_here
        self._held: list[Claim] = []

    @asynccontextmanager
    async def claim(self, config: StreamConfig, old: StreamConfig | None) -> AsyncIterator[Elsewhere]:
        """See `Others.claim`."""
        claim = Claim(self._line.number, config, old)
        if claim.is_harmless:
            yield NOTHING
            return
        mine: list[Elsewhere] = []

        def hold(answer: bytes) -> None:
            mine.append(self._of_held(claim).joined(msgspec.json.decode(answer, type=Elsewhere)))
            self._held.append(claim)

        try:
            await self._line.ask(FIRST, self._account, "claim", msgspec.json.encode(claim), hold)
            yield mine[0]
        finally:
            self._held = [one for one in self._held if one is not claim]

    def check(self, claim: Claim) -> Elsewhere:
        """What this worker has, its claims included."""
        configs = list(self._configs())
        found = Elsewhere(
            overlaps=self._overlap(claim.config.name, claim.config.subjects),
            streams=len(configs),
            reserved=_reserved(configs),
            reserved_by_all={storage: self._reserved_here(storage) for storage in STORAGES},
            weights={storage: self._weight_here(storage) for storage in STORAGES},
            configs=configs if claim.copies else [],
        )
        return found.joined(self._of_held(claim, {config.name for config in configs}))

    def _of_held(self, claim: Claim, there: Container[str] = ()) -> Elsewhere:
        """What other streams will have that this worker is creating; some are `there` by now."""
        found = NOTHING
        for held in self._held:
            if held.config.name != claim.config.name and (held.old is not None or held.config.name not in there):
                found = found.joined(held.taken())
        held_subjects = CapturedSubjects()
        for number, held in enumerate(self._held):
            if held.config.name != claim.config.name:
                held_subjects.put(str(number), held.config.subjects)
        overlaps = held_subjects.overlap("", claim.config.subjects)
        return found.joined(Elsewhere(overlaps=overlaps))


def _reserved(configs: Iterable[StreamConfig]) -> dict[str, int]:
    found = dict.fromkeys(STORAGES, 0)
    for config in configs:
        found[config.storage] += max(0, config.max_bytes)
    return found
