"""Translates the general update command of protocol 0.12 to the update commands for a topic, a stream or a user of
earlier protocols.

There, a name and a user's status are options too. Options that are not named stay unchanged; those under `reset` get
their defaults. The resulting command is executed and checked like any other.
"""

from headwater.iggy.service import Service
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Identifier
from headwater.iggy_wire.option_catalog import check_update
from headwater.iggy_wire.options import TOPIC, USER, canonical, names_in, take_text

_STATUSES = {"active": 1, "inactive": 2}


def translated(service: Service, era: Era, command: c.UpdateResource) -> Command:
    """The equivalent command. Raises IggyError for an update that changes nothing, names a key twice or names one that
    cannot change, and for a missing topic or stream, whose name is needed."""
    scope, which = command.target
    names, reset = names_in(command.options), set(command.reset)
    if len(reset) != len(command.reset) or names & reset:
        raise refusal("invalid_command", "a key is named twice")
    if not names and not reset:
        raise refusal("invalid_command", "the update alters nothing")
    check_update(scope, names, command.reset, era)
    if scope == USER:
        username, rest = take_text(command.options, "username")
        status, rest = take_text(rest, "status")
        if status is not None and status not in _STATUSES:
            raise refusal("invalid_option_value", f"a status is {' or '.join(_STATUSES)}", status)
        return c.UpdateUser(which[0], username, _STATUSES[status] if status is not None else None, rest)
    name, rest = take_text(command.options, "name")
    if scope == TOPIC:
        return _topic(service, which[0], which[1], name, rest, frozenset(command.reset))
    if name is None:
        name = service.catalog.stream(which[0]).name
    return c.UpdateStream(which[0], name, rest)


def _topic(
    service: Service, stream: Identifier, topic: Identifier, name: str | None, options: bytes, reset: frozenset[str]
) -> c.UpdateTopic:
    if name is None:
        if not reset and not canonical(options, TOPIC):  # an expiry or a size of 0 leaves it as it is
            raise refusal("invalid_command", "the update alters nothing")
        name = service.catalog.topic(stream, topic)[1].name
    return c.UpdateTopic(stream, topic, name, options=options, reset=reset)
