"""API requests: finds the handler of a request in the table of routes (in service.py), and builds refusals.

MSG.NEXT and DIRECT.GET are not in the table: they are answered with messages. A subject outside the table gets no answer,
as in nats-server.
"""

from collections.abc import Callable, Coroutine
from typing import NamedTuple

from headwater.errors import JetStreamError, StorageError
from headwater.exchange.sublist import Outlet
from headwater.jetstream.domain import API_PREFIX
from headwater.jetstream_documents.answers import (
    TYPE_PREFIX,
    Answer,
    StreamListAnswer,
    error_document,
)


class Aside(NamedTuple):
    """A slow answer that changes nothing: the requests after it need not wait."""

    work: Coroutine[object, object, Answer]


class Later(NamedTuple):
    """An answer that waits for the disk, as the requests after it do, without a task: `wait(done)` calls `done` later, once,
    with the error if there was one; `answer(error)` then makes the answer, or raises."""

    wait: Callable[[Callable[[StorageError | None], None]], None]
    answer: Callable[[StorageError | None], Answer]


Handler = Callable[[list[str], bytes], Answer | Aside | Later | Coroutine[object, object, Answer]]


class Route(NamedTuple):
    """One verb: its handler, the number of names after it, and the type of an error answer."""

    handler: Handler
    fewest_names: int
    most_names: int
    kind: str
    refusal: type[Answer]


class Call(NamedTuple):
    """A queued request."""

    route: Route
    names: list[str]
    reply: bytes
    header_block: bytes
    payload: bytes
    subject: bytes = b""
    publisher: Outlet | None = None  # None: the broker itself, or a peer


Routes = dict[tuple[str, ...], Route]


def find_call(table: Routes, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> Call | None:
    """The request in a message on `$JS.API.…`; None if it is not one."""
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
            return Call(route, names, reply, header_block, payload, subject)
    return None


def refusal_of(call: Call, error: JetStreamError) -> Answer:
    """The answer for an error."""
    answer = call.route.refusal(type=TYPE_PREFIX + call.route.kind, error=error_document(error))
    if isinstance(answer, StreamListAnswer):
        answer.streams = []
    return answer
