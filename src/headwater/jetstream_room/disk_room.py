"""Watches the free space of the disk that stores streams, and warns before it runs out.

Space is low below LOW_SHARE of the disk, at most LOW_BYTES: that is logged once, /healthz warns while it lasts, and
publishes are still accepted. A full disk is handled by the log (a refused write, error 10023).
"""

import asyncio
import logging
import os
from typing import NamedTuple

logger = logging.getLogger(__name__)

LOW_SHARE = 0.05
LOW_BYTES = 1 << 30
LOOK = 10.0  # seconds between two checks


class Room(NamedTuple):
    """Free and total space, in bytes."""

    free: int
    size: int

    @property
    def is_low(self) -> bool:
        """Whether an operator should make room."""
        return self.free < min(LOW_BYTES, LOW_SHARE * self.size)

    def __str__(self) -> str:
        return f"{self.free} of {self.size} bytes are left"


def room_at(path: str) -> Room | None:
    """The space of the path's file system, as available to a process that is not root; None when that is unknown.
    Blocking."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return Room(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


class RoomWatch:
    """Checks every LOOK seconds, in a thread because a file system may hang; `room` is the last result."""

    def __init__(self, path: str) -> None:
        self.room = room_at(path)
        self._path = path
        self._was_low = False
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Stop watching."""
        self._task.cancel()

    def note(self, room: Room | None) -> None:
        """Record a result; crossing the limit in either direction is logged."""
        self.room = room
        if room is None or room.is_low == self._was_low:
            return
        self._was_low = room.is_low
        if room.is_low:
            logger.warning("disk_low path=%s %s", self._path, room)
        else:
            logger.info("disk_has_room path=%s %s", self._path, room)

    async def _watch(self) -> None:
        self.note(self.room)
        while True:
            await asyncio.sleep(LOOK)
            try:
                self.note(await asyncio.to_thread(room_at, self._path))
            except RuntimeError as error:  # no thread to be had; without further looks a full disk comes unannounced
                logger.warning("disk_room_unknown path=%s reason=%s", self._path, error)
