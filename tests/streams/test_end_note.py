"""`log.end` follows the log, and a disk that refuses it costs nothing but the note."""

import errno
import logging

import pytest
from support.recording_files import RecordingFiles

from headwater.streams.end_file import END_FILE, RecordedEnd, decode_end
from headwater.streams.end_note import EndNote

IDENTITY = b"identity"


def test_the_last_end_is_in_the_file_and_nothing_is_synced() -> None:
    files = RecordingFiles()
    files.mkdir("log")
    for ends in ((5, 6), (7,)):  # the second time the file is there
        note = EndNote(files, "log", IDENTITY)
        for end in ends:
            note.note(end, 3, 100 + end)
        note.close()
    found = decode_end(files.content(f"log/{END_FILE}"), files.boot_id)
    assert found == (IDENTITY, RecordedEnd(7, 3, 107, is_exact=True))
    assert "sync" not in [call[0] for call in files.calls]
    assert files.open_files == 0


def test_a_file_that_cannot_be_written_is_logged_once_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    files = RecordingFiles()
    files.mkdir("log")
    note = EndNote(files, "log", IDENTITY)
    note.note(5, 3, 105)
    files.faults[files.attempts] = errno.EIO
    with caplog.at_level(logging.WARNING):
        note.note(6, 3, 106)
    before = files.attempts
    note.note(7, 3, 107)
    assert files.attempts == before
    assert [record.message.split()[0] for record in caplog.records] == ["log_end_not_noted"]
    note.close()
    assert files.open_files == 0


def test_a_log_that_was_never_written_has_no_note() -> None:
    files = RecordingFiles()
    EndNote(files, "log", IDENTITY).close()
    assert files.calls == []
