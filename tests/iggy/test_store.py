"""The directory of a server: what is kept, what is swept away, and what is never touched."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.durable_files import documents
from headwater.durable_files.files import OsFiles
from headwater.errors import EnvironmentProblem
from headwater.iggy.catalog import Catalog, StreamEntry, TopicEntry
from headwater.iggy.store import Offsets, Store
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


def test_the_catalog_of_another_server_is_refused_and_no_log_is_swept_away(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for place, catalog in ((mine, catalog_with(1, 7)), (theirs, catalog_with(1, 8))):
        store = Store(OsFiles(), str(place))
        store.save(catalog.encode())
        store.open_log(7, LogOptions(), 1).close()
        store.close()
    kept = {path: path.read_bytes() for path in mine.glob("catalog.*")}
    for path in theirs.glob("catalog.*"):
        (mine / path.name).write_bytes(path.read_bytes())
    store = Store(OsFiles(), str(mine))
    with pytest.raises(EnvironmentProblem, match="says that it is catalog of"):
        store.load()
    assert (mine / "logs" / "7").is_dir()
    for path, content in kept.items():
        path.write_bytes(content)
    assert store.load() == catalog_with(1, 7)
    store.close()


def test_one_copy_of_another_server_s_catalog_is_put_aside(store: Store, tmp_path: Path) -> None:
    store.save(catalog_with(1).encode())
    other = Store(OsFiles(), str(tmp_path / "other"))
    for _ in range(3):  # newer than ours
        other.save(catalog_with(2).encode())
    other.close()
    (tmp_path / "catalog.a").write_bytes((tmp_path / "other" / "catalog.a").read_bytes())
    assert store.load() == catalog_with(1)
    assert [finding.path for finding in store.findings] == [f"{tmp_path}/catalog"]
    assert (tmp_path / "catalog.a.stranger-0").exists()


def test_a_directory_of_an_earlier_release_gets_an_identity_at_its_first_start(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    documents.save(OsFiles(), f"{tmp_path}/catalog", catalog_with(1).encode())
    for _ in range(2):
        store = Store(OsFiles(), str(tmp_path))
        assert store.load() == catalog_with(1)
        assert store.findings == []
        store.close()
    found = [documents.load_copy(OsFiles(), f"{tmp_path}/{name}") for name in ("catalog", "store")]
    identities = {document.identity for document in found if document is not None}
    assert len(identities) == 1
    assert identities != {documents.NO_IDENTITY}


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


def test_offsets_beyond_the_end_of_a_log_are_drawn_back() -> None:
    offsets = Offsets({0: {"c:1": 7, "g:2": 8, "c:3": 99}, 1: {"c:1": 5}, 2: {"c:1": 0}, 3: {"c:1": 6}})
    assert offsets.draw_back([8, 0, 0]) == [
        "g:2 at 8, partition 0 ends at 8",
        "c:3 at 99, partition 0 ends at 8",
        "c:1 at 5, partition 1 ends at 0",
    ]
    assert offsets.stored == {0: {"c:1": 7, "g:2": 7, "c:3": 7}, 1: {}, 2: {"c:1": 0}, 3: {"c:1": 6}}
