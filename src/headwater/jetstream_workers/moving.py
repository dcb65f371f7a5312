"""Moves the streams of a store directory to the folders of N workers, or back to those of one broker.

    lock every folder ─▶ document: moving for N ─▶ rename the folder of each stream, one by one ─▶ document: N

Each stream is one rename within a file system: it is in the old place or in the new one, whole. A move that was cut short
is refused at every start until the same command has ended it; it may also be run for another N. Nothing is read of a
stream, so damaged ones move, too. Blocking.
"""

from contextlib import ExitStack, closing

from headwater.durable_files.files import Files
from headwater.durable_files.store_directory import take_directory
from headwater.errors import EnvironmentProblem
from headwater.jetstream_state.begun_streams import BEGUN
from headwater.jetstream_workers.folders import (
    Spread,
    account_path,
    accounts_in,
    parts_of,
    stream_folders,
    streams_path,
    write_spread,
)
from headwater.jetstream_workers.placement import owner_of_folder
from headwater.options.store_folders import ACCOUNT_FOLDERS, WORKERS, part_of

MOST_WORKERS = 64


def move(files: Files, directory: str, workers: int) -> int:
    """Move every stream; returns how many were moved. Raises EnvironmentProblem when a broker uses the store, when two
    folders hold the same stream, or when the disk refuses; whatever was moved by then stays where it is."""
    if not 1 <= workers <= MOST_WORKERS:
        allowed = f"1 to {MOST_WORKERS}"
        raise EnvironmentProblem(f"there cannot be {workers} workers", value=workers, limit=allowed, hint=allowed)
    try:
        files.listdir(directory)
    except OSError as error:
        raise EnvironmentProblem(f"there is no store directory {directory}", value=directory) from error
    try:
        with ExitStack() as locks:
            return _move(files, directory, workers, locks)
    except OSError as error:
        raise EnvironmentProblem(
            f"the streams in {directory} could not be moved: {error}", value=directory, hint="run it again"
        ) from error


def _move(files: Files, directory: str, workers: int, locks: ExitStack) -> int:
    parts = {0: directory, **{number: part_of(directory, number) for number in parts_of(files, directory)}}
    if workers > 1:
        files.mkdir(f"{directory}/{WORKERS}")
        parts |= {number: part_of(directory, number) for number in range(1, workers + 1)}
    locked: set[str] = set()

    def lock(part: str, account: str) -> None:
        own = account_path(part, account)
        if own not in locked:
            if account:
                files.mkdir(f"{part}/{ACCOUNT_FOLDERS}")
            files.mkdir(own)
            locks.enter_context(closing(take_directory(files, own, ["streams"], "store spread")))
            locked.add(own)

    steps = []
    for number, part in parts.items():
        for account in ("", *accounts_in(files, part)):
            lock(part, account)
        for account, stream in stream_folders(files, part):
            stem = stream.removesuffix(BEGUN)  # a power loss may have undone its last rename: a start repeats it
            target = owner_of_folder(account, stem, workers) if workers > 1 else 0
            lock(parts[target], account)
            if target != number:
                steps.append((account, stream, part, parts[target]))
    _check_free(files, steps)
    write_spread(files, directory, Spread(workers, moving=True))
    touched = set()
    for account, stream, source, target_part in steps:
        old, new = streams_path(source, account), streams_path(target_part, account)
        files.rename(f"{old}/{stream}", f"{new}/{stream}")
        touched |= {old, new}
    for path in sorted(touched):
        files.sync_directory(path)
    write_spread(files, directory, Spread(workers))
    return len(steps)


def _check_free(files: Files, steps: list[tuple[str, str, str, str]]) -> None:
    for account, stream, source, target in steps:
        if stream in files.listdir(streams_path(target, account)):
            both = f"{streams_path(source, account)}/{stream} and {streams_path(target, account)}/{stream}"
            raise EnvironmentProblem(f"two folders hold one stream: {both}", value=stream, hint="keep one of them")
