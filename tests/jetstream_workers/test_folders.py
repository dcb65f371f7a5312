"""The folders of a store, and who may serve it."""

import os
from pathlib import Path

import pytest

from headwater.durable_files.files import OsFiles
from headwater.errors import EnvironmentProblem
from headwater.jetstream_state.store import file_stem
from headwater.jetstream_workers.folders import (
    Spread,
    check_owner,
    check_store,
    prepare_store,
    read_spread,
    stream_folders,
    write_spread,
)
from headwater.jetstream_workers.placement import owner_of
from headwater.options.store_folders import part_of

FILES = OsFiles()


def lay(store: Path, name: str, part: str = "", account: str = "") -> Path:
    """The folder of a stream."""
    place = store / part / (f"accounts/{account}" if account else "") / "streams" / file_stem(name)
    place.mkdir(parents=True)
    return place


def test_a_new_store_is_for_as_many_workers_as_it_was_begun_with(tmp_path: Path) -> None:
    store = str(tmp_path / "new")
    prepare_store(FILES, store, 3)
    assert read_spread(FILES, store) == Spread(3)
    prepare_store(FILES, store, 3)
    for other in (1, 2, 4):
        with pytest.raises(EnvironmentProblem, match="holds the streams of 3 workers") as refused:
            check_store(FILES, store, other)
        assert f"store spread {store} --workers {other}" in str(refused.value)


def test_the_store_of_one_broker_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    for account in ("", "account-A"):
        store = tmp_path / f"s{account}"
        lay(store, "orders", account=account)
        check_store(FILES, str(store), 1)
        with pytest.raises(EnvironmentProblem, match="holds streams of one broker, which 2 workers cannot serve"):
            prepare_store(FILES, str(store), 2)
        assert not (store / "workers").exists()


def test_streams_of_a_worker_are_seen_although_the_document_is_gone_or_says_less(tmp_path: Path) -> None:
    lay(tmp_path, "orders", "workers/3")
    for workers in (1, 2):
        with pytest.raises(EnvironmentProblem, match="holds streams of a worker 3"):
            check_store(FILES, str(tmp_path), workers)
    check_store(FILES, str(tmp_path), 3)


def test_a_move_that_was_cut_short_or_a_document_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    write_spread(FILES, str(tmp_path), Spread(2, moving=True))
    with pytest.raises(EnvironmentProblem, match="were being moved for 2 workers"):
        check_store(FILES, str(tmp_path), 2)
    for copy in "ab":
        path = tmp_path / "workers" / f"spread.{copy}"
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(EnvironmentProblem, match="cannot be read for how many workers"):
        check_store(FILES, str(tmp_path), 2)


def test_one_damaged_copy_of_the_document_is_enough(tmp_path: Path) -> None:
    prepare_store(FILES, str(tmp_path), 2)
    os.truncate(tmp_path / "workers" / "spread.a", 5)
    assert read_spread(FILES, str(tmp_path)) == Spread(2)


def test_only_folders_of_streams_count(tmp_path: Path) -> None:
    kept = lay(tmp_path, "orders")
    for stray in ("notes", f"{kept.name}.new", f"{kept.name}.deleted", "X.bak"):
        (kept.parent / stray).mkdir()
    lay(tmp_path, "orders", account="account-A")
    assert sorted(stream_folders(FILES, str(tmp_path))) == [("", kept.name), ("account-A", kept.name)]


def test_a_stream_in_the_folder_of_another_worker_is_refused() -> None:
    owner = owner_of("", "orders", 2)
    check_owner("", "orders", owner, 2)
    with pytest.raises(EnvironmentProblem, match=f"belongs to worker {owner}"):
        check_owner("", "orders", 3 - owner, 2)
    assert part_of("/s", 2) == "/s/workers/2"
