"""Folders of a store: each account has its own, and none leaves the store."""

from pathlib import PurePosixPath

from headwater.options.access import GLOBAL_ACCOUNT
from headwater.options.store_folders import folder_of, part_of, store_directory


def test_the_global_account_has_the_store_itself_and_another_a_folder_of_its_own() -> None:
    assert store_directory("/data", GLOBAL_ACCOUNT) == "/data"
    assert store_directory("/data", "SHOPS") == "/data/accounts/account-SHOPS"
    assert store_directory(part_of("/data", 2), "SHOPS") == "/data/workers/2/accounts/account-SHOPS"


def test_names_of_accounts_that_look_like_paths_stay_inside_and_apart() -> None:
    names = ("..", "../..", "a/b", "a%2Fb", "a", "A", "")
    folders = {folder_of(name) for name in names}
    assert len(folders) == len(names)
    assert all(PurePosixPath(folder).name == folder for folder in folders)
