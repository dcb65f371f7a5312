"""A directory of account JWTs: what is kept, what is not taken for one, and what a full one says."""

import os
from pathlib import Path

import pytest

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.model.nkey import NkeyKind, encode_nkey
from headwater.server.resolver.directory import AccountDirectory

FIRST, SECOND = (encode_nkey(NkeyKind.ACCOUNT, bytes([number]) * 32) for number in (1, 2))


def test_what_is_saved_is_there_again(tmp_path: Path) -> None:
    directory = AccountDirectory(tmp_path / "new" / "accounts")
    assert directory.save(FIRST, "one")
    assert directory.save(SECOND, "two")
    assert not directory.save(SECOND, "two")
    again = AccountDirectory(tmp_path / "new" / "accounts")
    assert again.tokens == {FIRST: "one", SECOND: "two"}
    assert again.digest() == directory.digest() != bytes(32)
    assert again.get(encode_nkey(NkeyKind.ACCOUNT, bytes(32))) == ""


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "", FIRST[:-1], FIRST + "/x"])
def test_what_is_no_key_of_an_account_names_no_file(tmp_path: Path, name: str) -> None:
    directory = AccountDirectory(tmp_path / "accounts")
    with pytest.raises(EnvironmentProblem, match="no public key"):
        directory.save(name, "token")
    assert [path.name for path in tmp_path.rglob("*")] == ["accounts"]


def test_what_other_servers_have_too_is_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = AccountDirectory(tmp_path)
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    directory.save(FIRST, "one", synced=False)
    assert synced == []
    directory.save(SECOND, "two")
    assert len(synced) == 2
    assert AccountDirectory(tmp_path).tokens == {FIRST: "one", SECOND: "two"}


def test_other_files_are_no_accounts(tmp_path: Path) -> None:
    for name, text in (("notes.txt", "x"), ("junk.jwt", "x"), (f"{FIRST}.jwt.deleted", "x"), (f"{SECOND}.jwt", "")):
        (tmp_path / name).write_text(text)
    assert AccountDirectory(tmp_path).tokens == {}


def test_a_jwt_that_cannot_be_read_is_reported_and_the_others_are_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    AccountDirectory(tmp_path).save(SECOND, "two")
    (tmp_path / f"{FIRST}.jwt").write_bytes(b"\xff\x00")
    third = encode_nkey(NkeyKind.ACCOUNT, bytes(32))
    (tmp_path / f"{third}.jwt").mkdir()
    assert AccountDirectory(tmp_path).tokens == {SECOND: "two"}
    assert sorted(record.getMessage() for record in caplog.records) == sorted(
        [
            f"account_jwt_unreadable account={FIRST} reason=it is no text",
            f"account_jwt_unreadable account={third} reason=Is a directory",
        ]
    )


@pytest.mark.parametrize(("hard", "left"), [(False, [f"{FIRST}.jwt.deleted"]), (True, [])])
def test_a_deleted_account_leaves_a_file_unless_it_is_hard(tmp_path: Path, hard: bool, left: list[str]) -> None:
    directory = AccountDirectory(tmp_path, hard_delete=hard)
    directory.save(FIRST, "one")
    assert directory.delete(FIRST)
    assert not directory.delete(FIRST)
    assert [path.name for path in tmp_path.iterdir()] == left
    assert directory.digest() == bytes(32)


def test_a_full_directory_takes_changes_but_no_more_accounts(tmp_path: Path) -> None:
    directory = AccountDirectory(tmp_path, limit=1)
    directory.save(FIRST, "one")
    assert directory.save(FIRST, "changed")
    with pytest.raises(EnvironmentProblem, match="limit of accounts"):
        directory.save(SECOND, "two")
    with pytest.raises(EnvironmentProblem, match="no public key"):
        directory.save("../../etc/passwd", "two") if directory.delete(FIRST) else None


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be used"):
        AccountDirectory(tmp_path / "file")


def test_workers_that_share_it_save_and_delete_the_same_account_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second to save found its file renamed by the first, the second to delete found none, and kept the account."""
    first, second = AccountDirectory(tmp_path), AccountDirectory(tmp_path)
    sync = os.fsync

    def interrupted(descriptor: int) -> None:
        monkeypatch.setattr("os.fsync", sync)
        second.save(FIRST, "one")
        sync(descriptor)

    monkeypatch.setattr("os.fsync", interrupted)
    assert first.save(FIRST, "one")
    assert first.tokens == second.tokens == AccountDirectory(tmp_path).tokens == {FIRST: "one"}
    assert first.delete(FIRST)
    assert second.delete(FIRST)
    assert first.tokens == second.tokens == {}
    assert [path.name for path in tmp_path.iterdir()] == [f"{FIRST}.jwt.deleted"]
