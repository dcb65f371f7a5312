"""What the other workers of `serve --workers --spread_streams` have of an account; see the package jetstream_workers.

A stream is created where it will live. Whether the account may have it depends on all streams of the account: their
subjects, their number, the room that they reserve, and the origins that it copies. `Elsewhere` has that of all other
workers; where one broker has all streams, it is NOTHING.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from headwater.jetstream_documents.streams import StreamConfig


class Elsewhere(msgspec.Struct, frozen=True):
    """`overlaps`: another stream captures a subject of the new one. Bytes are by storage, `memory` or `file`: `reserved` by
    the streams of the account, `reserved_by_all` by those of every account, `weights`: what the account's streams hold.
    `configs`: those of the account's streams, where the new stream copies others."""

    overlaps: bool = False
    streams: int = 0
    reserved: dict[str, int] = {}
    reserved_by_all: dict[str, int] = {}
    weights: dict[str, int] = {}
    configs: list[StreamConfig] = []

    def find(self, name: str) -> StreamConfig | None:
        """The configuration of a stream, if it is among `configs`."""
        return next((config for config in self.configs if config.name == name), None)

    def joined(self, other: "Elsewhere") -> "Elsewhere":
        """Both together."""
        return Elsewhere(
            self.overlaps or other.overlaps,
            self.streams + other.streams,
            _sums(self.reserved, other.reserved),
            _sums(self.reserved_by_all, other.reserved_by_all),
            _sums(self.weights, other.weights),
            [*self.configs, *other.configs],
        )


NOTHING = Elsewhere()


class Others(Protocol):
    """The other workers, for the streams of one account."""

    def passed_on(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        """Whether a request names a stream of another worker; it is then answered by that one, or with an error."""
        ...

    def seek(self, subject: bytes, reply: bytes, payload: bytes) -> bool:
        """Ask the next worker for a stream that answers this direct get; False when all were asked."""
        ...

    def claim(self, config: StreamConfig, old: StreamConfig | None) -> AbstractAsyncContextManager[Elsewhere]:
        """Hold the subjects and the room of a stream that is created, or changed from `old`, against the creations at
        other workers. Raises JetStreamError 10008 when a worker does not answer."""
        ...

    def stream_made(self, name: str) -> None:
        """A stream was created here: the copies of it at other workers can start."""
        ...

    def has_room(self, storage: str, here: int, size: int, limit: int) -> bool:
        """Whether the account may store `size` more bytes at this worker, whose streams hold `here` bytes by now."""
        ...


def _sums(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
