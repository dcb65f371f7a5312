"""Streams move between the folders of workers, whole and once."""

from pathlib import Path

import pytest

from headwater.durable_files.files import OsFiles
from headwater.errors import EnvironmentProblem
from headwater.jetstream_state.begun_streams import BEGUN
from headwater.jetstream_state.store import file_stem
from headwater.jetstream_workers.folders import Spread, check_store, read_spread, stream_folders
from headwater.jetstream_workers.moving import move
from headwater.jetstream_workers.placement import owner_of

FILES = OsFiles()
NAMES = [f"S{number}" for number in range(8)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for account in ("", "accounts/account-A/"):
        for name in NAMES:
            folder = tmp_path / f"{account}streams" / file_stem(name)
            folder.mkdir(parents=True)
            (folder / "stream.a").write_text(f"{account}{name}")
    return tmp_path


def contents(store: Path) -> list[str]:
    return sorted(path.read_text() for path in store.rglob("stream.a"))


def test_every_stream_gets_to_its_owner_and_back(store: Path) -> None:
    before = contents(store)
    assert move(FILES, str(store), 3) == 16
    for account in ("", "account-A"):
        for name in NAMES:
            part = store / "workers" / str(owner_of(account, name, 3))
            assert (part / (f"accounts/{account}" if account else "") / "streams" / file_stem(name)).is_dir()
    check_store(FILES, str(store), 3)
    assert move(FILES, str(store), 3) == 0
    assert 0 < move(FILES, str(store), 2) <= 16
    check_store(FILES, str(store), 2)
    assert move(FILES, str(store), 1) == 16
    check_store(FILES, str(store), 1)
    assert contents(store) == before
    assert len(stream_folders(FILES, str(store))) == 16


def test_a_stream_whose_last_rename_was_lost_moves_as_well(tmp_path: Path) -> None:
    """Its creation was answered; a broker that did not look for it under this name would hide it."""
    (tmp_path / "streams" / (file_stem("S") + BEGUN)).mkdir(parents=True)
    with pytest.raises(EnvironmentProblem, match="holds streams of one broker"):
        check_store(FILES, str(tmp_path), 3)
    assert move(FILES, str(tmp_path), 3) == 1
    part = tmp_path / "workers" / str(owner_of("", "S", 3))
    assert (part / "streams" / (file_stem("S") + BEGUN)).is_dir()
    check_store(FILES, str(tmp_path), 3)


class Failing(OsFiles):
    """Refuses after some renames of streams, as when the process is killed."""

    def __init__(self, renames: int) -> None:
        super().__init__()
        self.left = renames

    def rename(self, old: str, new: str) -> None:
        if "streams" in old:
            if not self.left:
                raise OSError(5, "cut short")
            self.left -= 1
        super().rename(old, new)


def test_a_move_that_was_cut_short_is_refused_until_it_is_ended(store: Path) -> None:
    before = contents(store)
    with pytest.raises(EnvironmentProblem, match="could not be moved"):
        move(Failing(5), str(store), 2)
    assert read_spread(FILES, str(store)) == Spread(2, moving=True)
    for workers in (1, 2):
        with pytest.raises(EnvironmentProblem, match="being moved"):
            check_store(FILES, str(store), workers)
    assert contents(store) == before
    assert move(FILES, str(store), 2) == 11
    check_store(FILES, str(store), 2)
    assert contents(store) == before


@pytest.mark.parametrize("folder", ["", "accounts/account-A"])
def test_nothing_moves_while_a_broker_uses_the_store(store: Path, folder: str) -> None:
    held = FILES.lock(str(store / folder / "lock"))
    with pytest.raises(EnvironmentProblem, match="another server uses"):
        move(FILES, str(store), 2)
    held.close()
    assert read_spread(FILES, str(store)) is None
    assert move(FILES, str(store), 2) == 16


def test_a_stream_in_two_places_stops_the_move_before_it_begins(store: Path) -> None:
    owner = owner_of("", "S1", 2)
    (store / "workers" / str(owner) / "streams" / file_stem("S1")).mkdir(parents=True)
    with pytest.raises(EnvironmentProblem, match="two folders hold one stream"):
        move(FILES, str(store), 2)
    assert len(stream_folders(FILES, str(store))) == 16


def test_what_is_no_store_and_no_number_of_workers_is_refused(store: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="there is no store directory"):
        move(FILES, str(store / "none"), 2)
    for workers in (0, 65):
        with pytest.raises(EnvironmentProblem, match="there cannot be"):
            move(FILES, str(store), workers)
