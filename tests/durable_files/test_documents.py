"""Small documents: either the old or the new one is found, whatever happened to one copy or at one call."""

import errno
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import VARIANTS, RecordingFiles, Replay

from headwater.durable_files import documents

PATH = "store/config"


def fresh() -> RecordingFiles:
    files = RecordingFiles()
    files.mkdir("store")
    files.sync_directory("")
    return files


@given(st.binary(max_size=2000), st.binary(max_size=2000))
def test_the_latest_document_is_found(first: bytes, second: bytes) -> None:
    files = fresh()
    assert documents.load(files, PATH) is None
    for payload in (first, second, first):
        documents.save(files, PATH, payload)
        damage: list[str] = []
        assert documents.load(files, PATH, damage) == payload
        assert damage == []


def test_no_document_is_no_damage() -> None:
    damage: list[str] = []
    assert documents.load(fresh(), PATH, damage) is None
    assert damage == []


@pytest.mark.parametrize("copy", [".a", ".b"])
def test_one_flipped_bit_or_one_cut_or_lost_copy_costs_nothing_and_is_reported(copy: str) -> None:
    files = fresh()
    documents.save(files, PATH, b"old")
    documents.save(files, PATH, b"the payload")
    original = files.content(PATH + copy)
    for at in range(len(original)):
        for damaged in (original[:at], original[:at] + bytes([original[at] ^ 4]) + original[at + 1 :]):
            files.replace_content(PATH + copy, damaged)
            damage: list[str] = []
            assert documents.load(files, PATH, damage) == b"the payload"
            assert len(damage) == 1
            assert PATH + copy in damage[0]
    files.unlink(PATH + copy)
    damage = []
    assert documents.load(files, PATH, damage) == b"the payload"
    assert damage == [f"{PATH}{copy} is missing"]
    documents.save(files, PATH, b"healed")
    damage = []
    assert documents.load(files, PATH, damage) == b"healed"
    assert damage == []


def test_two_damaged_copies_are_reported_and_nothing_is_made_up() -> None:
    files = fresh()
    documents.save(files, PATH, b"payload")
    for copy in documents.COPIES:
        files.replace_content(PATH + copy, b"garbage")
    damage: list[str] = []
    assert documents.load(files, PATH, damage) is None
    assert len(damage) == 2


def test_a_power_loss_at_every_call_leaves_the_old_or_the_new_document() -> None:
    files = fresh()
    documents.save(files, PATH, b"old")
    before = len(files.calls)
    documents.save(files, PATH, b"new " * 300)
    replay = Replay(files)
    random = Random(1)
    for calls in range(before, len(files.calls) + 1):
        replay.advance(calls)
        for variant in (*VARIANTS, *["torn"] * 20):
            found = documents.load(replay.crash(variant, random), PATH)  # type: ignore[arg-type]
            assert found in ([b"new " * 300] if calls == len(files.calls) else [b"old", b"new " * 300])


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_an_error_at_every_call_leaves_the_old_or_the_new_document(number: int) -> None:
    files = fresh()
    documents.save(files, PATH, b"old")
    attempts = files.attempts
    documents.save(files, PATH, b"new")
    for attempt in range(files.attempts - attempts):
        faulty = fresh()
        documents.save(faulty, PATH, b"old")
        faulty.faults[faulty.attempts + attempt] = number
        with pytest.raises(OSError):
            documents.save(faulty, PATH, b"new")
        assert documents.load(faulty, PATH) in (b"old", b"new")
        assert faulty.open_files == 0
        documents.save(faulty, PATH, b"again")
        assert documents.load(faulty, PATH) == b"again"


def test_removing_takes_both_copies_and_leftovers() -> None:
    files = fresh()
    documents.save(files, PATH, b"x")
    files.create(f"{PATH}.a.tmp").close()
    documents.remove(files, PATH)
    documents.remove(files, PATH)
    assert not files.names


def test_the_directory_of_a_path() -> None:
    assert [documents.directory_of(path) for path in ("a/b/c", "/a", "a")] == ["a/b", "/", "."]


def test_the_only_file_of_a_directory_can_be_put_aside_and_the_next_one_gets_another_name() -> None:
    files = RecordingFiles()
    files.mkdir("d")
    for count in range(2):
        files.create("d/c.a").close()
        assert documents.put_aside(files, "d/c.a") == f"c.a.stranger-{count}"
    assert sorted(files.listdir("d")) == ["c.a.stranger-0", "c.a.stranger-1"]


def test_writing_over_leaves_the_newer_copy_as_it_was() -> None:
    files = fresh()
    documents.save(files, PATH, b'{"n": 1, "long": "0123456789"}')
    first = files.content(f"{PATH}.a")
    documents.write_over(files, PATH, b'{"n": 2}', documents.NO_IDENTITY)
    assert files.content(f"{PATH}.a") == first
    assert json.loads(documents.load(files, PATH) or b"") == {"n": 2}
    second = files.content(f"{PATH}.b")
    documents.write_over(files, PATH, b'{"n": 3}', documents.NO_IDENTITY)
    assert files.content(f"{PATH}.b") == second
    complaints: list[str] = []
    assert json.loads(documents.load(files, PATH, complaints) or b"") == {"n": 3}
    assert complaints == []
    files.replace_content(f"{PATH}.a", b"torn")
    assert json.loads(documents.load(files, PATH) or b"") == {"n": 2}


def test_writing_over_a_document_of_one_good_copy_saves_both() -> None:
    files = fresh()
    documents.save(files, PATH, b"1")
    files.replace_content(f"{PATH}.b", b"damaged")
    documents.write_over(files, PATH, b"2", documents.NO_IDENTITY)
    assert files.content(f"{PATH}.a") == files.content(f"{PATH}.b")
    assert documents.load(files, PATH) == b"2"
