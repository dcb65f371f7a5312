"""The counters of a stream with `allow_msg_counter` (ADR-49 of NATS): each subject has a sum, and a publish adds to it.

    counters = jetstream.counters("VISITS")
    await counters.add("visits.home")           # 1
    await counters.add("visits.home", 41)       # 42
    await counters.get("visits.home")           # 42

Sums are integers of any length. An increment whose answer is lost may have been counted; with a `msg_id` it can be sent
again and counts once.
"""

from typing import TYPE_CHECKING

import msgspec

from headwater.client.jetstream_types import StoredMessage
from headwater.errors import JetStreamError, LocalProtocolError, RemoteProtocolError
from headwater.model.header_names import NatsHeader
from headwater.model.headers import Headers, HeaderSource
from headwater.model.long_numbers import read_number, write_number
from headwater.model.status import NOT_FOUND

if TYPE_CHECKING:
    from headwater.client.jetstream_api import JetStreamApi

_NO_MESSAGE = 10037


class _Sum(msgspec.Struct):
    val: str


class Counters:
    """The counters of one stream. Made by `JetStream.counters`; requests raise what `JetStreamApi` says."""

    def __init__(self, jetstream: "JetStreamApi", stream: str) -> None:
        self.stream = stream
        self._jetstream = jetstream

    async def add(
        self, subject: str, by: int = 1, *, msg_id: str | None = None, headers: HeaderSource | Headers | None = None
    ) -> int:
        """Add `by`, which may be negative or 0, to the counter of `subject`; returns the new sum.

        With a `msg_id` that the stream has stored before, nothing is added, and the present sum is returned. Raises
        NoResponders when no stream captures the subject, JetStreamError when its stream has no counters, and
        LocalProtocolError when another stream than this one has counted it.
        """
        complete = Headers(headers or {})
        complete[NatsHeader.INCREMENT] = write_number(by)
        answer = await self._jetstream.publish(subject, headers=complete, msg_id=msg_id)
        # Nats-Expected-Stream, which would check this beforehand, is refused with 10171.
        if answer.stream != self.stream:
            hint = f"use jetstream.counters({answer.stream!r})"
            raise LocalProtocolError(
                f"{subject!r} was counted in the stream {answer.stream!r}, not {self.stream!r}",
                value=subject,
                hint=hint,
            )
        if answer.val:
            return _number(answer.val, subject)
        if not answer.duplicate:
            raise RemoteProtocolError(f"the increment of {subject!r} was answered without a sum", value=subject)
        return await self.get(subject) or 0

    async def get(self, subject: str, *, direct: bool = False) -> int | None:
        """The sum of `subject`; None when nothing was counted there, or all of it was purged.

        `direct` reads from any replica, which may be behind the leader; the stream must allow it. Raises
        RemoteProtocolError when the last message of the subject is no sum.
        """
        message = await self._last(subject, direct)
        return None if message is None else _sum(message)

    async def sources(self, subject: str) -> dict[str, dict[str, int]]:
        """The parts of the sum of `subject` in a stream with sources: by stream and subject of origin, the last sum
        copied from there. Empty for a counter without sources."""
        message = await self._last(subject, False)
        text = "" if message is None else message.headers.get(NatsHeader.COUNTER_SOURCES, "")
        if not text:
            return {}
        try:
            found = msgspec.json.decode(text, type=dict[str, dict[str, str]])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise RemoteProtocolError(f"the sources of {subject!r} cannot be read: {error}", value=text) from error
        return {origin: {name: _number(val, name) for name, val in of.items()} for origin, of in found.items()}

    async def _last(self, subject: str, direct: bool) -> StoredMessage | None:
        try:
            return await self._jetstream.get_message(self.stream, last_on=subject, direct=direct)
        except JetStreamError as error:
            if error.code == NOT_FOUND and error.err_code == _NO_MESSAGE:
                return None
            raise


def _sum(message: StoredMessage) -> int:
    try:
        return _number(msgspec.json.decode(message.data, type=_Sum).val, message.subject)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"{message.subject!r} holds no sum: {error}", value=message.data[:200]) from error


def _number(text: str, subject: str) -> int:
    try:
        return read_number(text)
    except ValueError as error:
        raise RemoteProtocolError(f"{subject!r} holds no sum: {error}", value=text[:200]) from error
