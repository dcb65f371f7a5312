"""The open end of a log: offsets in order, batches closed at their size, nothing staged once the log has failed."""

import errno

import pytest
from support.recording_files import RecordingFiles

from headwater.errors import WriteFailed
from headwater.streams.log import Log, LogOptions
from headwater.streams.staging import Staging


def staging_of(first_offset: int, batch_bytes: int) -> Staging:
    """The staging of an empty log."""
    return Log.open(
        RecordingFiles(), "log", LogOptions(preallocate_bytes=0, batch_bytes=batch_bytes), 1, first_offset
    ).staging


def test_offsets_ascend_across_batches_of_both_dialects() -> None:
    staging = staging_of(7, 1 << 20)
    assert staging.stage(b"a", b"", b"x", 1) == 7
    assert staging.stage_iggy(b"\0" * 300, 3, 2) == 8
    assert staging.stage(b"b", b"", b"", 3) == 11
    assert staging.end_offset == 12
    assert [(batch.base_offset, batch.record_count) for batch in staging.seal()] == [(7, 1), (8, 3), (11, 1)]


def test_a_batch_is_closed_when_it_is_full() -> None:
    staging = staging_of(0, 100)
    for _ in range(3):
        staging.stage(b"a", b"", b"x" * 100, 1)
    assert [batch.record_count for batch in staging.seal()] == [1, 1, 1]


def test_sealing_leaves_nothing_behind_and_offsets_go_on() -> None:
    staging = staging_of(0, 100)
    assert staging.seal() == []
    staging.stage(b"a", b"", b"xyz", 1)
    assert staging.size > 3
    staging.seal()
    assert (staging.size, staging.seal(), staging.stage(b"a", b"", b"", 1)) == (0, [], 1)


def test_after_a_failure_of_the_disk_nothing_is_staged() -> None:
    files = RecordingFiles()
    log = Log.open(files, "log", LogOptions(preallocate_bytes=0), 1)
    log.stage(b"a", b"", b"", 1)
    batch = log.seal()
    assert batch is not None
    files.faults = dict.fromkeys(range(files.attempts, files.attempts + 9), errno.EIO)
    with pytest.raises(WriteFailed):
        log.write(batch)
    with pytest.raises(WriteFailed):
        log.staging.stage(b"a", b"", b"", 1)
    with pytest.raises(WriteFailed):
        log.staging.stage_iggy(b"\0" * 300, 3, 2)
    assert log.staging.end_offset == 1
    assert log.failure is not None


def test_a_restart_forgets_what_waits() -> None:
    staging = staging_of(0, 1)
    staging.stage(b"a", b"", b"xyz", 1)
    staging.stage(b"a", b"", b"xyz", 1)
    staging.restart(9)
    assert (staging.size, staging.end_offset, staging.seal()) == (0, 9, [])
