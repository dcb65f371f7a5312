"""Finds the handler for a command.

    frame ─▶ command_codec ─▶ `execute` ─▶ `Service.authorize` ─▶ a handler of *_commands.py ─▶ view ─▶ reply_codec ─▶ frame

A handler answers at once, or is a coroutine where the disk is involved. SendMessages is not in the table: its messages
are checked in the receive buffer and go straight to `message_commands.send`.
"""

from collections.abc import Callable
from typing import Any, Final

from headwater.errors import HeadwaterError
from headwater.iggy import group_commands, server_commands, stream_commands, user_commands
from headwater.iggy.clients import Client
from headwater.iggy.resource_commands import translated
from headwater.iggy.service import Service
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Identifier

Handler = Callable[[Service, Client, Any], Any]
HANDLERS: Final[dict[type[Command], Handler]] = {
    **stream_commands.HANDLERS,
    **server_commands.HANDLERS,
    **user_commands.HANDLERS,
    **group_commands.HANDLERS,
}
_ALTERING: Final = (
    c.UpdateStream,
    c.DeleteStream,
    c.PurgeStream,
    c.CreateTopic,
    c.UpdateTopic,
    c.DeleteTopic,
    c.PurgeTopic,
    c.CreatePartitions,
    c.DeletePartitions,
    c.DeleteSegments,
)
_MISSING_IS_EMPTY: Final = (c.GetStream, c.GetTopic, c.GetGroup)
_OF_A_GROUP: Final = "consumer_group_"


def execute(service: Service, client: Client, command: Command) -> Any:
    """The view of the answer, or a coroutine that returns it. Raises HeadwaterError, at once or in the coroutine."""
    service.refresh()
    if isinstance(command, c.UpdateResource):
        command = translated(service, client.era, command)
    service.authorize(client, command)
    if isinstance(command, _ALTERING):
        _check_own(service, command.stream)
    try:
        return HANDLERS[type(command)](service, client, command)
    except HeadwaterError as error:
        missing = getattr(error, "name", "")
        if "not_found" not in missing or client.era is Era.S or not isinstance(command, _MISSING_IS_EMPTY):
            raise
        if client.era >= Era.V and isinstance(command, c.GetGroup) and not missing.startswith(_OF_A_GROUP):
            raise  # as upstream: a missing group is an empty answer, a missing topic an error
        return None


def _check_own(service: Service, stream: Identifier) -> None:
    if any(entry.origin and stream.value in (entry.id, entry.name) for entry in service.catalog.streams):
        raise refusal("feature_unavailable", "these streams are made and removed through NATS", stream.value)
