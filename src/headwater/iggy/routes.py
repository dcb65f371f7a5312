"""Where a client's sends and polls go, remembered: a client of generation V says it in the same bytes every time.

To read an address, to find stream and topic in the catalog and to ask for permission takes some 200 us of Python, more than
all else that a send of 100 kB costs. So the outcome is kept by the bytes that it came from, for as long as nothing that
it rests on changes: `Service.generation` counts every change of the catalog, and of who may do what. What depends on
more than that is looked up each time: topics of another face, partitions that the server chooses, members of groups.
"""

from collections.abc import Generator
from struct import Struct
from typing import Final, NamedTuple

from headwater.iggy.catalog import UserEntry
from headwater.iggy.group_commands import consumer_key
from headwater.iggy.message_commands import Found, SendRoute, poll_partition
from headwater.iggy.service import Client, Service
from headwater.iggy.topics import Topic
from headwater.iggy_wire.commands import PollMessages, SendMessages
from headwater.iggy_wire.identifiers import ConsumerKind, PartitioningKind, PollingStrategy, StrategyKind
from headwater.iggy_wire.reply_codec import SentView

MOST: Final = 256  # of each kind; a client that goes to more places begins anew
_TAIL: Final = Struct("<BQIB")  # of a poll: strategy, its value, count, automatic commit
_STRATEGIES: Final = {int(kind): kind for kind in StrategyKind}


class PollRoute(NamedTuple):
    """`consumer` is the key of its committed offset."""

    topic: Topic
    partition: int
    consumer: str


class Routes:
    """Those of one client."""

    def __init__(self, service: Service, client: Client) -> None:
        self._service = service
        self._client = client
        self._generation = -1
        self._user: UserEntry | None = None
        self._sends: dict[bytes, SendRoute] = {}
        self._polls: dict[bytes, PollRoute] = {}

    def _refresh(self) -> None:
        service, user = self._service, self._client.user
        if self._generation != service.generation or self._user is not user or service.is_changing:
            self._sends.clear()
            self._polls.clear()
            self._generation, self._user = service.generation, user

    def send(self, metadata: bytes) -> SendRoute | None:
        """The way that is known for this address; None for the long way."""
        self._refresh()
        return self._sends.get(metadata)

    def keep_send(self, metadata: bytes, address: SendMessages, sent: SentView) -> None:
        """The long way of this address led there."""
        topic = self._own_topic(address)
        if topic is not None and address.partitioning.kind is PartitioningKind.PARTITION_ID:
            if len(self._sends) >= MOST:
                self._sends.clear()
            self._sends[metadata] = SendRoute(sent.stream, topic, sent.partition, address.count)

    def poll(self, body: bytes, ranges: bool = False, incarnation: int = 0) -> Generator[None, None, Found] | None:
        """The answer by a way that is known, in steps that raise StorageError; None for the long way."""
        self._refresh()
        route = self._polls.get(body[: -_TAIL.size])
        if route is None:
            return None
        kind, value, count, auto_commit = _TAIL.unpack_from(body, len(body) - _TAIL.size)
        strategy = _STRATEGIES.get(kind)
        if strategy is None or route.partition >= len(route.topic.partitions):
            return None
        route.topic.check_incarnation(route.topic.partitions[route.partition], incarnation)
        where = PollingStrategy(strategy, value)
        return self._poll(route, where, count, bool(auto_commit), ranges)

    def _poll(
        self, route: PollRoute, where: PollingStrategy, count: int, commits: bool, ranges: bool
    ) -> Generator[None, None, Found]:
        topic, partition = route.topic, route.topic.partitions[route.partition]
        polled = yield from poll_partition(
            self._service, topic, partition, route.consumer, where, count, commits, ranges
        )
        return Found(route.partition, polled, topic.incarnation(partition))

    def keep_poll(self, body: bytes, command: PollMessages, found: Found) -> None:
        """The long way of this poll led there."""
        topic = self._own_topic(command)
        if topic is not None and command.consumer.kind is ConsumerKind.CONSUMER:
            if len(self._polls) >= MOST:
                self._polls.clear()
            key = consumer_key(topic, command.consumer)
            self._polls[body[: -_TAIL.size]] = PollRoute(topic, found.partition, key)

    def _own_topic(self, command: SendMessages | PollMessages) -> Topic | None:
        """The topic, if it is none of another face's, which come and go without a change of our catalog."""
        topic = self._service.topic(command.stream, command.topic)[1]
        return topic if topic.entry.partitions else None
