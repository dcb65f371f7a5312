"""A directory that Apache Iggy's own server has written: recognized, so that it is not taken for an empty one.

    <path>/state/log                                     every change of its catalog
    <path>/streams/<id>/topics/<id>/partitions/<id>/     segments and committed offsets

Headwater reads nothing of it, and starts beside it only when there is no stream in it. Blocking.
"""

from pathlib import PurePath

from headwater.errors import EnvironmentProblem
from headwater.streams.files import Files

OWN_FOLDER = "iggy"  # of a store directory: what the broker keeps for Iggy
MOST_NAMED = 5  # streams in the message


def refuse_foreign_store(files: Files, directory: str) -> None:
    """Raises EnvironmentProblem when there are streams of Apache Iggy's server in the directory, or in the store directory
    whose folder `iggy` it is."""
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
    """The number of each stream that is there."""
    numbers = [name for name in _names(files, f"{directory}/streams") if name.isdigit()]
    return sorted((name for name in numbers if "topics" in _names(files, f"{directory}/streams/{name}")), key=int)


def _names(files: Files, directory: str) -> list[str]:
    """Nothing where there is no directory, or none that may be read: its user reports that."""
    try:
        return files.listdir(directory)
    except OSError:
        return []
