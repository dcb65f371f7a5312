"""Requests of the API: how one is found in the table of those that are served (service.py has it), and how it is refused.

MSG.NEXT and DIRECT.GET are not among them: they are answered with messages. A subject that is not in the table is met
with silence, as in nats-server.
"""

from collections.abc import Callable, Coroutine
from typing import NamedTuple

from headwater.errors import JetStreamError
from headwater.jetstream.domain import API_PREFIX
from headwater.jetstream_documents.answers import (
    TYPE_PREFIX,
    Answer,
    StreamListAnswer,
    error_document,
)


class Aside(NamedTuple):
    """An answer that takes long and changes nothing: the requests behind it need not wait for it."""

    work: Coroutine[object, object, Answer]


Handler = Callable[[list[str], bytes], Answer | Aside | Coroutine[object, object, Answer]]


class Route(NamedTuple):
    """One verb: its handler, how many names follow it, and the answer that carries an error."""

    handler: Handler
    fewest_names: int
    most_names: int
    kind: str
    refusal: type[Answer]


class Call(NamedTuple):
    """A request that waits for its turn."""

    route: Route
    names: list[str]
    reply: bytes
    header_block: bytes
    payload: bytes


Routes = dict[tuple[str, ...], Route]


def find_call(table: Routes, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> Call | None:
    """The request that a message on `$JS.API.…` is; None for what is none."""
    try:
        tokens = subject[len(API_PREFIX) :].decode().split(".")
    except UnicodeDecodeError:
        return None
    for length in (3, 2, 1):
        route = table.get(tuple(tokens[:length]))
        if route is not None:
            names = tokens[length:]
            if not route.fewest_names <= len(names) <= route.most_names:
                return None
            return Call(route, names, reply, header_block, payload)
    return None


def refusal_of(call: Call, error: JetStreamError) -> Answer:
    """The answer that carries an error."""
    answer = call.route.refusal(type=TYPE_PREFIX + call.route.kind, error=error_document(error))
    if isinstance(answer, StreamListAnswer):
        answer.streams = []
    return answer
