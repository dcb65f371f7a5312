"""The folders of a store directory whose streams are on several workers, and what says for how many it was made.

    <store_dir>/workers/spread.a .b          the document: for how many workers, and whether a move is under way
    <store_dir>/workers/<k>/streams/…        as the store directory of a broker: the streams of worker k
    <store_dir>/workers/<k>/accounts/…
    <store_dir>/streams/…  accounts/…        those of a single broker; not both

A start for another number of workers, or for one broker, is refused: `headwater store spread DIR --workers N` moves the
streams. So no stream is hidden because it lies in another place. Blocking.
"""

import re

import msgspec

from headwater.durable_files import documents
from headwater.durable_files.files import Files
from headwater.errors import EnvironmentProblem
from headwater.exchange.account import Account
from headwater.jetstream_state.begun_streams import BEGUN
from headwater.jetstream_workers.placement import owner_of
from headwater.options.access import GLOBAL_ACCOUNT
from headwater.options.store_folders import ACCOUNT_FOLDERS, FOLDER_PREFIX, WORKERS, part_of

# The folder of a stream: see jetstream_state/store.py.
STREAM = re.compile(rf"^[A-Za-z0-9_-]*-[0-9a-f]{{16}}({re.escape(BEGUN)})?$")
COMMAND = "headwater store spread"


class Spread(msgspec.Struct, frozen=True):
    """For how many workers a store was made; 1: for one broker. `moving`: a move was begun, and did not end."""

    workers: int
    moving: bool = False


def folder_of(account: Account) -> str:
    """The folder of an account; empty for the global account."""
    return "" if account.name == GLOBAL_ACCOUNT else account.directory


def document_path(directory: str) -> str:
    """The path of the document."""
    return f"{directory}/{WORKERS}/spread"


def read_spread(files: Files, directory: str) -> Spread | None:
    """What the store says; None where it says nothing. Raises EnvironmentProblem when that cannot be read."""
    damage: list[str] = []
    try:
        found = documents.load(files, document_path(directory), damage)
        if found is not None:
            return msgspec.json.decode(found, type=Spread)
    except (OSError, msgspec.MsgspecError) as error:
        damage.append(str(error))
    if damage:
        raise EnvironmentProblem(
            f"it cannot be read for how many workers the store directory {directory} was made: {damage[0]}",
            value=directory,
            hint=f"`{COMMAND} {directory} --workers N` writes it anew, and moves what lies elsewhere",
        )
    return None


def write_spread(files: Files, directory: str, spread: Spread) -> None:
    """Make the document durable. Raises OSError."""
    files.mkdir(f"{directory}/{WORKERS}")
    documents.save(files, document_path(directory), msgspec.json.encode(spread))


def stream_folders(files: Files, part: str) -> list[tuple[str, str]]:
    """(account's folder, stream's folder) of each stream in the folder of a broker or of a worker."""
    found = []
    for account in ("", *accounts_in(files, part)):
        names = _names(files, streams_path(part, account))
        found += [(account, name) for name in names if STREAM.match(name)]
    return found


def accounts_in(files: Files, part: str) -> list[str]:
    """The folders of accounts in the folder of a broker or of a worker."""
    return [name for name in _names(files, f"{part}/{ACCOUNT_FOLDERS}") if name.startswith(FOLDER_PREFIX)]


def account_path(part: str, account: str) -> str:
    """The folder that an account locks, in the folder of a broker or of a worker."""
    return f"{part}/{ACCOUNT_FOLDERS}/{account}" if account else part


def streams_path(part: str, account: str) -> str:
    """Where the streams of an account are, in the folder of a broker or of a worker."""
    return f"{account_path(part, account)}/streams"


def check_store(files: Files, directory: str, workers: int) -> None:
    """Raises EnvironmentProblem unless all streams are where `workers` workers, or one broker, look for them."""
    spread = read_spread(files, directory)
    if spread is not None and spread.moving:
        raise _refusal(directory, workers, f"holds streams that were being moved for {spread.workers} workers")
    if spread is not None and spread.workers != workers:
        raise _refusal(directory, workers, f"holds the streams of {_worker_count(spread.workers)}")
    misplaced = [number for number in parts_of(files, directory) if not 0 < number <= (workers if workers > 1 else 0)]
    for number in misplaced:
        if stream_folders(files, part_of(directory, number)):
            raise _refusal(directory, workers, f"holds streams of a worker {number}")
    if workers > 1 and stream_folders(files, directory):
        raise _refusal(directory, workers, "holds streams of one broker")


def prepare_store(files: Files, directory: str, workers: int) -> None:
    """Check the store, and write down for how many workers it is. Raises EnvironmentProblem."""
    check_store(files, directory, workers)
    try:
        files.mkdir(directory)
        if read_spread(files, directory) is None:
            write_spread(files, directory, Spread(workers))
        for number in range(1, workers + 1):
            files.mkdir(part_of(directory, number))
    except OSError as error:
        raise EnvironmentProblem(
            f"the store directory {directory} cannot be used: {error.strerror or error}", value=directory
        ) from error


def check_owner(account: str, stream: str, worker: int, workers: int) -> None:
    """Raises EnvironmentProblem when a stream is in the folder of a worker that is not its owner."""
    owner = owner_of(account, stream, workers)
    if owner != worker:
        raise EnvironmentProblem(
            f"stream {stream} is in the folder of worker {worker}, and belongs to worker {owner}",
            value=stream,
            hint=f"`{COMMAND} DIR --workers {workers}` moves it",
        )


def _refusal(directory: str, workers: int, what: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the store directory {directory} {what}, which {_worker_count(workers)} cannot serve",
        value=directory,
        hint=f"`{COMMAND} {directory} --workers {workers}` moves them; nothing is lost",
    )


def _worker_count(workers: int) -> str:
    return "one broker" if workers == 1 else f"{workers} workers"


def parts_of(files: Files, directory: str) -> list[int]:
    """The numbers of the workers that have a folder."""
    return sorted(int(name) for name in _names(files, f"{directory}/{WORKERS}") if name.isdecimal())


def _names(files: Files, directory: str) -> list[str]:
    """The entries of a directory; empty if it is missing. One that cannot be read is an error."""
    try:
        return files.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
