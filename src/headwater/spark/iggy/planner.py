"""The planner's view of Iggy topics: the state of their partitions, and the offset for a position or a time.

One request returns the state of all partitions of a topic. Iggy does not announce new messages, so an idle query polls once
every `WAIT_SECONDS`, one topic at a time: four requests per second, however many topics there are.
"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from headwater.errors import ConfigError
from headwater.iggy_client.blocking import BlockingIggy
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import messages
from headwater.iggy_wire.classic_codec import PREFIX
from headwater.iggy_wire.identifiers import Consumer, Identifier, PollingStrategy
from headwater.net.blocking import deadline_after
from headwater.spark.iggy import links
from headwater.spark.iggy.offsets import PartitionState, Place, partition_state
from headwater.spark.iggy.options import IggySourceOptions

T = TypeVar("T")

WAIT_SECONDS = 0.25
ANSWER_SECONDS = 10.0  # for one poll of one message


class IggyPlanner:
    """Queries the state of topics. Picklable: it holds options only. `requests` counts its requests, for tests."""

    def __init__(self, options: IggySourceOptions) -> None:
        self._options = options
        self._turn = 0
        self.requests = 0

    def states(self, topic: str) -> dict[Place, PartitionState]:
        """The current partitions of a topic. Raises ConfigError when the topic does not exist, TransportError when no
        server could be reached for `readTimeout`, IggyError for a refusal."""
        view = self._ask(f"topic={topic}", lambda client: client.topic(self._options.stream, topic))
        if view is None:
            raise ConfigError(
                f"there is no topic {topic} in the stream {self._options.stream}",
                value=topic,
                hint="create it, or check the options stream, topic and servers",
            )
        found = {}
        for part in view.parts:
            place = Place(topic, part.id)
            end = part.current_offset + 1 if part.messages or part.current_offset else 0
            created = part.created or view.created
            found[place] = partition_state(place, created, end, part.messages, part.size)
        return found

    def all_states(self) -> dict[Place, PartitionState]:
        """The current partitions of all topics."""
        return {place: state for topic in self._options.topics for place, state in self.states(topic).items()}

    def wait(self) -> dict[Place, PartitionState]:
        """Wait for `WAIT_SECONDS`, then return the partitions of the next topic in turn."""
        time.sleep(WAIT_SECONDS)
        self._turn = (self._turn + 1) % len(self._options.topics)
        return self.states(self._options.topics[self._turn])

    def first(self, place: Place) -> int | None:
        """The lowest offset that is left; None in an empty partition."""
        return self._offset(place, PollingStrategy.first())

    def offset_at(self, place: Place, moment: datetime) -> int | None:
        """The first offset stored at `moment` or later; None when there is none."""
        return self._offset(place, PollingStrategy.timestamp(round(moment.timestamp() * 1_000_000)))

    def _offset(self, place: Place, strategy: PollingStrategy) -> int | None:
        return self._ask(f"partition={place}", lambda client: poll_one(client, self._options.stream, place, strategy))

    def _ask(self, what: str, ask: Callable[[BlockingIggy], T]) -> T:
        self.requests += 1
        return links.persistently(self._options.server, self._options.read_timeout, what, ask)


def poll_one(client: BlockingIggy, stream: str, place: Place, strategy: PollingStrategy) -> int | None:
    """The offset of the message that a strategy finds, or None."""
    client.ask(poll_command(stream, place, strategy, 1))
    reply = client.answer(deadline_after(ANSWER_SECONDS))
    body = bytes(memoryview(client.buffer)[reply.start + PREFIX.size : reply.end])
    client.consume(reply)
    return next((message.offset for message in messages(body)), None)


def poll_command(stream: str, place: Place, strategy: PollingStrategy, count: int) -> c.PollMessages:
    """A poll that leaves no state on the server."""
    where = Identifier(stream), Identifier(place.topic)
    return c.PollMessages(Consumer.single(), *where, place.partition, strategy, count, False)
