"""Which worker a stream lives on: decided by its account, its name and the number of workers, and by nothing else.

So every worker knows the owner of any stream without asking, also of one that does not exist. The names are those of the
folders on disk, so that a stream can be moved although its document cannot be read.
"""

import hashlib
from functools import lru_cache

from headwater.jetstream_state.store import file_stem

KNOWN = 8192  # streams whose owner is remembered; working it out takes 4 us


def owner_of_folder(account: str, stem: str, count: int) -> int:
    """The worker, from 1, that has the folder `stem` of a stream. `account`: its folder; empty for the global account."""
    digest = hashlib.sha256(f"{account}/{stem}".encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % count + 1


@lru_cache(KNOWN)
def owner_of(account: str, stream: str, count: int) -> int:
    """The worker that has the stream of this name."""
    return owner_of_folder(account, file_stem(stream), count)


_LONG = {
    (b"STREAM", b"MSG"), (b"STREAM", b"LEADER"), (b"STREAM", b"PEER"),
    (b"CONSUMER", b"DURABLE"), (b"CONSUMER", b"MSG"), (b"CONSUMER", b"LEADER"), (b"CONSUMER", b"PEER"),
}  # fmt: skip
"""Verbs of three tokens; all others have two."""


def stream_in(subject: bytes) -> bytes:
    """The stream that a request on `$JS.API.…` names; empty for one that names none."""
    tokens = subject.split(b".", 6)
    at = 5 if tuple(tokens[2:4]) in _LONG else 4
    return tokens[at] if len(tokens) > at else b""
