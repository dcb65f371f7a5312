"""The directory of an account's streams, before anything in it is read: its lock, and whether it has streams. Blocking.

Apart from `store.py`, because a start on an empty store needs no more than this before the greeting.
"""

from headwater.durable_files.files import File, Files
from headwater.durable_files.store_directory import take_directory

STREAMS = "streams"


def take_store(files: Files, directory: str) -> File:
    """Make the directory where it is missing, and lock it. Raises EnvironmentProblem when it cannot be used."""
    # nats-server's words: scripts look for them.
    return take_directory(files, directory, [STREAMS], "Can't start JetStream")


def has_no_streams(files: Files, directory: str) -> bool:
    """Whether the directory can be read, and has neither a stream nor the remains of one."""
    try:
        return not files.listdir(f"{directory}/{STREAMS}")
    except FileNotFoundError:
        return True
    except OSError:
        return False
