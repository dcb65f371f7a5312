"""Notices that the files of a stream were removed while it is served.

An open file can be written to after it was removed: a publish is stored, synced and acknowledged, and gone with the next
start. No call to the disk fails before a new segment is made. So every LOOK seconds the folders are looked for; one that is
missing twice is reported, once. Twice, because the folder of a stream that is being deleted is missing, too.
"""

import asyncio
import os
from collections.abc import Callable, Mapping

LOOK = 10.0  # seconds between two looks; one takes 2 us a stream, in a thread because a file system may hang

Folders = Mapping[str, str]
"""The folder of each stream."""


def missing(folders: Folders) -> Folders:
    """Those that are not there. Blocking."""
    return {name: folder for name, folder in folders.items() if not os.path.isdir(folder)}


class FolderWatch:
    """Calls `notify(stream, folder)` for what is missing of `folders()`. Starts at once, in the running loop."""

    def __init__(self, folders: Callable[[], Folders], notify: Callable[[str, str], None]) -> None:
        self._folders = folders
        self._notify = notify
        self._missing: Folders = {}  # at the last look
        self._reported: Folders = {}
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """Stop watching."""
        self._task.cancel()

    def note(self, missing: Folders) -> None:
        """Record the result of a look."""
        again = {name: folder for name, folder in missing.items() if self._missing.get(name) == folder}
        for name, folder in again.items():
            if self._reported.get(name) != folder:
                self._notify(name, folder)
        self._missing, self._reported = missing, again

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.note(await asyncio.to_thread(missing, self._folders()))
