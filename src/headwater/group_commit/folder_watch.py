"""Notices that the files of a log were removed while it is served, and has it refuse what comes after.

An open file can be written to after it was removed: a message is stored, synced and acknowledged, and gone with the next
start. No call to the disk fails before a new segment is made. So every LOOK seconds the newest file of each log is looked
for; one that is missing twice makes its log read-only, and is reported. Twice, because a log that is being deleted is
missing, too. When the same file is back, as where a folder was moved away and back, the log takes messages again.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial

from headwater.errors import WriteFailed
from headwater.streams.log import Log, newest_path, refuse_writes, take_writes

logger = logging.getLogger(__name__)

LOOK = 10.0  # seconds between two looks; one takes 2 us a log, in a thread because a file system may hang

FileId = tuple[int, int]
Found = Mapping[Log, tuple[str, FileId | None]]
"""Of each log the path of its newest file, and which file is there; None: none is."""


def look_for(paths: Mapping[Log, str]) -> Found:
    """Look for these files. Those of which the system cannot tell are left out. Blocking."""
    found: dict[Log, tuple[str, FileId | None]] = {}
    for log, path in paths.items():
        try:
            status = os.stat(path)
            found[log] = path, (status.st_dev, status.st_ino)
        except (FileNotFoundError, NotADirectoryError):
            found[log] = path, None
        except OSError:
            continue  # no permission, no connection: reads and writes tell
    return found


class _Watched:
    """What is known of one log. `seen`: its newest file when that was there last; `missed`: the path where the last look
    has found nothing; `failure`: why it is read-only."""

    def __init__(self) -> None:
        self.seen: tuple[str, FileId | None] | None = None
        self.missed = ""
        self.failure: WriteFailed | None = None
        self.replaced = False


class FolderWatch:
    """Calls `lost(log)` when the files of one of `logs()` are missing, `back(log)` when they are there again. Starts at
    once, in the running loop."""

    def __init__(self, logs: Callable[[], list[Log]], lost: Callable[[Log], None], back: Callable[[Log], None]) -> None:
        self._logs = logs
        self._lost = lost
        self._back = back
        self._watched: dict[Log, _Watched] = {}
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Stop watching."""
        self._task.cancel()

    def paths(self) -> dict[Log, str]:
        """What is to be looked for."""
        return {log: newest_path(log) for log in self._logs()}

    def note(self, found: Found) -> None:
        """Record the result of a look."""
        known = self._watched
        self._watched = {log: known.get(log) or _Watched() for log in self._logs()}
        for log, one in self._watched.items():
            if log in found:
                self._judge(log, one, found[log])

    def _judge(self, log: Log, one: _Watched, found: tuple[str, FileId | None]) -> None:
        path, there = found
        if one.failure is not None:
            if there is not None and one.seen == found:
                take_writes(log, one.failure)
                one.failure, one.missed = None, ""
                self._back(log)
            elif there is not None and not one.replaced:
                one.replaced = True
                logger.error("log_files_replaced path=%s others than those that were removed; restart the server", path)
        elif there is not None:
            one.seen, one.missed = found, ""
        elif one.missed != path:
            one.missed = path
        else:
            one.failure, one.replaced = refuse_writes(log, "its files were removed"), False
            self._lost(log)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                self.note(await asyncio.to_thread(partial(look_for, self.paths())))
            except Exception:  # the next look may succeed; without any, lost files are not reported
                logger.exception("folder_watch_failed next_look_in=%ds", LOOK)
