"""The real files do what the protocol says, and the recording ones do the same, so that tests on them mean something."""

import errno
import os
import socket
import stat
import sys
from pathlib import Path

import pytest
from support.recording_files import RecordingFiles

from headwater.durable_files import files as module
from headwater.durable_files.files import Files, OsFile, OsFiles, storage_error
from headwater.errors import DiskFull, StorageError
from headwater.jetstream_state.memory_files import MemoryFiles


@pytest.fixture(params=["os", "recording"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, str]:
    if request.param == "os":
        return OsFiles(), str(tmp_path / "deep" / "down")
    return RecordingFiles(), "deep/down"


def test_what_is_synced_together_is_there_and_stays_open(place: tuple[Files, str]) -> None:
    files, directory = place
    files.mkdir(directory)
    made = [files.create(f"{directory}/{number}") for number in range(5)]
    for file in made:
        file.pwrite([b"x"], 0)
    files.sync_together(made, [directory])
    assert [file.pread(9, 0) for file in made] == [b"x"] * 5


def test_a_sync_together_tells_what_failed(tmp_path: Path) -> None:
    files = OsFiles()
    with pytest.raises(FileNotFoundError):
        files.sync_together([files.create(str(tmp_path / "a"))], [str(tmp_path), str(tmp_path / "missing")])


def test_what_is_written_is_read_back(place: tuple[Files, str]) -> None:
    files, directory = place
    files.mkdir(directory)
    files.mkdir(directory)
    file = files.create(f"{directory}/a")
    file.pwrite([b"one", b"", b"two"], 0)
    file.pwrite([b"TWO"], 3)
    file.pwrite([b"far"], 10)
    file.fdatasync()
    assert file.size() == 13
    assert file.pread(100, 0) == b"oneTWO\0\0\0\0far"
    assert file.pread(3, 3) == b"TWO"
    assert file.pread(3, 50) == b""
    file.truncate(4)
    assert file.pread(100, 0) == b"oneT"
    file.truncate(6)
    assert file.pread(100, 0) == b"oneT\0\0"
    file.close()
    file.close()
    again = files.create(f"{directory}/a")
    assert again.size() == 0
    again.close()


def test_names_change_as_told(place: tuple[Files, str]) -> None:
    files, directory = place
    with pytest.raises(FileNotFoundError):
        files.listdir(directory)
    files.mkdir(directory)
    for name in ("a", "b"):
        file = files.create(f"{directory}/{name}")
        file.pwrite([name.encode()], 0)
        file.close()
    files.rename(f"{directory}/a", f"{directory}/b")
    files.sync_directory(directory)
    assert files.listdir(directory) == ["b"]
    file = files.open(f"{directory}/b")
    assert file.pread(9, 0) == b"a"
    file.close()
    with pytest.raises(FileNotFoundError):
        files.open(f"{directory}/a")
    with pytest.raises(FileNotFoundError):
        files.unlink(f"{directory}/a")
    with pytest.raises(OSError):
        files.rmdir(directory)
    files.unlink(f"{directory}/b")
    files.rmdir(directory)
    with pytest.raises(FileNotFoundError):
        files.listdir(directory)


def test_a_lock_is_held_by_one(place: tuple[Files, str]) -> None:
    files, directory = place
    files.mkdir(directory)
    held = files.lock(f"{directory}/lock")
    with pytest.raises(BlockingIOError):
        files.lock(f"{directory}/lock")
    held.close()
    files.lock(f"{directory}/lock").close()


def test_a_start_of_the_system_has_one_id_as_long_as_it_lasts() -> None:
    boot = OsFiles().boot()
    assert boot == OsFiles().boot() and len(boot) in (0, 16)
    assert (len(boot) == 16) == os.path.exists(module.BOOT_ID)


def test_entropy_has_the_size_asked_for(place: tuple[Files, str]) -> None:
    files, _ = place
    assert len(files.entropy(8)) == 8
    assert files.entropy(8) != files.entropy(8)


def test_files_and_directories_are_the_owners_alone(tmp_path: Path) -> None:
    files = OsFiles()
    files.mkdir(str(tmp_path / "a" / "b"))
    files.create(str(tmp_path / "a" / "b" / "file")).close()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b" / "file").stat().st_mode) == 0o600


def test_more_pieces_than_one_system_call_takes_are_written(tmp_path: Path) -> None:
    file = OsFiles().create(str(tmp_path / "file"))
    pieces = [b"%d," % number for number in range(module.MAX_PIECES * 2 + 5)]
    file.pwrite(pieces, 3)
    assert file.pread(1 << 20, 3) == b"".join(pieces)
    file.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_write_for_which_there_is_no_room_says_so_whatever_its_pieces() -> None:
    descriptor = os.open("/dev/full", os.O_RDWR)
    try:
        for pieces in ([b"alone"], [b"one", b"two"]):
            with pytest.raises(OSError) as caught:
                OsFile(descriptor).pwrite(pieces, 0)
            assert caught.value.errno == errno.ENOSPC
    finally:
        os.close(descriptor)


def test_short_reads_and_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pread, pwritev, pwrite = os.pread, os.pwritev, os.pwrite
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 3), at))
    monkeypatch.setattr(os, "pwritev", lambda fd, pieces, at: pwritev(fd, [bytes(pieces[0])[:2]], at))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:2], at))
    file = OsFile(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))
    file.pwrite([b"hello ", b"world"], 0)
    assert file.pread(100, 0) == b"hello world"
    assert file.pread(5, 0) == b"hello"
    file.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_is_retriable(number: int) -> None:
    error = storage_error("write", OSError(number, "No space left on device", "path"))
    assert isinstance(error, DiskFull)
    assert error.retriable
    assert str(error) == "no room to write: No space left on device (free space, then try again)"


def test_any_other_error_is_a_storage_error_with_its_reason() -> None:
    error = storage_error("read x", OSError(errno.EIO, "Input/output error"))
    assert type(error) is StorageError
    assert str(error) == "cannot read x: Input/output error"
    assert str(storage_error("read x", OSError())) == "cannot read x: OSError"


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_a_range_is_sent_and_read_after_its_file_was_closed_replaced_and_removed(tmp_path: Path) -> None:
    files = OsFiles()
    file = files.create(str(tmp_path / "file"))
    file.pwrite([b"head", bytes(range(200)), b"tail"], 0)
    found = file.range(4, 200)
    assert found is not None and len(found) == 200
    assert file.range(0, 4) is not None
    file.close()
    files.create(str(tmp_path / "other")).close()
    files.rename(str(tmp_path / "other"), str(tmp_path / "file"))
    files.unlink(str(tmp_path / "file"))
    ours, peers = socket.socketpair()
    with ours, peers:
        assert found.send(ours.fileno(), 50) == 150
        assert peers.recv(1000) == bytes(range(50, 200))
        assert (found.read(), found.read(199)) == (bytes(range(200)), bytes([199]))


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_a_large_range_is_sent_as_far_as_the_socket_takes_it_and_never_all_in_one_call(tmp_path: Path) -> None:
    content = os.urandom(3 * module.SENT_AT_ONCE)
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwrite([content], 0)
    found = file.range(1, len(content) - 1)
    assert found is not None
    with (tmp_path / "target").open("wb") as target:  # takes whatever it is given
        assert found.send(target.fileno(), 0, copied=True) == module.SENT_AT_ONCE
    ours, peers = socket.socketpair()
    with ours, peers:
        ours.setblocking(False)
        got = bytearray()
        while len(got) < len(found):
            got += peers.recv(found.send(ours.fileno(), len(got), copied=True), socket.MSG_WAITALL)
        assert got == content[1:]
        with pytest.raises(BlockingIOError):
            while True:
                found.send(ours.fileno(), 0, copied=True)
    file.close()


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
def test_descriptors_are_closed_with_the_last_range_of_them(tmp_path: Path) -> None:
    file = OsFile(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))
    file.pwrite([b"0123456789"], 0)
    number = file._descriptor
    first, second = file.range(0, 5), file.range(5, 5)
    file.close()
    assert first is not None and second is not None
    del first
    assert second.read() == b"56789"
    del second
    with pytest.raises(OSError):
        os.fstat(number)


@pytest.mark.skipif(sys.platform != "linux", reason="ranges are for Linux")
@pytest.mark.parametrize("copied", [False, True])
def test_a_range_of_a_file_that_was_cut_is_an_error_and_not_less_data(tmp_path: Path, copied: bool) -> None:
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwrite([bytes(100)], 0)
    found = file.range(50, 50)
    assert found is not None
    file.truncate(60)
    ours, peers = socket.socketpair()
    with ours, peers:
        with pytest.raises(OSError, match="shorter"):
            found.read()
        assert found.send(ours.fileno(), 0, copied) == 10
        with pytest.raises(OSError, match="shorter"):
            found.send(ours.fileno(), 10, copied)
    file.close()


def test_what_is_in_memory_has_no_ranges() -> None:
    assert MemoryFiles(os.urandom).create("file").range(0, 0) is None
