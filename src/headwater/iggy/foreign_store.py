"""Recognizes a directory of Apache Iggy's own server, so that it is not taken for an empty one.

    <path>/state/log                                     every change of its catalog
    <path>/streams/<id>/topics/<id>/partitions/<id>/     segments and committed offsets

Headwater reads nothing in it, and starts only if it contains no stream. Blocking.
"""

from pathlib import PurePath

from headwater.durable_files.files import Files
from headwater.errors import EnvironmentProblem

OWN_FOLDER = "iggy"  # the broker's folder for Iggy in a store directory
MOST_NAMED = 5  # streams in the message


def refuse_foreign_store(files: Files, directory: str) -> None:
    """Raises EnvironmentProblem if the directory, or the store directory that it is the folder `iggy` of, has streams
    of Apache Iggy's server."""
    places = [directory]
    if PurePath(directory).name == OWN_FOLDER:
        places.append(str(PurePath(directory).parent))
    for place in places:
        found = _streams(files, place)
        if found:
            named = ", ".join(found[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "")
            raise EnvironmentProblem(
                f"the directory {place} holds {len(found)} streams of Apache Iggy's server (numbers {named}), which "
                "Headwater cannot serve",
                value=place,
                hint="start with another store directory, and copy the messages with an Iggy client",
            )


def _streams(files: Files, directory: str) -> list[str]:
    """The numbers of the streams."""
    numbers = [name for name in _names(files, f"{directory}/streams") if name.isdigit()]
    return sorted((name for name in numbers if "topics" in _names(files, f"{directory}/streams/{name}")), key=int)


def _names(files: Files, directory: str) -> list[str]:
    """The entries of a directory; empty if it is missing or unreadable, which the code that uses it reports."""
    try:
        return files.listdir(directory)
    except OSError:
        return []
