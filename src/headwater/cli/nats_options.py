"""Options shared by several verbs of the `nats` tool."""

from typing import Annotated

from headwater.cli.commands import Option

Force = Annotated[bool, Option("--force", "-f", help="do not ask")]
