"""The directory of a server: one at a time, made where it is not there, and an error that says which it is."""

from pathlib import Path

import pytest
from support.recording_files import RecordingFiles

from headwater.durable_files.files import OsFiles
from headwater.durable_files.store_directory import remove_tree, take_directory
from headwater.errors import EnvironmentProblem


def test_one_server_has_the_directory_until_it_lets_go() -> None:
    files = RecordingFiles()
    lock = take_directory(files, "store", ["logs", "offsets"], "cannot start")
    assert files.listdir("store") == ["lock", "logs", "offsets"]
    with pytest.raises(EnvironmentProblem, match="another server uses the store directory store"):
        take_directory(files, "store", [], "cannot start")
    lock.close()
    take_directory(files, "store", [], "cannot start").close()


def test_it_is_made_with_its_folders_and_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    take_directory(OsFiles(), str(tmp_path / "made"), ["logs", "offsets"], "cannot start").close()
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["lock", "logs", "offsets"]
    (tmp_path / "store").write_bytes(b"")
    with pytest.raises(EnvironmentProblem, match="cannot start: storage directory is not a directory: "):
        take_directory(OsFiles(), str(tmp_path / "store"), ["logs"], "cannot start")


def test_a_tree_is_removed_with_all_that_is_in_it_and_one_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"x")
    remove_tree(OsFiles(), str(tmp_path / "a"))
    remove_tree(OsFiles(), str(tmp_path / "a"))
    assert list(tmp_path.iterdir()) == []
