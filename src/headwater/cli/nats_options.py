"""Options that several of the verbs of the `nats` tool share, as typer takes them."""

from typing import Annotated

import typer

Force = Annotated[bool, typer.Option("--force", "-f", help="do not ask")]
