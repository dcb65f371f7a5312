"""Files that are kept for years, and descriptors only for those that are used."""

import errno
import os
import threading
from pathlib import Path

import pytest

from headwater.durable_files.files import File, OsFiles
from headwater.group_commit import kept_files
from headwater.group_commit.kept_files import KeptFiles


class CountedFiles(OsFiles):
    """`left`: descriptors that the system still gives."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.left = 1 << 30

    def open(self, path: str) -> File:
        if self.left <= 0:
            raise OSError(errno.EMFILE, "Too many open files")
        self.opened.append(Path(path).name)
        return super().open(path)


@pytest.fixture
def files(tmp_path: Path) -> CountedFiles:
    for number in range(6):
        (tmp_path / f"{number}").write_bytes(b"")
    return CountedFiles()


def test_no_more_are_open_than_may_be_and_each_goes_on_where_it_was(files: CountedFiles, tmp_path: Path) -> None:
    kept = KeptFiles(lambda: 2)
    some = [kept.keep(files, str(tmp_path / str(number)), never_synced=True) for number in range(6)]
    for turn in range(3):
        for number, file in enumerate(some):
            file.pwrite([b"%d" % number], turn)
            assert len(kept) <= 2
    for number, file in enumerate(some):
        assert file.pread(10, 0) == b"%d" % number * 3
        file.truncate(2)
        assert file.size() == 2
        file.allocate(3)
        assert file.size() == 3
        assert file.range(0, 1) is None
        file.close()
        file.close()
    assert len(kept) == 0


def test_what_is_used_stays_open_and_what_is_not_goes(files: CountedFiles, tmp_path: Path) -> None:
    kept = KeptFiles(lambda: 3)
    busy = kept.keep(files, str(tmp_path / "0"), never_synced=True)
    others = [kept.keep(files, str(tmp_path / str(number)), never_synced=True) for number in range(1, 6)]
    files.opened.clear()
    for other in others * 4:
        busy.size()
        other.size()
    assert files.opened.count("0") <= 2
    assert len(files.opened) > 4


def test_a_file_with_writes_that_are_not_synced_keeps_its_descriptor(files: CountedFiles, tmp_path: Path) -> None:
    kept = KeptFiles(lambda: 1)
    one, other = (kept.keep(files, str(tmp_path / name)) for name in "01")
    for file in (one, other):
        file.pwrite([b"x"], 0)
    assert len(kept) == 2
    for file in (one, other):
        file.fdatasync()
    kept.keep(files, str(tmp_path / "2"))
    assert len(kept) == 1


def test_without_descriptors_one_file_has_that_of_another(files: CountedFiles, tmp_path: Path) -> None:
    kept = KeptFiles(lambda: 1)
    idle, file = (kept.keep(files, str(tmp_path / name)) for name in "01")
    assert len(kept) == 1
    real_open = files.open

    def open_if_one_was_given_up(path: str) -> File:
        files.left = 1 - len(kept)
        return real_open(path)

    files.open = open_if_one_was_given_up  # type: ignore[method-assign]
    for each in (idle, file, idle):
        each.pwrite([b"x"], 0)
        each.fdatasync()
    file.close()
    idle.close()
    files.open = real_open  # type: ignore[method-assign]
    files.left = 0
    with pytest.raises(OSError, match="Too many"):
        kept.keep(files, str(tmp_path / "0"))


def test_a_closed_file_is_not_opened_again(files: CountedFiles, tmp_path: Path) -> None:
    file = KeptFiles().keep(files, str(tmp_path / "0"))
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.size()
    with pytest.raises(FileNotFoundError):
        KeptFiles().keep(files, str(tmp_path / "none"))


def test_threads_share_the_places(files: CountedFiles, tmp_path: Path) -> None:
    kept = KeptFiles(lambda: 2)
    some = [kept.keep(files, str(tmp_path / str(number)), never_synced=True) for number in range(6)]
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for at in range(200):
                some[number].pwrite([b"%d" % number], at)
        except BaseException as error:  # noqa: BLE001  (for the test's own thread)
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    for number, file in enumerate(some):
        assert file.pread(1000, 0) == b"%d" % number * 200
        file.close()
    assert len(os.listdir(tmp_path)) == 6


def test_the_share_follows_the_limit_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for soft, expected in ((200, 25), (20, kept_files.FEWEST), (1 << 20, kept_files.MOST), (-1, kept_files.MOST)):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, soft=soft: (soft, soft))
        assert kept_files.places() == expected
