"""Room on the disk that is kept for deletions, because each of them first needs some before it gives any back: a purge
writes a tombstone, removing a segment a new state, giving back the newest one another segment.

    whole     a file of SIZE bytes is there; writes of every kind go on until the disk has no more
    lent      the disk was full when something was to be deleted: the file is empty, and what it held is used for that;
              records are refused until the disk has room for all of it again, so they cannot use it up

Without it a stream on a full disk could only be deleted whole: neither a purge nor a limit on age could make room.
Removing whole segments needs some KiB; SIZE is enough for tombstones of 65,000 ranges. Compacting a segment needs room
for what stays of it, which may be more.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import TypeVar

from headwater.durable_files.files import File, Files
from headwater.errors import DiskFull

logger = logging.getLogger(__name__)

SIZE = 1 << 20  # bytes
NAME = "reserve"

A = TypeVar("A")
R = TypeVar("R")


class Reserve:
    """The reserve of one store directory, for all its logs; any thread may call it. `whole`: see above; false until `keep`
    was called. Nothing about it is durable: a start makes the file anew."""

    def __init__(self, files: Files, directory: str) -> None:
        self.whole = False
        self._files = files
        self._path = f"{directory}/{NAME}"
        self._lock = Lock()  # of who changes the file, or uses what it held
        self._lent = False
        self._in_use = False  # by a deletion, which holds the lock
        self._released = False

    def keep(self) -> bool:
        """Blocking. Take the room if the disk has it and no deletion is using it; whether records may be written: the
        reserve is whole now, or was released. Waits for another thread that is taking it, else the records of a stream
        were refused on a disk that has room, because another stream's came at the same moment."""
        if self.whole or self._released:
            return True
        if not self._lock.acquire(blocking=not self._in_use):
            return False
        try:
            self._take()
        finally:
            self._lock.release()
        return self.whole or self._released

    def run(self, work: Callable[[A], R], argument: A) -> R:
        """Blocking. Do what deletes, or gives room back; a second time with the reserve when the disk is full. Raises what
        `work` raises."""
        try:
            return work(argument)
        except DiskFull:
            mine = self._lock.acquire(blocking=False)  # else another thread has lent it already
            try:
                if mine:
                    self._in_use = True
                    self._lend()
                return work(argument)
            finally:
                if mine:
                    self._take()
                    self._in_use = False
                    self._lock.release()

    def release(self) -> None:
        """Blocking. Give the room back for good: the server stops, and closing its logs takes some."""
        with self._lock, suppress(OSError):
            self.whole, self._released = False, True
            self._files.unlink(self._path)

    def _take(self) -> None:
        if self.whole or self._released:
            return
        try:
            file = self._files.create(self._path)
            try:
                self._fill(file)
            finally:
                file.close()
        except OSError as error:
            if not self._lent:
                self._lent = True
                logger.warning("disk_reserve_missing path=%s reason=%s", self._path, error.strerror or error)
            return
        self.whole = True
        if self._lent:
            self._lent = False
            logger.info("disk_reserve_whole path=%s", self._path)

    def _fill(self, file: File) -> None:
        try:
            file.allocate(SIZE)
            if file.size() < SIZE:  # a system without such a call
                file.pwrite([bytes(SIZE)], 0)
        except OSError:
            with suppress(OSError):
                file.truncate(0)
            raise

    def _lend(self) -> None:
        if self.whole:
            self.whole, self._lent = False, True
            with suppress(OSError):
                self._files.create(self._path).close()
            logger.warning("disk_reserve_lent path=%s: the disk is full, and something is to be deleted", self._path)
