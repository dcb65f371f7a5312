"""Requests with several answers (ADR-47 of NATS): the caller chooses when to stop waiting.

The first of these ends it: `count` answers have arrived; `stall` seconds have passed since the last one;
`sentinel(answer)` is true (that answer is not returned); `timeout` seconds have passed since the request. Ending is no
error, whatever the number of answers, except that without a subscriber NoResponders is raised at once, and without any
answer in time RequestTimeout.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from headwater.client.units import in_seconds
from headwater.client_connection.connection_ops import BytesLike
from headwater.client_connection.requests import is_no_responders, not_served
from headwater.client_connection.subscription import Subscription
from headwater.errors import ConfigError, RequestTimeout
from headwater.model.headers import Headers, HeaderSource
from headwater.model.message import Message

Sentinel = Callable[[Message], bool]


class Requester(Protocol):
    """The part of a client that is needed here."""

    def new_inbox(self) -> str: ...

    async def subscribe(self, subject: str) -> Subscription: ...

    def publish(
        self, subject: str, data: BytesLike, *, headers: HeaderSource | Headers | None, reply: str
    ) -> object: ...


def is_empty(message: Message) -> bool:
    """The usual sentinel: an answer without payload."""
    return len(message.data) == 0


async def ask_many(
    client: Requester,
    subject: str,
    data: BytesLike,
    headers: HeaderSource | Headers | None,
    timeout: float,
    count: int,
    stall: float,
    sentinel: Sentinel | None,
) -> AsyncIterator[Message]:
    """The answers as they arrive. Raises ConfigError for invalid limits, NoResponders, RequestTimeout, and what a
    publish raises. Leaving the iteration ends the subscription."""
    in_seconds(timeout, "timeout")
    in_seconds(stall, "stall")
    if count < 0 or timeout == 0:
        raise ConfigError("request_many waits some time, for no negative count", value=(timeout, count))
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    now = asyncio.get_running_loop().time
    deadline = now() + timeout
    came = 0
    try:
        client.publish(subject, data, headers=headers, reply=inbox)
        while not count or came < count:
            left = deadline - now()
            try:
                answer = await answers.next(max(min(left, stall) if stall and came else left, 0.0))
            except RequestTimeout:
                break
            if not came and is_no_responders(answer):
                raise not_served(subject, answer)
            came += 1
            if sentinel is not None and sentinel(answer):
                return
            yield answer
    finally:
        answers.unsubscribe()
    if not came:
        raise RequestTimeout(
            f"no answer to the request on {subject!r} within {timeout:g} s", value=subject, limit=timeout
        )
