"""Options shared by several verbs of the `nats` tool, and the words that it takes, also its short ones."""

from typing import Annotated

from headwater.cli.commands import Option


def words(*known: str, **short: str) -> dict[str, str]:
    """The choices `known`, and others that stand for one of them."""
    return {word: word for word in known} | short


Force = Annotated[bool, Option("--force", "-f", help="do not ask")]
Storage = Annotated[
    str, Option("--storage", help="file or memory", choices=words("file", "memory", f="file", m="memory"))
]
RETENTIONS = words("limits", "interest", "workqueue", work="workqueue", workq="workqueue")
DISCARDS = words("old", "new")
