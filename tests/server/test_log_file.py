"""A log file can be moved away and has a limit; a pipe without a reader does not stop the writer."""

import logging
import os
from pathlib import Path

import pytest

from headwater.server.log_file import LogFile, StderrHandler


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("headwater", logging.INFO, __file__, 1, text, (), None)


def test_lines_are_appended_and_a_moved_file_is_made_anew_on_reopen(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    log = LogFile(path)
    log.emit(record("one"))
    path.rename(tmp_path / "moved")
    log.emit(record("two"))
    log.reopen()
    log.emit(record("three"))
    log.close()
    assert (tmp_path / "moved").read_text() == "before\none\ntwo\n"
    assert path.read_text() == "three\n"


def test_above_its_limit_a_file_is_renamed_and_the_oldest_go(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path, size_limit=20, max_files=3)
    for number in range(8):
        made = record(f"line {number} of ten")
        made.created += number
        log.emit(made)
    log.close()
    kept = sorted(tmp_path.iterdir())
    assert [file.read_text() for file in kept] == ["line 7 of ten\n", "line 5 of ten\n", "line 6 of ten\n"]


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        LogFile(tmp_path / "gone" / "log")


def test_a_full_pipe_drops_lines_and_says_how_many() -> None:
    reader, writer = os.pipe()
    handler = StderrHandler(writer)
    try:
        for number in range(2000):
            handler.emit(record(f"{number} {'x' * 100}"))
        dropped = handler.dropped
        assert dropped > 0
        while len(os.read(reader, 1 << 20)) == 1 << 20:
            pass
        handler.emit(record("again"))
        assert os.read(reader, 1000) == f"again ({dropped} lines before this one found no room)\n".encode()
        handler.emit(record("y" * 10_000))
        assert len(os.read(reader, 20_000)) < 4096
    finally:
        os.close(reader)
        handler.emit(record("nobody reads"))
        os.close(writer)


def test_a_closed_stderr_is_no_problem() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    StderrHandler(writer).emit(record("x"))
