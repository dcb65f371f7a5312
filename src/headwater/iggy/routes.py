"""A cache of the targets of a client's sends and polls: a client of generation V repeats the same address bytes.

Parsing an address, finding stream and topic in the catalog and checking permissions takes some 200 us of Python, more
than the rest of a send of 100 kB. So the result is cached by the address bytes until something it depends on changes:
`CatalogChanges.generation` counts every change of the catalog and of permissions. Anything with further dependencies is
looked up each time: topics of another face, partitions that the server chooses, members of groups.
"""

from collections.abc import Generator
from struct import Struct
from typing import Final, NamedTuple

from headwater.iggy.catalog import UserEntry
from headwater.iggy.clients import Client
from headwater.iggy.group_commands import consumer_key
from headwater.iggy.message_commands import Found, SendRoute, poll_partition
from headwater.iggy.service import Service
from headwater.iggy.topics import Topic
from headwater.iggy_wire.commands import PollMessages, SendMessages
from headwater.iggy_wire.identifiers import ConsumerKind, PartitioningKind, PollingStrategy, StrategyKind
from headwater.iggy_wire.reply_codec import SentView
from headwater.model.thinning import thin_out

MOST: Final = 256  # entries of each kind; above, every eighth goes
_TAIL: Final = Struct("<BQIB")  # of a poll: strategy, its value, count, automatic commit
_STRATEGIES: Final = {int(kind): kind for kind in StrategyKind}


class PollRoute(NamedTuple):
    """`consumer` is the key of its committed offset."""

    topic: Topic
    partition: int
    consumer: str


class Routes:
    """The routes of one client."""

    def __init__(self, service: Service, client: Client) -> None:
        self._service = service
        self._client = client
        self._generation = -1
        self._user: UserEntry | None = None
        self._sends: dict[bytes, SendRoute] = {}
        self._polls: dict[bytes, PollRoute] = {}

    def _refresh(self) -> None:
        service, user = self._service, self._client.user
        if self._generation != service.changes.generation or self._user is not user or service.changes.in_progress:
            self._sends.clear()
            self._polls.clear()
            self._generation, self._user = service.changes.generation, user

    def send(self, metadata: bytes) -> SendRoute | None:
        """The cached route of this address; None if there is none."""
        self._refresh()
        return self._sends.get(metadata)

    def keep_send(self, metadata: bytes, address: SendMessages, sent: SentView) -> None:
        """Cache the result for this address."""
        topic = self._own_topic(address)
        if topic is not None and address.partitioning.kind is PartitioningKind.PARTITION_ID:
            if len(self._sends) >= MOST:
                thin_out(self._sends)
            self._sends[metadata] = SendRoute(sent.stream, topic, sent.partition, address.count)

    def poll(self, body: bytes, ranges: bool = False, incarnation: int = 0) -> Generator[None, None, Found] | None:
        """Poll by a cached route, in steps that raise StorageError; None if there is none."""
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
        """Cache the route of this poll."""
        topic = self._own_topic(command)
        if topic is not None and command.consumer.kind is ConsumerKind.CONSUMER:
            if len(self._polls) >= MOST:
                thin_out(self._polls)
            key = consumer_key(topic, command.consumer)
            self._polls[body[: -_TAIL.size]] = PollRoute(topic, found.partition, key)

    def _own_topic(self, command: SendMessages | PollMessages) -> Topic | None:
        """The topic, unless it belongs to another face: those appear and disappear without a change of the catalog."""
        topic = self._service.topic(command.stream, command.topic)[1]
        return topic if topic.entry.partitions else None
