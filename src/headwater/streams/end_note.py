"""Writes the durable end of the log to `log.end` (end_file.py): one write into the page cache after every fdatasync.

A file that cannot be written keeps a lower end, which is still a correct bound, or is recognized as damaged. The first
error is logged, and no later end is written.
"""

import logging

import cython

if cython.compiled:
    from cython.cimports.headwater.streams.end_file import encode_end
else:
    from headwater.streams.end_file import encode_end

from headwater.durable_files.files import File, Files, keep
from headwater.streams.end_file import END_FILE, encode_boot

logger = logging.getLogger(__name__)


class EndNote:
    """Writes the file; the first `note` opens or creates it."""

    def __init__(self, files: Files, directory: str, identity: bytes) -> None:
        self._files = files
        self._directory = directory
        self._identity = identity
        self._boot = encode_boot(files.boot())
        self._file: File | None = None
        self._usable = True

    def note(self, end: cython.longlong, base_offset: cython.longlong, size: cython.longlong) -> cython.int:
        """The log is durable up to offset `end`; its newest segment begins at `base_offset` and has `size` bytes."""
        if not self._usable:
            return 0
        try:
            if self._file is None:
                self._file = self._open()
            self._file.pwrite([encode_end(self._identity, end, base_offset, size, self._boot)], 0)
        except OSError as error:
            self._usable = False
            logger.warning("log_end_not_noted directory=%s reason=%s", self._directory, error)
        return 0

    def _open(self) -> File:
        path = f"{self._directory}/{END_FILE}"
        try:
            return keep(self._files, path, True)
        except FileNotFoundError:
            self._files.create(path).close()
            return keep(self._files, path, True)

    def close(self) -> None:
        """Close the file handle."""
        if self._file is not None:
            self._file.close()
