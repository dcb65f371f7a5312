"""What `sync.connect` of the Iggy client gives, as type checkers see it; at run time each is a proxy.

Written by `docs/sync_types.py` from the asyncio classes of the same names, less `Sync`: change those, and run
`./hw check --fix`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from headwater.client_connection.timeouts import Timeout
from headwater.iggy_client.consumer import ConsumerOptions
from headwater.iggy_client.management import Name
from headwater.iggy_client.messages import Polled
from headwater.iggy_client.producer import ProducerOptions, Where
from headwater.iggy_client.values import Scope, TopicOptions, UserStatus
from headwater.iggy_wire.commands import Code, Command, Message, Permissions
from headwater.iggy_wire.identifiers import Consumer, Partitioning, PollingStrategy
from headwater.iggy_wire.message_codec import ReceivedMessage
from headwater.iggy_wire.reply_codec import (
    Assignment,
    ClientView,
    ClusterView,
    GroupView,
    OffsetView,
    OptionView,
    SentView,
    StatsView,
    StreamView,
    TokenView,
    TopicView,
    UserView,
)


class SyncManagement(Protocol):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    def create_stream(self, name: str) -> StreamView:
        """A stream of that name, without topics."""

    def stream(self, stream: Name) -> StreamView | None:
        """With its topics in `details`; None when there is none."""

    def streams(self) -> list[StreamView]:
        """All that the user may see."""

    def update_stream(self, stream: Name, name: str, options: Mapping[str, str] | None = None) -> None:
        """Another `name`, and other `options` by name."""

    def delete_stream(self, stream: Name) -> None:
        """With all that is in it."""

    def purge_stream(self, stream: Name) -> None:
        """All messages of all its topics are gone; offsets begin anew."""

    def create_topic(
        self, stream: Name, name: str, partitions: int = 1, options: TopicOptions | bytes = b""
    ) -> TopicView:
        """A topic with that many partitions; `options` also as a block in the form of the wire."""

    def topic(self, stream: Name, topic: Name) -> TopicView | None:
        """With its partitions in `parts`; None when there is none."""

    def topics(self, stream: Name) -> list[TopicView]:
        """All of the stream."""

    def update_topic(self, stream: Name, topic: Name, name: str, options: TopicOptions | None = None) -> None:
        """Another `name`, and what `options` name: the compression, the expiry, the largest size."""

    def delete_topic(self, stream: Name, topic: Name) -> None:
        """With all that is in it."""

    def purge_topic(self, stream: Name, topic: Name) -> None:
        """All its messages are gone; offsets begin anew."""

    def create_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """`count` more of them."""

    def delete_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """The last `count`, with their messages."""

    def delete_segments(self, stream: Name, topic: Name, partition: int, count: int) -> None:
        """The oldest `count` closed segments of a partition."""


class SyncGroups(Protocol):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    def create_group(self, stream: Name, topic: Name, name: str) -> GroupView:
        """A group without members."""

    def group(self, stream: Name, topic: Name, group: Name) -> GroupView | None:
        """With its members in `details`; None when there is none."""

    def groups(self, stream: Name, topic: Name) -> list[GroupView]:
        """All of the topic."""

    def delete_group(self, stream: Name, topic: Name, group: Name) -> None:
        """With its offsets."""

    def join_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """Join the group; returns the partitions that this client reads until the generation changes."""

    def leave_group(self, stream: Name, topic: Name, group: Name) -> None:
        """Its partitions go to the others."""

    def sync_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """Which partitions are this client's now."""

    def store_offset(
        self, stream: Name, topic: Name, partition: int, offset: int, consumer: Consumer | None = None
    ) -> None:
        """The message at `offset` is done with: durable once this returns."""

    def offset(self, stream: Name, topic: Name, partition: int, consumer: Consumer | None = None) -> OffsetView | None:
        """The stored offset; None when there is none."""

    def delete_offset(self, stream: Name, topic: Name, partition: int, consumer: Consumer | None = None) -> None:
        """The consumer begins anew."""


class SyncMessages(SyncManagement, SyncGroups, Protocol):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    def send(
        self, stream: Name, topic: Name, batch: Sequence[Message], partitioning: Partitioning | int | None = None
    ) -> SentView:
        """Send messages as one batch to one partition; stored once this returns. `partitioning`: an id, or by key, or
        by turns (None). Raises IggyError, HeaderError, ConnectionClosed."""

    def poll(
        self,
        stream: Name,
        topic: Name,
        partition: int = 0,
        *,
        consumer: Consumer | None = None,
        strategy: PollingStrategy | None = None,
        count: int = 1000,
        auto_commit: bool = False,
    ) -> list[ReceivedMessage]:
        """Messages of one partition, from where `strategy` says (next); none when there are none. `auto_commit`: the server
        stores the offset of the last one as it answers."""

    def poll_as(
        self,
        stream: Name,
        topic: Name,
        partition: int,
        consumer: Consumer | None = None,
        strategy: PollingStrategy | None = None,
        count: int = 1000,
        auto_commit: bool = False,
    ) -> Polled:
        """As `poll`, with what the server says beside the messages."""


class SyncUsers(Protocol):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    def create_user(
        self,
        username: str,
        password: str,
        status: UserStatus = UserStatus.ACTIVE,
        permissions: Permissions | None = None,
    ) -> UserView:
        """A user; without `permissions` nothing is allowed to it."""

    def user(self, user: Name) -> UserView | None:
        """With its permissions; None when there is none."""

    def users(self) -> list[UserView]:
        """All, without their permissions."""

    def update_user(
        self,
        user: Name,
        username: str | None = None,
        status: UserStatus | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """What is None stays as it is."""

    def delete_user(self, user: Name) -> None:
        """Its connections end."""

    def update_permissions(self, user: Name, permissions: Permissions | None) -> None:
        """These instead of those it had; None allows nothing."""

    def change_password(self, user: Name, current: str, new: str) -> None:
        """`current` is the user's present one."""

    def create_token(self, name: str, expiry: timedelta | None = None) -> str:
        """A personal access token of the caller's own, shown this once; None: it never ends."""

    def tokens(self) -> list[TokenView]:
        """The caller's own: names and expiry."""

    def delete_token(self, name: str) -> None:
        """It opens nothing any more."""


class SyncTopicConsumer(Protocol):
    """See the head of this module. Made by `Client.consumer`; for one task at a time."""

    stream: Name

    topic: Name

    @property
    def in_group(self) -> bool:
        """Whether it is a member of a group."""

    @property
    def name(self) -> str:
        """The group's, or the consumer's."""

    @property
    def partitions(self) -> list[int]:
        """Those that it reads now."""

    @property
    def partition(self) -> int | None:
        """That of the message that was handed out last; None before."""

    def last_consumed_offset(self, partition: int) -> int | None:
        """Of the last message that the program is done with; None when there is none."""

    def last_stored_offset(self, partition: int) -> int | None:
        """Of those that this consumer stored; None when there is none."""

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """The messages, without end."""

    def consume(self, callback: Callable[[ReceivedMessage], object], until: threading.Event | None = None) -> None:
        """Await `callback` for one message after the other, until the event is set, which is looked at ten times a second;
        then what is due is stored. An exception of the callback ends it, and its message counts as not consumed."""

    def next_batch(self, patience: Timeout | None = None) -> list[ReceivedMessage]:
        """What one poll finds, of one partition; waits until there is something, or returns [] after `patience` seconds.
        Nothing counts as handed out before `hand` was called for it. Raises IggyError for what the server refuses,
        TransportError when the session is over."""

    def hand(self, message: ReceivedMessage, is_last: bool) -> bool:
        """The message goes to the program, `is_last` of its batch; returns whether to `settle` it first."""

    def finish(self, message: ReceivedMessage, is_last: bool) -> bool:
        """The program is done with it; returns whether to `settle` it."""

    def settle(self, message: ReceivedMessage) -> None:
        """Store its offset, and whatever else is due."""

    def store_offset(self, offset: int, partition: int | None = None) -> None:
        """The message at `offset`, in the partition of the last message where none is given, is done with."""

    def delete_offset(self, partition: int | None = None) -> None:
        """Begin that partition anew."""

    def store_pending(self) -> None:
        """Store now what an interval would store."""

    def close(self) -> None:
        """Store what is due, and leave the group."""


class SyncProducer(Protocol):
    """See the head of this module. Made by `Client.producer`; any task may send."""

    stream: Name

    topic: Name

    def send(self, messages: Sequence[Message], partitioning: Where = None) -> list[SentView]:
        """Send to the topic; where the batches went, or [] in the background. `partitioning` instead of the producer's own.

        Raises IncompleteSend; in the background BufferFull when there is no room in time.
        """

    def send_one(self, message: Message, partitioning: Where = None) -> list[SentView]:
        """As `send`, of one."""

    def send_to(
        self, stream: Name, topic: Name, messages: Sequence[Message], partitioning: Where = None
    ) -> list[SentView]:
        """As `send`, to another topic, which has to be there."""

    def flush(self) -> None:
        """Wait until everything is stored that was sent before. Raises IncompleteSend for what could not be."""

    def close(self) -> None:
        """`flush`, and end the workers. The client stays."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SyncClient(SyncMessages, SyncUsers, Protocol):
    """See the head of this module. Made by `connect`."""

    @property
    def user_id(self) -> int:
        """Of who is logged in."""

    @property
    def is_connected(self) -> bool:
        """Whether requests can go out now."""

    @property
    def reconnects(self) -> int:
        """How often the connection was restored."""

    def execute(self, command: Command) -> Any:
        """Any command of `commands`, and its view; None for an empty answer. Raises IggyError, TransportError."""

    def request(self, code: Code, *pieces: bytes | bytearray) -> bytes:
        """A command as its bytes, and the bytes of its answer."""

    def log_in(self, username: str, password: str) -> None:
        """As that user from now on, also after a lost connection. Raises IggyError when the server refuses; the connection
        is gone then."""

    def log_in_with_token(self, token: str) -> None:
        """As `log_in`, by a personal access token."""

    def log_out(self) -> None:
        """Without a user from now on: nothing but a log-in is allowed, and a lost connection is not restored."""

    def ping(self) -> None:
        """Returns when the server has answered."""

    def stats(self) -> StatsView:
        """Numbers about the server's process and what it stores."""

    def me(self) -> ClientView:
        """This client in the server's list."""

    def clients(self) -> list[ClientView]:
        """All that are connected."""

    def cluster(self) -> ClusterView:
        """Which nodes there are."""

    def describe_options(self, scope: Scope = Scope.TOPIC) -> list[OptionView]:
        """Which options there are when something is made."""

    def snapshot(self, compression: int = 2, types: Sequence[int] = (100,)) -> bytes:
        """A diagnostic archive of the server: `compression` 2 is deflate, type 100 all parts."""

    def consumer(
        self,
        stream: Name,
        topic: Name,
        *,
        group: str = "",
        name: Name = 0,
        partition: int = 0,
        options: ConsumerOptions | None = None,
    ) -> SyncTopicConsumer:
        """What iterates over a topic without end: as a member of `group`, which is made and joined at first use, or as the
        single consumer `name` of one `partition`."""

    def producer(self, stream: Name, topic: Name, options: ProducerOptions | None = None) -> SyncProducer:
        """What sends to a topic, which is made at first use, in batches, and again when there is no answer."""

    def close(self) -> None:
        """Close the connection; requests in flight fail."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
