"""The file system in memory keeps to the protocol of files, as far as a log uses it."""

import pytest

from headwater.jetstream_state.memory_files import MemoryFiles


def test_files_are_written_read_renamed_listed_and_removed() -> None:
    files = MemoryFiles(bytes)
    file = files.create("log/a")
    file.pwrite([b"abc", b"def"], 2)
    assert file.pread(10, 0) == b"\0\0abcdef"
    file.pwrite([b"X"], 3)
    assert files.open("log/a").pread(3, 2) == b"aXc"
    file.truncate(4)
    assert file.size() == 4
    file.truncate(6)
    assert file.pread(9, 3) == b"X\0\0"
    files.rename("log/a", "log/b")
    files.create("log/deeper/c")
    assert files.listdir("log") == ["b"]
    files.unlink("log/b")
    assert files.listdir("log") == []


@pytest.mark.parametrize("verb", ["open", "unlink"])
def test_what_is_not_there_is_said_so(verb: str) -> None:
    with pytest.raises(FileNotFoundError):
        getattr(MemoryFiles(bytes), verb)("log/nothing")


def test_what_is_in_memory_ends_with_the_process_so_its_start_has_always_one_id() -> None:
    files = MemoryFiles(lambda size: b"r" * size)
    assert files.boot() == files.boot() and len(files.boot()) == 16


def test_entropy_is_whose_it_was_told() -> None:
    assert MemoryFiles(lambda size: b"r" * size).entropy(3) == b"rrr"
