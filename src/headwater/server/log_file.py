"""Handlers for log lines: a file that can be reopened and has a size limit, or stderr, which never blocks the broker.

A parent process may stop reading the server's stderr pipe, for instance after "Server is ready". A full pipe would then
block the broker at its next log line. So a line that does not fit into the pipe is dropped and counted, and the count is
logged once there is room again.
"""

import logging
import os
import select
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

PIPE_ATOMIC = 4096  # bytes that fit without waiting when poll reports a pipe as writable


class StderrHandler(logging.Handler):
    """Lines to file descriptor 2."""

    def __init__(self, descriptor: int = 2) -> None:
        super().__init__()
        self.dropped = 0
        self._descriptor = descriptor
        self._poll: select.poll | None = None
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                self._poll = select.poll()
                self._poll.register(descriptor, select.POLLOUT)
        except OSError:  # stderr is closed: there is no place left to report it
            self._descriptor = -1

    def emit(self, record: logging.LogRecord) -> None:
        if self._descriptor < 0:
            return
        text = self.format(record)
        if self._poll is None:
            self._write(f"{text}\n".encode(errors="backslashreplace"))
            return
        if self.dropped:
            text = f"{text} ({self.dropped} lines before this one found no room)"
        line = f"{text}\n".encode(errors="backslashreplace")
        if len(line) > PIPE_ATOMIC:
            line = line[: PIPE_ATOMIC - 2] + b"\n"
        if self._poll.poll(0) == [(self._descriptor, select.POLLOUT)]:
            self.dropped = 0
            self._write(line)
        else:
            self.dropped += 1

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._descriptor, line)
        except OSError:  # the reader is gone
            self.dropped += 1


class LogFile(logging.Handler):
    """Lines to `path`, appended; mode 0640. Raises OSError when it cannot be opened.

    Above `size_limit` bytes (0: none) the file is renamed to `path.2026.11.21.08.30.00.123456` and a new one begun; of
    the renamed ones the newest `max_files - 1` are kept (0: all).
    """

    def __init__(self, path: "Path", size_limit: int = 0, max_files: int = 0) -> None:
        super().__init__()
        self.path = path
        self._size_limit = size_limit
        self._max_files = max_files
        self._descriptor = -1
        self._size = 0
        self.reopen()

    def reopen(self) -> None:
        """Close and open by name: for a tool that has moved the file away."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        try:
            if self._size_limit and self._size and self._size + len(line) > self._size_limit:
                from datetime import datetime

                self._begin_anew(datetime.fromtimestamp(record.created))
            self._size += os.write(self._descriptor, line)
        except OSError as error:
            print(f"cannot write to the log file {self.path}: {error}", file=sys.stderr)  # noqa: T201

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        super().close()

    def _begin_anew(self, moment: "datetime") -> None:
        self.path.rename(f"{self.path}.{moment:%Y.%m.%d.%H.%M.%S.%f}")
        self.reopen()
        if self._max_files > 0:
            renamed = sorted(self.path.parent.glob(f"{self.path.name}.*"))
            for old in renamed[: max(0, len(renamed) - self._max_files + 1)]:
                old.unlink(missing_ok=True)
