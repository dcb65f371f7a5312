"""The limits on the bytes of all streams of a server. Unless configured, they are three quarters of the memory and of
the disk space free at the start, as in nats-server. So publishes are refused before the machine runs out of memory.

    ServerCaps.look, every LOOK seconds ──▶ above CAREFUL of a cap: every publish is checked against it, until it is below

Adding up all streams for each message would cost more than the message itself; a tenth below a cap, a check every LOOK
seconds is enough.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.disk_room import room_at
from headwater.options.access import JetStreamLimits

LOOK = 1.0  # seconds
CAREFUL = 0.9
SHARE_IN_QUARTERS = 3
UNKNOWN_MEMORY, UNKNOWN_DISK = 256 << 20, 1 << 40  # used where the system gives no number; nats-server's defaults
CGROUP = "/sys/fs/cgroup/memory.max"
KINDS = {"memory": "memory", "file": "storage"}


class Capped(Protocol):
    """The part of a stream that is limited."""

    @property
    def weight(self) -> int:
        """The bytes that the stream holds."""
        ...

    @property
    def config(self) -> StreamConfig: ...

    def limit_room(self, has_room: Callable[[int], bool] | None, *, of_server: bool) -> None:
        """Set `has_room(bytes)`, which decides whether the server may hold a message; None: no limit."""
        ...


class Caps(NamedTuple):
    """The limits in bytes: of streams in memory, and on disk."""

    memory: int
    storage: int

    def of(self, storage: str) -> int:
        """The limit for streams of this storage, `memory` or `file`."""
        return self.memory if storage == "memory" else self.storage


def default_caps(directory: str) -> Caps:
    """The default limits for streams in this directory, or in its nearest existing parent. Blocking."""
    while not os.path.isdir(directory) and os.path.dirname(directory) != directory:
        directory = os.path.dirname(os.path.abspath(directory))
    room = room_at(directory)
    memory = memory_of_the_machine()
    return Caps(
        memory // 4 * SHARE_IN_QUARTERS if memory else UNKNOWN_MEMORY,
        room.free // 4 * SHARE_IN_QUARTERS if room is not None else UNKNOWN_DISK,
    )


def caps_of(limits: JetStreamLimits, directory: str) -> Caps:
    """The configured limits; defaults where none is configured. Blocking."""
    found = default_caps(directory)
    return Caps(
        limits.max_memory if limits.max_memory >= 0 else found.memory,
        limits.max_file if limits.max_file >= 0 else found.storage,
    )


def memory_of_the_machine() -> int:
    """The memory of the machine, or of the container, in bytes; 0 when it is unknown."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    try:
        with open(CGROUP, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return found
    return min(found, int(text)) if text.isdigit() else found


class ServerCaps:
    """The limits of one server. `streams()` returns the streams of every account, `elsewhere(storage)` the bytes in those
    of other workers."""

    def __init__(
        self,
        caps: Caps,
        streams: Callable[[], Iterable[Capped]],
        elsewhere: Callable[[str], int] = lambda storage: 0,
    ) -> None:
        self.caps = caps
        self._elsewhere = elsewhere
        self._streams = streams
        self._careful: dict[str, bool] = dict.fromkeys(KINDS, False)
        self._watching: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start checking; safe to call again."""
        if self._watching is None:
            self._watching = asyncio.get_running_loop().call_later(LOOK, self._watch)

    def stop(self) -> None:
        """Stop checking."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def used(self, storage: str) -> int:
        """Bytes in all streams of this storage."""
        here = sum(stream.weight for stream in self._streams() if stream.config.storage == storage)
        return here + self._elsewhere(storage)

    def may_reserve(self, storage: str, size: int, besides: Capped | None, elsewhere: int = 0) -> bool:
        """Whether a stream may reserve `size` bytes, given the reservations of all others but `besides`, and of other
        workers' streams, `elsewhere`. Always true for size 0."""
        return size <= 0 or self.reserved(storage, besides) + elsewhere + size <= self.caps.of(storage)

    def reserved(self, storage: str, besides: Capped | None = None) -> int:
        """The bytes that streams of this storage reserve here, those of `besides` excepted."""
        return sum(
            max(0, one.config.max_bytes)
            for one in self._streams()
            if one is not besides and one.config.storage == storage
        )

    def look(self) -> None:
        """Start or stop checking every publish, depending on how much is used."""
        for storage in KINDS:
            careful = self.used(storage) > CAREFUL * self.caps.of(storage)
            if careful or self._careful[storage]:
                self._careful[storage] = careful
                check = (lambda size, storage=storage: self._has_room(storage, size)) if careful else None
                for stream in self._streams():
                    if stream.config.storage == storage:
                        stream.limit_room(check, of_server=True)

    def _has_room(self, storage: str, size: int) -> bool:
        return self.used(storage) + size <= self.caps.of(storage)

    def _watch(self) -> None:
        self._watching = asyncio.get_running_loop().call_later(LOOK, self._watch)
        self.look()
