"""What must be saved before a batch goes out, and what need not be."""

import errno
from dataclasses import replace

import pytest
from support.recording_files import RecordingFiles

from headwater.durable_files import documents
from headwater.streams.log_state import RESERVATION, LogState
from headwater.streams.ownership import STATE_DOCUMENT
from headwater.streams.saved_state import SavedState

STATE = LogState(b"identity", 0, 0, 0, marks_are_synced=True)


def make(state: LogState = STATE) -> tuple[RecordingFiles, SavedState]:
    files = RecordingFiles()
    files.mkdir("log")
    return files, SavedState(files, "log", state)


def on_disk(files: RecordingFiles) -> LogState | None:
    document = documents.load(files, f"log/{STATE_DOCUMENT}", identity=STATE.identity)
    return None if document is None else LogState.decode(document)


@pytest.mark.parametrize("synced", [True, False])
def test_offsets_are_reserved_durably_before_they_are_used_and_then_for_a_million_records(synced: bool) -> None:
    files, saved = make()
    saved.reserve(1, 0, synced)
    assert on_disk(files) == replace(STATE, reserved_end=1 + RESERVATION, marks_are_synced=synced)
    before = files.attempts
    saved.reserve(1 + RESERVATION, 0, synced)
    assert files.attempts == before
    saved.reserve(2 + RESERVATION, 0, synced)
    assert on_disk(files) == replace(STATE, reserved_end=2 + 2 * RESERVATION, marks_are_synced=synced)


@pytest.mark.parametrize(
    "closed", [replace(STATE, index_crc=9), replace(STATE, closed=True), replace(STATE, active_base=3)]
)
def test_a_clean_end_an_index_and_another_segment_are_taken_back_before_the_first_write(closed: LogState) -> None:
    files, saved = make(replace(closed, reserved_end=100))
    saved.reserve(5, 0, True)
    assert on_disk(files) == replace(STATE, reserved_end=100)
    before = files.attempts
    saved.reserve(100, 0, True)
    assert files.attempts == before


def test_a_segment_is_named_before_it_is_written_and_with_it_the_one_that_was_sealed() -> None:
    files, saved = make()
    saved.reserve(1, 0, True)
    saved.seal(0, (1, 5000))
    assert on_disk(files) == replace(STATE, reserved_end=1 + RESERVATION)
    saved.reserve(2, 2, True)
    assert on_disk(files) == replace(STATE, reserved_end=1 + RESERVATION, active_base=2, sealed={0: (1, 5000)})


def test_where_nothing_is_synced_another_segment_is_not_named() -> None:
    files = RecordingFiles()
    files.mkdir("log")
    saved = SavedState(files, "log", STATE, never_synced=True)
    saved.reserve(1, 0, False)
    before = files.attempts
    saved.seal(0, (1, 5000))
    saved.reserve(2, 2, False)
    assert files.attempts == before
    saved.reserve(2 + RESERVATION, 2, False)
    assert on_disk(files) == LogState(b"identity", 0, 2 + 2 * RESERVATION, 2, False, sealed={0: (1, 5000)})


def test_after_a_save_that_failed_nothing_is_taken_for_reserved() -> None:
    files, saved = make()
    for _ in range(2):
        files.faults[files.attempts] = errno.EIO
        with pytest.raises(OSError, match=r"\[Errno 5\]"):
            saved.reserve(1, 0, True)
    saved.reserve(1, 0, True)
    assert on_disk(files) == replace(STATE, reserved_end=1 + RESERVATION)


def test_what_opening_found_and_what_was_sealed_since_is_not_on_the_disk_before_a_save() -> None:
    _, saved = make()
    assert not saved.names_segments
    saved.save(saved.state)
    assert saved.names_segments
    saved.seal(7, (1, 5000))
    assert not saved.names_segments
