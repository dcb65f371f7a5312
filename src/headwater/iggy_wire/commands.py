"""The commands of the protocol, one class each, the same in every era (eras.py names them by letters).

`command_codec` has the binary layout of each, era by era; a field that an era does not have keeps its default. `Code`
has upstream's numbers, which never changed.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.message_codec import Message as Message

NO_PARTITION = 0xFFFFFFFF  # in the answer to a poll: the member of the group has to sync first


class Code(IntEnum):
    """The number of a command."""

    KILL = 0
    PING = 1
    GET_STATS = 10
    GET_SNAPSHOT = 11
    GET_CLUSTER_METADATA = 12
    DESCRIBE_OPTIONS = 13
    BIND_SESSION = 15
    UPDATE_RESOURCE = 16
    GET_METADATA_CHANGES = 17
    GET_ME = 20
    GET_CLIENT = 21
    GET_CLIENTS = 22
    GET_USER = 31
    GET_USERS = 32
    CREATE_USER = 33
    DELETE_USER = 34
    UPDATE_USER = 35
    UPDATE_PERMISSIONS = 36
    CHANGE_PASSWORD = 37
    LOGIN_USER = 38
    LOGOUT_USER = 39
    LOGIN_REGISTER = 40
    GET_TOKENS = 41
    CREATE_TOKEN = 42
    DELETE_TOKEN = 43
    LOGIN_WITH_TOKEN = 44
    LOGIN_REGISTER_WITH_TOKEN = 45
    POLL_MESSAGES = 100
    SEND_MESSAGES = 101
    FLUSH_UNSAVED_BUFFER = 102
    GET_PARTITION_ROUTE = 105
    POLL_DEFERRED = 106
    WAIT_FOR_MESSAGES = 107
    CANCEL_DEFERRED = 108
    FETCH_MESSAGES = 109
    GET_OFFSET = 120
    STORE_OFFSET = 121
    DELETE_OFFSET = 122
    GET_STREAM = 200
    GET_STREAMS = 201
    CREATE_STREAM = 202
    DELETE_STREAM = 203
    UPDATE_STREAM = 204
    PURGE_STREAM = 205
    GET_TOPIC = 300
    GET_TOPICS = 301
    CREATE_TOPIC = 302
    DELETE_TOPIC = 303
    UPDATE_TOPIC = 304
    PURGE_TOPIC = 305
    CREATE_PARTITIONS = 402
    DELETE_PARTITIONS = 403
    DELETE_SEGMENTS = 503
    GET_GROUP = 600
    GET_GROUPS = 601
    CREATE_GROUP = 602
    DELETE_GROUP = 603
    JOIN_GROUP = 604
    LEAVE_GROUP = 605
    SYNC_GROUP = 606


@dataclass(frozen=True, slots=True)
class Command:
    """A request."""


class Kill(Command):
    """The seed era's command to stop a server; refused."""


class Ping(Command):
    """Check the connection."""


class GetStats(Command):
    """Statistics about the process and its store."""


@dataclass(frozen=True, slots=True)
class GetSnapshot(Command):
    """A diagnostic archive: `compression` 1 stored, 2 deflated, 3 bzip2, 4 zstd, 5 lzma, 6 xz; `types` are the numbers of
    its parts, 100 for all."""

    compression: int
    types: list[int]


class GetClusterMetadata(Command):
    """The nodes of the cluster: one."""


@dataclass(frozen=True, slots=True)
class DescribeOptions(Command):
    """The options of `create_topic` (scope 1), `create_stream` (2) or `create_user` (3)."""

    scope: int


@dataclass(frozen=True, slots=True)
class BindSession(Command):
    """Continue the session of another connection, requested by clients of era W after a reconnect; refused, so that they log
    in instead. `body`: the login's beginning, the session, and its secret."""

    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class UpdateResource(Command):
    """Era W's general update. `target`: scope 1 a topic (stream and topic), 2 a stream, 3 a user. `options` is a
    block of new values, `reset` names the options that get their defaults."""

    target: tuple[int, tuple[Identifier, ...]]
    reset: list[str]
    options: bytes


@dataclass(frozen=True, slots=True)
class GetMetadataChanges(Command):
    """The log of changes of the metadata; refused."""

    body: bytes = b""


class GetMe(Command):
    """The client's own entry in the list of clients."""


@dataclass(frozen=True, slots=True)
class GetClient(Command):
    client_id: int


class GetClients(Command):
    """All connected clients."""


@dataclass(frozen=True, slots=True)
class Login(Command):
    """By name and password. `version` is the SDK's, empty if the era sends none; `protocol` exists from V on, `secret`
    from W on: 32 bytes with which a client could continue a session on another connection."""

    username: str
    password: str = field(repr=False)
    version: str = ""
    context: str = ""
    protocol: int = 0
    sdk: str = ""
    secret: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class LoginWithToken(Command):
    """Log in by a personal access token."""

    token: str = field(repr=False)
    version: str = ""
    context: str = ""
    protocol: int = 0
    sdk: str = ""
    secret: bytes = field(default=b"", repr=False)


class Logout(Command):
    """Log out; the connection stays open."""


@dataclass(frozen=True, slots=True)
class TopicPermissions:
    manage_topic: bool = False
    read_topic: bool = False
    poll_messages: bool = False
    send_messages: bool = False


@dataclass(frozen=True, slots=True)
class StreamPermissions:
    manage_stream: bool = False
    read_stream: bool = False
    manage_topics: bool = False
    read_topics: bool = False
    poll_messages: bool = False
    send_messages: bool = False
    topics: dict[int, TopicPermissions] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Permissions:
    """A user's permissions: global ones, and those for single streams and topics. Without any, nothing is allowed."""

    manage_servers: bool = False
    read_servers: bool = False
    manage_users: bool = False
    read_users: bool = False
    manage_streams: bool = False
    read_streams: bool = False
    manage_topics: bool = False
    read_topics: bool = False
    poll_messages: bool = False
    send_messages: bool = False
    streams: dict[int, StreamPermissions] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GetUser(Command):
    user: Identifier


class GetUsers(Command):
    """All users, without their permissions."""


@dataclass(frozen=True, slots=True)
class CreateUser(Command):
    """`status` 1 is active, 2 inactive."""

    username: str
    password: str = field(repr=False)
    status: int = 1
    permissions: Permissions | None = None
    options: bytes = b""


@dataclass(frozen=True, slots=True)
class DeleteUser(Command):
    user: Identifier


@dataclass(frozen=True, slots=True)
class UpdateUser(Command):
    """A field that is None stays as it is."""

    user: Identifier
    username: str | None = None
    status: int | None = None
    options: bytes = b""


@dataclass(frozen=True, slots=True)
class UpdatePermissions(Command):
    user: Identifier
    permissions: Permissions | None = None


@dataclass(frozen=True, slots=True)
class ChangePassword(Command):
    user: Identifier
    current: str = field(repr=False)
    new: str = field(repr=False)


class GetTokens(Command):
    """The caller's own tokens: names and expiry."""


@dataclass(frozen=True, slots=True)
class CreateToken(Command):
    """`expiry` in microseconds from now; 0 or the largest u64: never."""

    name: str
    expiry: int = 0


@dataclass(frozen=True, slots=True)
class DeleteToken(Command):
    name: str


@dataclass(frozen=True, slots=True)
class GetStream(Command):
    stream: Identifier


class GetStreams(Command):
    """All streams that the user may see."""


@dataclass(frozen=True, slots=True)
class CreateStream(Command):
    """`id` 0: the server picks one."""

    name: str
    id: int = 0
    options: bytes = b""


@dataclass(frozen=True, slots=True)
class UpdateStream(Command):
    stream: Identifier
    name: str
    options: bytes = b""


@dataclass(frozen=True, slots=True)
class DeleteStream(Command):
    stream: Identifier


@dataclass(frozen=True, slots=True)
class PurgeStream(Command):
    stream: Identifier


@dataclass(frozen=True, slots=True)
class GetTopic(Command):
    stream: Identifier
    topic: Identifier


@dataclass(frozen=True, slots=True)
class GetTopics(Command):
    stream: Identifier


@dataclass(frozen=True, slots=True)
class CreateTopic(Command):
    """`message_expiry` in µs, 0 for the default, the largest number of its width for never (era A: in seconds, and 0 for the
    largest); `max_size` in bytes, likewise. `compression` 1 is none. From era V on all of these are in `options`."""

    stream: Identifier
    name: str
    partitions: int
    id: int = 0
    compression: int = 1
    message_expiry: int = 0
    max_size: int = 0
    replication: int = 1
    options: bytes = b""


@dataclass(frozen=True, slots=True)
class UpdateTopic(Command):
    """As `CreateTopic`. `reset`: the options that get their defaults."""

    stream: Identifier
    topic: Identifier
    name: str
    compression: int = 1
    message_expiry: int = 0
    max_size: int = 0
    replication: int = 1
    options: bytes = b""
    reset: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeleteTopic(Command):
    stream: Identifier
    topic: Identifier


@dataclass(frozen=True, slots=True)
class PurgeTopic(Command):
    stream: Identifier
    topic: Identifier


@dataclass(frozen=True, slots=True)
class CreatePartitions(Command):
    stream: Identifier
    topic: Identifier
    count: int


@dataclass(frozen=True, slots=True)
class DeletePartitions(Command):
    """Delete the last `count` partitions of the topic."""

    stream: Identifier
    topic: Identifier
    count: int


@dataclass(frozen=True, slots=True)
class DeleteSegments(Command):
    """Delete the oldest `count` closed segments of a partition."""

    stream: Identifier
    topic: Identifier
    partition: int
    count: int


@dataclass(frozen=True, slots=True)
class GetGroup(Command):
    stream: Identifier
    topic: Identifier
    group: Identifier


@dataclass(frozen=True, slots=True)
class GetGroups(Command):
    stream: Identifier
    topic: Identifier


@dataclass(frozen=True, slots=True)
class CreateGroup(Command):
    """`id` 0: the server picks one. The seed's groups have no name."""

    stream: Identifier
    topic: Identifier
    name: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class DeleteGroup(Command):
    stream: Identifier
    topic: Identifier
    group: Identifier


@dataclass(frozen=True, slots=True)
class JoinGroup(Command):
    stream: Identifier
    topic: Identifier
    group: Identifier


@dataclass(frozen=True, slots=True)
class LeaveGroup(Command):
    stream: Identifier
    topic: Identifier
    group: Identifier


@dataclass(frozen=True, slots=True)
class SyncGroup(Command):
    """The caller's partitions (from V on, where the client names the partition of each poll)."""

    stream: Identifier
    topic: Identifier
    group: Identifier


@dataclass(frozen=True, slots=True)
class PollMessages(Command):
    """`partition` None: the server picks one (groups), or the topic's first."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition: int | None
    strategy: PollingStrategy
    count: int
    auto_commit: bool = False


@dataclass(frozen=True, slots=True)
class GetPartitionRoute(Command):
    """The node for requests about a partition, and its incarnation, which later requests include."""

    stream: Identifier
    topic: Identifier
    partition: int


@dataclass(frozen=True, slots=True)
class PollDeferred(Command):
    """A poll that waits up to `wait_us` for `min_count` messages, and answers with at most `max_bytes`. `timeout_us`, here
    and below: after which the client gives up; the server does not use it."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition: int | None
    strategy: PollingStrategy
    count: int
    auto_commit: bool
    wait_us: int
    min_count: int
    max_bytes: int
    timeout_us: int


class WaitTarget(NamedTuple):
    """A partition and the position from which a message is awaited."""

    partition: int
    strategy: PollingStrategy


@dataclass(frozen=True, slots=True)
class WaitForMessages(Command):
    """Wait up to `wait_us` until one of the partitions has a message (0.12.0 only)."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    wait_us: int
    timeout_us: int
    targets: list[WaitTarget]


class CancelDeferred(Command):
    """End the wait of an earlier request, which has the same request number; never answered."""


class FetchTarget(NamedTuple):
    """A partition to read from, at most `max_bytes` of it. `incarnation` 0: any. `owner`: the node from which the client
    expects it, not checked where there is one node."""

    partition: int
    strategy: PollingStrategy
    max_bytes: int
    incarnation: int
    owner: int


@dataclass(frozen=True, slots=True)
class FetchMessages(Command):
    """Wait until all targets together have `min_count` messages, up to `wait_us`, then read them: `count` messages and
    `max_bytes` at most, of all targets together (since 0.12.1)."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    wait_us: int
    timeout_us: int
    min_count: int
    count: int
    max_bytes: int
    auto_commit: bool
    targets: list[FetchTarget]


@dataclass(frozen=True, slots=True)
class GetOffset(Command):
    """`incarnation`, here and below: that of the partition in the header of a request of era W."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition: int | None
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class StoreOffset(Command):
    """`ack` 0: do not wait until it is durable."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition: int | None
    offset: int
    ack: int = 1
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class DeleteOffset(Command):
    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition: int | None
    ack: int = 1
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class FlushUnsavedBuffer(Command):
    """Write what a partition holds in memory; `fsync`: and make it durable."""

    stream: Identifier
    topic: Identifier
    partition: int
    fsync: bool = False


@dataclass(frozen=True, slots=True)
class SendMessages(Command):
    """The address of a send; the server creates no objects for the messages."""

    stream: Identifier
    topic: Identifier
    partitioning: Partitioning
    count: int = 0
