"""The directory with one server's logs and documents, locked so that no other server writes there."""

from collections.abc import Iterable
from contextlib import suppress

from headwater.durable_files.files import File, Files
from headwater.errors import EnvironmentProblem

LOCK = "lock"


def take_directory(files: Files, directory: str, folders: Iterable[str], unusable: str) -> File:
    """Make the directory with its `folders` where it is not there, and lock it; the lock holds until it is closed.

    Raises EnvironmentProblem when another server holds it, or when it cannot be used: `unusable` is then the beginning of
    the message.
    """
    try:
        for folder in folders:
            files.mkdir(f"{directory}/{folder}")
        return files.lock(f"{directory}/{LOCK}")
    except BlockingIOError as error:
        raise EnvironmentProblem(
            f"another server uses the store directory {directory}", value=directory, hint="give each its own"
        ) from error
    except NotADirectoryError as error:
        reason = f"{unusable}: storage directory is not a directory: {directory}"
        raise EnvironmentProblem(reason, value=directory) from error
    except FileNotFoundError as error:
        reason = f"{unusable}: could not create storage directory - mkdir {error.filename}: no such file or directory"
        raise EnvironmentProblem(reason, value=directory) from error
    except OSError as error:
        reason = f"{unusable}: the store directory {directory} cannot be used: {error}"
        raise EnvironmentProblem(reason, value=directory) from error


def remove_tree(files: Files, path: str) -> None:
    """Remove a directory with all that is in it; not an error when it is not there. Raises OSError."""
    try:
        names = files.listdir(path)
    except FileNotFoundError:
        with suppress(FileNotFoundError):  # a link to nowhere
            files.unlink(path)
        return
    for name in names:
        inner = f"{path}/{name}"
        try:
            remove_tree(files, inner)
        except NotADirectoryError:
            files.unlink(inner)
    files.rmdir(path)
