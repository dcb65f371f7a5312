"""Which folder of a store directory has the streams of an account, and of a worker. Pure.

STORE/                          the streams of the global account
STORE/accounts/account-NAME/    those of another account; NAME is quoted, so that it stays inside the store
STORE/workers/N/                where streams are on several workers: those of worker N, laid out as a store
"""

from headwater.options.access import GLOBAL_ACCOUNT

ACCOUNT_FOLDERS = "accounts"
WORKERS = "workers"
FOLDER_PREFIX = "account-"


def store_directory(store: str, name: str) -> str:
    """Where the streams of an account are in a store."""
    return store if name == GLOBAL_ACCOUNT else f"{store}/{ACCOUNT_FOLDERS}/{folder_of(name)}"


def part_of(store: str, worker: int) -> str:
    """Where the streams of a worker are in a store."""
    return f"{store}/{WORKERS}/{worker}"


def folder_of(account: str) -> str:
    """The name of an account's folder, different from every other account's."""
    from urllib.parse import quote  # here: a start without accounts does not need it

    return FOLDER_PREFIX + quote(account, safe="")
