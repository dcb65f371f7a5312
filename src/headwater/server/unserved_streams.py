"""Streams in the store that no account of this start serves: their account left the configuration, or lost JetStream.

They stay on disk, and take room, until their account has JetStream again or `$JS.API.ACCOUNT.PURGE.<account>` deletes
them. Not for the operator mode: there an account may come later.
"""

from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from headwater.exchange.access_options import GLOBAL_ACCOUNT
from headwater.exchange.account import ACCOUNT_FOLDERS, FOLDER_PREFIX, store_directory


class Unserved(NamedTuple):
    """The `streams` (a number) of an account in `folder`."""

    account: str
    streams: int
    folder: str


def unserved_streams(store: str, served: Container[str]) -> Iterator[Unserved]:
    """What is in the store of accounts that are not `served`, in the order of their folders. Raises OSError."""
    named = sorted(Path(store, ACCOUNT_FOLDERS).glob(FOLDER_PREFIX + "*"))
    for account in (GLOBAL_ACCOUNT, *(unquote(folder.name.removeprefix(FOLDER_PREFIX)) for folder in named)):
        folder = store_directory(store, account)
        if account not in served and (streams := sum(1 for _ in Path(folder, "streams").glob("*/"))):
            yield Unserved(account, streams, folder)
