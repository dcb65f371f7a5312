"""What a consumer needs from the stream that it reads: the protocol that `Stream` and `ViewStream` implement.

Consumers are made and held by their stream, so they do not import it.
"""

from typing import Any, Protocol

from headwater.jetstream.domain import Domain
from headwater.jetstream.state_keeper import StateKeeper
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state.audience import Audience
from headwater.jetstream_state.contents import Contents
from headwater.streams.log import Log, StoredRecord


class ConsumedStream(Protocol):
    """`requests_dropped`: pull requests whose requester had gone, or had no subscriber with permission for the messages."""

    config: StreamConfig
    consumers: Audience[Any]
    contents: Contents
    domain: Domain
    keeper: StateKeeper | None
    log: Log
    requests_dropped: int

    @property
    def name(self) -> str:
        """The stream's name."""
        ...

    @property
    def first_sequence(self) -> int:
        """The sequence of the first message, or of the next one in an empty stream."""
        ...

    @property
    def last_sequence(self) -> int:
        """The sequence of the last durable message."""
        ...

    @property
    def waiting(self) -> tuple[int, int]:
        """Messages that are not durable yet, and their bytes."""
        ...

    async def written(self) -> None:
        """Wait until every message captured so far is durable, or refused."""

    def on_settled(self, record: StoredRecord) -> None:
        """A consumer no longer needs this message."""
        ...
