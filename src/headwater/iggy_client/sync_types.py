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
        """Create a stream with this name, without topics."""

    def stream(self, stream: Name) -> StreamView | None:
        """A stream, with its topics in `details`; None when it does not exist."""

    def streams(self) -> list[StreamView]:
        """All streams that the user may see."""

    def update_stream(self, stream: Name, name: str, options: Mapping[str, str] | None = None) -> None:
        """Change the `name` and the `options` (by name) of a stream."""

    def delete_stream(self, stream: Name) -> None:
        """Delete a stream with its topics and messages."""

    def purge_stream(self, stream: Name) -> None:
        """Delete all messages of all topics of a stream; offsets start again at 0."""

    def create_topic(
        self, stream: Name, name: str, partitions: int = 1, options: TopicOptions | bytes = b""
    ) -> TopicView:
        """Create a topic with `partitions` partitions; `options` may also be a block in wire form."""

    def topic(self, stream: Name, topic: Name) -> TopicView | None:
        """A topic, with its partitions in `parts`; None when it does not exist."""

    def topics(self, stream: Name) -> list[TopicView]:
        """All topics of a stream."""

    def update_topic(self, stream: Name, topic: Name, name: str, options: TopicOptions | None = None) -> None:
        """Change the `name` of a topic and the settings in `options`: compression, expiry, largest size."""

    def delete_topic(self, stream: Name, topic: Name) -> None:
        """Delete a topic with its messages."""

    def purge_topic(self, stream: Name, topic: Name) -> None:
        """Delete all messages of a topic; offsets start again at 0."""

    def create_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """Add `count` partitions to a topic."""

    def delete_partitions(self, stream: Name, topic: Name, count: int) -> None:
        """Delete the last `count` partitions of a topic, with their messages."""

    def delete_segments(self, stream: Name, topic: Name, partition: int, count: int) -> None:
        """Delete the oldest `count` closed segments of a partition."""


class SyncGroups(Protocol):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    def create_group(self, stream: Name, topic: Name, name: str) -> GroupView:
        """Create a consumer group, without members."""

    def group(self, stream: Name, topic: Name, group: Name) -> GroupView | None:
        """A group, with its members in `details`; None when it does not exist."""

    def groups(self, stream: Name, topic: Name) -> list[GroupView]:
        """All groups of a topic."""

    def delete_group(self, stream: Name, topic: Name, group: Name) -> None:
        """Delete a group with its offsets."""

    def join_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """Join the group; returns the partitions that this client reads until the generation changes."""

    def leave_group(self, stream: Name, topic: Name, group: Name) -> None:
        """Leave the group; its other members get this client's partitions."""

    def sync_group(self, stream: Name, topic: Name, group: Name) -> Assignment:
        """The partitions assigned to this client. Raises IggyError where it is no member: servers then answer nothing."""

    def store_offset(
        self, stream: Name, topic: Name, partition: int, offset: int, consumer: Consumer | None = None
    ) -> None:
        """Store `offset` as that of the last consumed message, durably on return."""

    def offset(self, stream: Name, topic: Name, partition: int, consumer: Consumer | None = None) -> OffsetView | None:
        """The stored offset; None when there is none."""

    def delete_offset(self, stream: Name, topic: Name, partition: int, consumer: Consumer | None = None) -> None:
        """Delete the stored offset, so that the consumer starts again."""


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
        """As `poll`, with the other fields of the answer."""


class SyncUsers(Protocol):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    def create_user(
        self,
        username: str,
        password: str,
        status: UserStatus = UserStatus.ACTIVE,
        permissions: Permissions | None = None,
    ) -> UserView:
        """Create a user; without `permissions` it may do nothing."""

    def user(self, user: Name) -> UserView | None:
        """A user with its permissions; None when it does not exist."""

    def users(self) -> list[UserView]:
        """All users, without their permissions."""

    def update_user(
        self,
        user: Name,
        username: str | None = None,
        status: UserStatus | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Change a user; arguments that are None change nothing."""

    def delete_user(self, user: Name) -> None:
        """Delete a user; its connections are closed."""

    def update_permissions(self, user: Name, permissions: Permissions | None) -> None:
        """Replace the user's permissions; None removes all."""

    def change_password(self, user: Name, current: str, new: str) -> None:
        """Change a password; `current` is the present one."""

    def create_token(self, name: str, expiry: timedelta | None = None) -> str:
        """Create a personal access token of this user, which is returned only here. `expiry` None: it never expires."""

    def tokens(self) -> list[TokenView]:
        """The names and expiry times of this user's tokens."""

    def delete_token(self, name: str) -> None:
        """Revoke a token."""


class SyncTopicConsumer(Protocol):
    """See the head of this module. Made by `Client.consumer`; for one task at a time."""

    stream: Name

    topic: Name

    @property
    def in_group(self) -> bool:
        """Whether the consumer is a member of a group."""

    @property
    def name(self) -> str:
        """The name of the group, or of the consumer."""

    @property
    def partitions(self) -> list[int]:
        """The partitions that it reads."""

    @property
    def partition(self) -> int | None:
        """The partition of the last message returned; None before the first."""

    def last_consumed_offset(self, partition: int) -> int | None:
        """The offset of the last consumed message; None when there is none."""

    def last_stored_offset(self, partition: int) -> int | None:
        """The last offset that this consumer stored; None when there is none."""

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """The messages, without end."""

    def consume(self, callback: Callable[[ReceivedMessage], object], until: threading.Event | None = None) -> None:
        """Await `callback` for one message after the other, until the event is set, which is looked at ten times a second;
        then what is due is stored. An exception of the callback ends it, and its message counts as not consumed."""

    def next_batch(self, patience: Timeout | None = None) -> list[ReceivedMessage]:
        """The messages of one poll of one partition; waits for messages, or returns [] after `patience` seconds. A
        message counts as handed out once `hand` was called for it. Raises IggyError when the server refuses,
        TransportError when the session has ended."""

    def hand(self, message: ReceivedMessage, is_last: bool) -> bool:
        """Pass a message to the program, `is_last` of its batch; returns whether to `settle` it first."""

    def finish(self, message: ReceivedMessage, is_last: bool) -> bool:
        """The program is done with it; returns whether to `settle` it."""

    def settle(self, message: ReceivedMessage) -> None:
        """Store the message's offset, and other offsets that are due."""

    def store_offset(self, offset: int, partition: int | None = None) -> None:
        """Store `offset` as consumed, in the partition of the last message if none is given."""

    def delete_offset(self, partition: int | None = None) -> None:
        """Delete the partition's stored offset."""

    def store_pending(self) -> None:
        """Store the offsets that an interval would store."""

    def close(self) -> None:
        """Store the offsets that are due, and leave the group."""


class SyncProducer(Protocol):
    """See the head of this module. Made by `Client.producer`; any task may send."""

    stream: Name

    topic: Name

    def send(self, messages: Sequence[Message], partitioning: Where = None) -> list[SentView]:
        """Send to the topic; returns partition and offset of each batch, or [] in the background. `partitioning`
        overrides the producer's own.

        Raises IncompleteSend; in the background BufferFull when there is no room in time.
        """

    def send_one(self, message: Message, partitioning: Where = None) -> list[SentView]:
        """As `send`, for one message."""

    def send_to(
        self, stream: Name, topic: Name, messages: Sequence[Message], partitioning: Where = None
    ) -> list[SentView]:
        """As `send`, to another topic, which must exist."""

    def flush(self) -> None:
        """Wait until everything sent before is stored. Raises IncompleteSend for failures."""

    def close(self) -> None:
        """Flush, then stop the workers. The client stays open."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SyncClient(SyncMessages, SyncUsers, Protocol):
    """See the head of this module. Made by `connect`."""

    @property
    def user_id(self) -> int:
        """The id of the logged-in user."""

    @property
    def is_connected(self) -> bool:
        """Whether the client is connected and logged in."""

    @property
    def reconnects(self) -> int:
        """The number of times that the connection was restored."""

    def execute(self, command: Command) -> Any:
        """Execute any command of `commands`; returns its view, None for an empty answer. Raises IggyError,
        TransportError."""

    def request(self, code: Code, *pieces: bytes | bytearray) -> bytes:
        """Send a command as bytes; returns the bytes of its answer."""

    def log_in(self, username: str, password: str) -> None:
        """Log in as this user, also after a reconnect. Raises IggyError when the server refuses, and closes the
        connection."""

    def log_in_with_token(self, token: str) -> None:
        """As `log_in`, with a personal access token."""

    def log_out(self) -> None:
        """Log out: only a log-in is allowed afterwards, and a lost connection is not restored."""

    def ping(self) -> None:
        """Returns when the server has answered."""

    def stats(self) -> StatsView:
        """Statistics about the server's process and store."""

    def me(self) -> ClientView:
        """This client in the server's list."""

    def clients(self) -> list[ClientView]:
        """All connected clients."""

    def cluster(self) -> ClusterView:
        """The nodes of the cluster."""

    def describe_options(self, scope: Scope = Scope.TOPIC) -> list[OptionView]:
        """The options for creating streams, topics and users."""

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
        """A consumer that iterates over a topic without end: as a member of `group`, which is created and joined at
        first use, or as the single consumer `name` of one `partition`."""

    def producer(self, stream: Name, topic: Name, options: ProducerOptions | None = None) -> SyncProducer:
        """A producer that sends to a topic, created at first use, in batches, and repeats sends without an answer."""

    def close(self) -> None:
        """Close the connection; requests in flight fail."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
