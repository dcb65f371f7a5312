"""The directory of a server: what is kept, what is swept away, and what is never touched."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import EnvironmentProblem
from headwater.iggy.catalog import Catalog, StreamEntry, TopicEntry
from headwater.iggy.store import Offsets, Store
from headwater.streams.files import OsFiles
from headwater.streams.options import LogOptions


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(OsFiles(), str(tmp_path))
    yield made
    made.close()


def catalog_with(uid: int, *partitions: int) -> Catalog:
    topic = TopicEntry(0, uid, "t", 1, list(partitions))
    return Catalog([StreamEntry(0, "s", 1, [topic])], next_uid=100)


def test_the_catalog_is_read_as_it_was_written(store: Store) -> None:
    assert store.load() is None
    written = catalog_with(1, 2, 3)
    store.save(written.encode())
    assert store.load() == written


def test_one_server_has_the_directory(store: Store, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="another server"):
        Store(OsFiles(), str(tmp_path))
    store.close()
    Store(OsFiles(), str(tmp_path)).close()


def test_one_damaged_copy_is_repaired_by_the_other_and_two_are_a_refusal(store: Store, tmp_path: Path) -> None:
    store.save(catalog_with(1).encode())
    store.save(catalog_with(2).encode())
    (tmp_path / "catalog.a").write_bytes(b"garbage")
    assert store.load() == catalog_with(2)
    for copy in tmp_path.glob("catalog.*"):
        copy.write_bytes(b"garbage")
    with pytest.raises(EnvironmentProblem):
        store.load()


def test_a_catalog_that_is_lost_is_no_empty_server(store: Store, tmp_path: Path) -> None:
    store.open_log(7, LogOptions(), 1).close()
    with pytest.raises(EnvironmentProblem, match="is lost"):
        store.load()
    assert (tmp_path / "logs" / "7").is_dir()


def test_what_nothing_owns_is_swept_away(store: Store, tmp_path: Path) -> None:
    for uid in (2, 3, 9):
        store.open_log(uid, LogOptions(), 1).close()
    for uid in (1, 8):
        store.save_offsets(uid, b"{}")
    (tmp_path / "logs" / "somebody's").mkdir()
    store.sweep(catalog_with(1, 2, 3))
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["2", "3", "somebody's"]
    assert {path.stem for path in (tmp_path / "offsets").iterdir()} == {"1"}
    store.remove_log(2)
    store.remove_log(2)
    assert not (tmp_path / "logs" / "2").exists()


def test_offsets_come_back_and_damaged_ones_are_none(store: Store, tmp_path: Path) -> None:
    assert store.load_offsets(5) == Offsets()
    store.save_offsets(5, b'{"stored":{"0":{"c:1":7}}}')
    assert store.load_offsets(5).stored == {0: {"c:1": 7}}
    for copy in (tmp_path / "offsets").iterdir():
        copy.write_bytes(b"garbage")
    assert store.load_offsets(5) == Offsets()
    store.remove_offsets(5)
    assert list((tmp_path / "offsets").iterdir()) == []


def test_offsets_of_what_is_gone_are_forgotten() -> None:
    offsets = Offsets({0: {"c:1": 1, "g:1": 2}, 1: {"g:1": 3}, 2: {"c:1": 4}})
    offsets.drop_consumer("g:1")
    offsets.drop_partitions(2)
    assert offsets.stored == {0: {"c:1": 1}, 1: {}}
