"""Recognizes a store directory of nats-server, so that it is not taken for an empty one.

    <store_dir>/jetstream/<account>/streams/<stream>/meta.inf      as nats-server's `store_dir` holds it
    <store_dir>/<account>/streams/<stream>/meta.inf                when its `jetstream` folder was named itself

Headwater reads nothing in it, and starts only if it contains no stream. Blocking.
"""

from headwater.durable_files.files import Files
from headwater.errors import EnvironmentProblem

IMPORT = "headwater store import"
MOST_NAMED = 5  # streams in the message


def refuse_foreign_store(files: Files, directory: str) -> None:
    """Raises EnvironmentProblem if the directory has streams of nats-server."""
    found = sorted(_streams(files, f"{directory}/jetstream") + _streams(files, directory))
    if found:
        named = ", ".join(found[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "")
        what = f"{len(found)} streams of nats-server ({named})"
        raise EnvironmentProblem(
            f"the store directory {directory} holds {what}, which Headwater cannot serve",
            value=directory,
            hint=f"`{IMPORT} {directory} --store-dir NEW` brings them over; serve NEW then",
        )


def _streams(files: Files, directory: str) -> list[str]:
    """`<account> > <stream>` for each stream."""
    return [
        f"{account} > {stream}"
        for account in _names(files, directory)
        for stream in _names(files, f"{directory}/{account}/streams")
        if "meta.inf" in _names(files, f"{directory}/{account}/streams/{stream}")
    ]


def _names(files: Files, directory: str) -> list[str]:
    """The entries of a directory; empty if it is missing or unreadable, which the code that uses it reports."""
    try:
        return files.listdir(directory)
    except OSError:
        return []
