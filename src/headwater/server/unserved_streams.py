"""Streams in the store that no account of this start serves: their account left the configuration, or lost JetStream.

They stay on disk, and take room, until their account has JetStream again or `$JS.API.ACCOUNT.PURGE.<account>` deletes
them. Not for the operator mode: there an account may come later.
"""

from collections import Counter
from collections.abc import Container, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from headwater.durable_files.files import OsFiles
from headwater.jetstream_workers.folders import account_path, stream_folders
from headwater.options.access import GLOBAL_ACCOUNT
from headwater.options.store_folders import FOLDER_PREFIX


class Unserved(NamedTuple):
    """The `streams` (a number) of an account in `folder`."""

    account: str
    streams: int
    folder: str


def unserved_streams(store: str, served: Container[str]) -> Iterator[Unserved]:
    """What is in the store of accounts that are not `served`, in the order of their folders. Raises OSError."""
    counts = Counter(account for account, _ in stream_folders(OsFiles(), store))
    for folder, streams in sorted(counts.items()):
        account = unquote(folder.removeprefix(FOLDER_PREFIX)) or GLOBAL_ACCOUNT
        if account not in served:
            yield Unserved(account, streams, account_path(store, folder))
