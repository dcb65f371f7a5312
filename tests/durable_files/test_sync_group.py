"""Files that become durable together: all that were written are synced, and all are given back, whatever fails."""

import errno

import pytest
from support.recording_files import Disk, RecordingFiles

from headwater.durable_files.sync_group import SyncGroup


def made() -> RecordingFiles:
    return RecordingFiles(Disk(directories={"", "d"}))


def test_a_commit_syncs_every_file_and_directory_once_and_closes_the_files() -> None:
    files = made()
    with SyncGroup(files) as group:
        for name in ("a", "b", "c"):
            group.write(f"d/{name}", name.encode())
        group.commit("d")
    synced = sorted(str(call[1]) for call in files.calls if call[0] in ("sync", "sync_directory"))
    assert synced == sorted([*(str(files.names[f"d/{name}"]) for name in "abc"), "d"])
    assert files.open_files == 0


def test_a_sync_that_fails_is_told_after_all_have_been_tried() -> None:
    files = made()
    with pytest.raises(OSError, match="Input/output") as raised, SyncGroup(files) as group:
        group.write("d/a", b"a")
        group.write("d/b", b"b")
        files.faults = {files.attempts + 1: errno.EIO}
        group.commit("d")
    assert raised.value.errno == errno.EIO
    assert sum(call[0] in ("sync", "limbo", "sync_directory") for call in files.calls) >= 2
    assert files.open_files == 0
