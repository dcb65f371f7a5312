"""Options that several of the verbs of the `nats` tool share."""

from typing import Annotated

from headwater.cli.commands import Option

Force = Annotated[bool, Option("--force", "-f", help="do not ask")]
