"""Replies in bytes, era by era: streams, topics, groups, users and the server itself.

The views are plain values that the service makes; `REPLIES[code]` lists (first era, field) pairs as `command_codec`
does. A command that is not in the table has an empty answer. `None` is written as an empty body too, as the answer to a
`get_…` of something missing.
"""

import struct
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from headwater.iggy_wire.command_codec import MAYBE_PERMISSIONS
from headwater.iggy_wire.commands import Code, Permissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.layout import (
    BYTES32,
    F32,
    NAME8,
    TEXT8,
    TEXT32,
    U8,
    U16,
    U32,
    U64,
    Field,
    Many,
    Padding,
    Reader,
    Record,
    Rest,
    Sized,
)


class Context(NamedTuple):
    """The context in W's requests about a partition and their answers: the partition's incarnation, the generation of
    the group's assignment (0 without a group), and the revision of the metadata."""

    incarnation: int = 0
    owner: int = 0
    metadata: int = 0


NO_CONTEXT: Final = Context()


@dataclass(frozen=True, slots=True)
class PartitionView:
    """`members` and `in_sync`: the nodes that have it, a byte each."""

    id: int
    created: int
    segments: int
    current_offset: int
    size: int
    messages: int
    context: Context = NO_CONTEXT
    members: bytes = b"\0"
    in_sync: bytes = b"\0"


@dataclass(frozen=True, slots=True)
class TopicView:
    """`parts` is set only if a single topic was requested."""

    id: int
    created: int
    partitions: int
    name: str
    message_expiry: int = 0
    compression: int = 1
    max_size: int = 0
    replication: int = 1
    size: int = 0
    messages: int = 0
    options: bytes = b""
    derived: bytes = b""
    parts: list[PartitionView] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StreamView:
    """`details` is set only if a single stream was requested."""

    id: int
    created: int
    topics: int
    name: str
    size: int = 0
    messages: int = 0
    options: bytes = b""
    derived: bytes = b""
    details: list[TopicView] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MemberView:
    id: int
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class GroupView:
    id: int
    partitions: int
    members: int
    name: str = ""
    details: list[MemberView] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Membership:
    stream: int
    topic: int
    group: int


@dataclass(frozen=True, slots=True)
class ClientView:
    """`user` is the largest u32 before login; `transport` 1 TCP, 2 QUIC, 3 HTTP."""

    id: int
    user: int
    transport: int
    address: str
    groups: int = 0
    details: list[Membership] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UserView:
    id: int
    created: int
    status: int
    username: str
    options: bytes = b""
    permissions: Permissions | None = None
    derived: bytes = b""


@dataclass(frozen=True, slots=True)
class TokenView:
    name: str
    expiry: int


@dataclass(frozen=True, slots=True)
class RawToken:
    token: str


@dataclass(frozen=True, slots=True)
class LoginView:
    """`login`: the number in V's later requests."""

    user_id: int
    login: int = 0
    protocol: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class OffsetView:
    partition: int
    current_offset: int
    stored_offset: int


@dataclass(frozen=True, slots=True)
class SeedOffset:
    consumer_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions of a group member, until the generation changes."""

    generation: int
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class SentView:
    """The partition and base offset of a stored batch."""

    stream: int
    topic: int
    partition: int
    base_offset: int


class RouteView(NamedTuple):
    """The node for requests about a partition: `primary`, the first of this `view`."""

    incarnation: int
    metadata: int
    partitions: int
    view: int = 0
    primary: int = 0


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    ip: str
    tcp: int
    quic: int = 0
    http: int = 0
    websocket: int = 0
    role: int = 0
    status: int = 0
    replica: int = 0


@dataclass(frozen=True, slots=True)
class ClusterView:
    name: str
    nodes: list[NodeView]


@dataclass(frozen=True, slots=True)
class OptionView:
    """`default` in the encoding of `kind`; `flags`: a sum of OPTION_FLAGS."""

    key: str
    kind: int
    default: bytes
    description: str
    flags: int = 0


OPTION_FLAGS: Final = {"updatable": 1, "resettable": 2, "secret": 4, "read_only": 8, "critical": 16}
"""By the names of HTTP. Updatable and resettable: an update may set it, or give it back its default."""


@dataclass(frozen=True, slots=True)
class StatsView:
    """Sizes in bytes, `run_time` in microseconds, `start_time` in microseconds since 1970."""

    process_id: int = 0
    cpu_usage: float = 0.0
    total_cpu_usage: float = 0.0
    memory_usage: int = 0
    total_memory: int = 0
    available_memory: int = 0
    run_time: int = 0
    start_time: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    messages_size: int = 0
    streams: int = 0
    topics: int = 0
    partitions: int = 0
    segments: int = 0
    messages: int = 0
    clients: int = 0
    groups: int = 0
    hostname: str = ""
    os_name: str = ""
    os_version: str = ""
    kernel_version: str = ""
    server_version: str = ""
    packed_version: int = 0
    threads: int = 0
    free_disk: int = 0
    total_disk: int = 0
    open_files: int = 0
    most_open_files: int = 0


_COUNTERS: Any = {"id": U32, "created": U64, "segments": U32, "current_offset": U64, "size": U64, "messages": U64}
PARTITION = Record(PartitionView, **_COUNTERS)
SEED_PARTITION = Record(
    lambda **fields: PartitionView(created=0, **fields),
    id=U32,
    segments=U32,
    current_offset=U64,
    size=U64,
    messages=U64,
)

CONTEXT = Record(Context, incarnation=U64, owner=U64, metadata=U64)
_NODES = Sized(U8, text=False)
PARTITIONS: Final = {
    Era.S: SEED_PARTITION,
    Era.A: PARTITION,
    Era.W: Record(PartitionView, **_COUNTERS, context=CONTEXT),
    Era.X: Record(PartitionView, **_COUNTERS, context=CONTEXT, members=_NODES, in_sync=_NODES),
}

_TOPIC_HEAD: Any = {"id": U32, "created": U64, "partitions": U32}
_COUNTS: Any = {"size": U64, "messages": U64, "name": NAME8}
_SETTINGS: Any = {"compression": U8, "max_size": U64, "replication": U8}
TOPIC: Final = {
    Era.S: Record(
        lambda **fields: TopicView(created=0, **fields), id=U32, partitions=U32, size=U64, messages=U64, name=TEXT32
    ),
    Era.A: Record(TopicView, **_TOPIC_HEAD, message_expiry=U32, **_COUNTS),
    Era.A2: Record(TopicView, **_TOPIC_HEAD, message_expiry=U32, **_SETTINGS, **_COUNTS),
    Era.B: Record(TopicView, **_TOPIC_HEAD, message_expiry=U64, **_SETTINGS, **_COUNTS),
    Era.V: Record(
        TopicView,
        **_TOPIC_HEAD,
        message_expiry=U64,
        compression=U8,
        max_size=U64,
        **_COUNTS,
        options=BYTES32,
        derived=BYTES32,
    ),
    Era.W: Record(TopicView, **_TOPIC_HEAD, **_COUNTS, options=BYTES32, derived=BYTES32),
}
STREAM: Final = {
    Era.S: Record(
        lambda **fields: StreamView(created=0, **fields), id=U32, topics=U32, size=U64, messages=U64, name=TEXT32
    ),
    Era.A: Record(StreamView, id=U32, created=U64, topics=U32, **_COUNTS),
    Era.V: Record(StreamView, id=U32, created=U64, topics=U32, **_COUNTS, options=BYTES32),
    Era.W: Record(StreamView, id=U32, created=U64, topics=U32, **_COUNTS, options=BYTES32, derived=BYTES32),
}


class _With:
    """A view, and behind it the entries of one of its lists, to the end."""

    def __init__(self, head: Record[Any], name: str, entry: Field[Any]) -> None:
        self._head = head
        self._name = name
        self._entries = Many(entry, count=None)

    def read(self, reader: Reader) -> Any:
        head = self._head.read(reader)
        object.__setattr__(head, self._name, self._entries.read(reader))
        return head

    def write(self, value: Any) -> bytes:
        return self._head.write(value) + self._entries.write(getattr(value, self._name))


MEMBER = Record(MemberView, id=U32, partitions=Many(U32))
GROUP = Record(GroupView, id=U32, partitions=U32, members=U32, name=NAME8)
SEED_GROUP = Record(GroupView, id=U32, partitions=U32, members=U32)
CLIENT = Record(ClientView, id=U32, user=U32, transport=U8, address=TEXT32, groups=U32)
MEMBERSHIP = Record(Membership, stream=U32, topic=U32, group=U32)
_USER: Any = {"id": U32, "created": U64, "status": U8, "username": NAME8}
_NODE: Any = {"name": TEXT32, "ip": TEXT32, "tcp": U16, "quic": U16, "http": U16, "websocket": U16, "role": U8}
NODE = Record(NodeView, **_NODE, status=U8)
NUMBERED_NODE = Record(NodeView, replica=U8, **_NODE, status=U8)

_STATS: Any = {
    "process_id": U32,
    "cpu_usage": F32,
    "total_cpu_usage": F32,
    "memory_usage": U64,
    "total_memory": U64,
    "available_memory": U64,
    "run_time": U64,
    "start_time": U64,
    "read_bytes": U64,
    "written_bytes": U64,
    "messages_size": U64,
    "streams": U32,
    "topics": U32,
    "partitions": U32,
    "segments": U32,
    "messages": U64,
    "clients": U32,
    "groups": U32,
    "hostname": TEXT32,
    "os_name": TEXT32,
    "os_version": TEXT32,
    "kernel_version": TEXT32,
}
_NO_CACHE = Padding(bytes(4))
_VERSION: Any = {"server_version": TEXT32, "packed_version": U32, "_cache": _NO_CACHE}
_MACHINE: Any = {"threads": U32, "free_disk": U64, "total_disk": U64}
STATS = {
    Era.S: Record(StatsView, **_STATS),
    Era.C1: Record(StatsView, **_STATS, **_VERSION),
    Era.V: Record(StatsView, **_STATS, **_VERSION, **_MACHINE),
    Era.W: Record(StatsView, **_STATS, **_VERSION, **_MACHINE, open_files=U64, most_open_files=U64),
}


class _Granted:
    """The permissions in a user's details: four zero bytes where there are none."""

    def read(self, reader: Reader) -> Permissions | None:
        if reader.left >= _NONE_SIZE and not any(reader.data[reader.at : reader.at + _NONE_SIZE]):
            reader.take(_NONE_SIZE)
            return None
        granted: Permissions | None = MAYBE_PERMISSIONS.read(reader)
        return granted

    def write(self, value: Permissions | None) -> bytes:
        return bytes(_NONE_SIZE) if value is None else MAYBE_PERMISSIONS.write(value)


_NONE_SIZE: Final = 4
LOGIN_VIEW = Record(LoginView, user_id=U32)
SENT = Many(Record(SentView, stream=U32, topic=U32, partition=U32, base_offset=U64))
# SENT of one batch, as every send has it: the number 1, and what its view has.
ONE_SENT: Final = struct.Struct("<IIIIQ")


def _last(fields: dict[Era, Any], era: Era) -> Any:
    return fields[max(first for first in fields if first <= era)]


_TOPIC_DETAILS = {
    era: _With(_last(TOPIC, era), "parts", _last(PARTITIONS, era)) for era in sorted({*TOPIC, *PARTITIONS})
}
_STREAM_DETAILS = {era: _With(_last(STREAM, era), "details", topic) for era, topic in TOPIC.items()}
_OPTION: Any = {"default": BYTES32, "description": TEXT32}


def _list(fields: dict[Era, Any]) -> tuple[tuple[Era, Field[Any]], ...]:
    return tuple((era, Many(entry, count=None)) for era, entry in fields.items())


def _from_a(fields: dict[Era, Any]) -> tuple[tuple[Era, Field[Any]], ...]:
    """The reply to a create command: a description, except for clients of the seed, which expect none."""
    return tuple((era, entry) for era, entry in fields.items() if era is not Era.S)


REPLIES: Final[dict[Code, tuple[tuple[Era, Field[Any]], ...]]] = {
    Code.GET_STATS: tuple(STATS.items()),
    Code.GET_SNAPSHOT: ((Era.B, Rest()),),
    Code.GET_CLUSTER_METADATA: (
        (Era.C2, Record(ClusterView, name=TEXT32, nodes=Many(NODE))),
        (Era.W, Record(ClusterView, name=TEXT32, nodes=Many(NUMBERED_NODE))),
    ),
    Code.DESCRIBE_OPTIONS: (
        (Era.V, Many(Record(OptionView, key=TEXT8, kind=U8, **_OPTION))),
        (Era.W, Many(Record(OptionView, key=TEXT8, kind=U8, flags=U8, **_OPTION))),
    ),
    Code.GET_PARTITION_ROUTE: (
        (Era.W, Record(RouteView, incarnation=U64, metadata=U64, view=U32, partitions=U32, primary=U8)),
    ),
    Code.WAIT_FOR_MESSAGES: ((Era.W, Many(U32)),),
    Code.GET_ME: ((Era.S, _With(CLIENT, "details", MEMBERSHIP)),),
    Code.GET_CLIENT: ((Era.S, _With(CLIENT, "details", MEMBERSHIP)),),
    Code.GET_CLIENTS: ((Era.S, Many(CLIENT, count=None)),),
    Code.GET_USER: (
        (Era.A, Record(UserView, **_USER, permissions=_Granted())),
        (Era.V, Record(UserView, **_USER, options=BYTES32, permissions=_Granted())),
        (Era.W, Record(UserView, **_USER, options=BYTES32, derived=BYTES32, permissions=_Granted())),
    ),
    Code.GET_USERS: (
        (Era.A, Many(Record(UserView, **_USER), count=None)),
        (Era.V, Many(Record(UserView, **_USER, options=BYTES32), count=None)),
        (Era.W, Many(Record(UserView, **_USER, options=BYTES32, derived=BYTES32), count=None)),
    ),
    Code.LOGIN_USER: ((Era.A, LOGIN_VIEW),),
    Code.LOGIN_WITH_TOKEN: ((Era.A, LOGIN_VIEW),),
    Code.LOGIN_REGISTER: ((Era.V, Record(LoginView, user_id=U32, login=U64, protocol=U32, version=NAME8)),),
    Code.GET_TOKENS: ((Era.A, Many(Record(TokenView, name=NAME8, expiry=U64), count=None)),),
    Code.CREATE_TOKEN: ((Era.A, Record(RawToken, token=NAME8)),),
    Code.GET_STREAM: tuple(_STREAM_DETAILS.items()),
    Code.GET_STREAMS: _list(STREAM),
    Code.CREATE_STREAM: _from_a(STREAM),
    Code.GET_TOPIC: tuple(_TOPIC_DETAILS.items()),
    Code.GET_TOPICS: (*_list(TOPIC)[:-2], *((era, Many(TOPIC[era])) for era in (Era.V, Era.W))),
    Code.CREATE_TOPIC: _from_a(_TOPIC_DETAILS),
    Code.GET_GROUP: (
        (Era.S, _With(SEED_GROUP, "details", MEMBER)),
        (Era.A, _With(GROUP, "details", MEMBER)),
    ),
    Code.GET_GROUPS: _list({Era.S: SEED_GROUP, Era.A: GROUP}),
    Code.CREATE_GROUP: ((Era.A, _With(GROUP, "details", MEMBER)),),
    Code.SYNC_GROUP: ((Era.V, Record(Assignment, generation=U64, partitions=Many(U32))),),
    Code.GET_OFFSET: (
        (Era.S, Record(SeedOffset, consumer_id=U32, offset=U64)),
        (Era.A, Record(OffsetView, partition=U32, current_offset=U64, stored_offset=U64)),
    ),
    Code.SEND_MESSAGES: ((Era.V, SENT),),
}
REPLIES[Code.CREATE_USER] = REPLIES[Code.GET_USER]
REPLIES[Code.LOGIN_REGISTER_WITH_TOKEN] = REPLIES[Code.LOGIN_REGISTER]


@cache
def field_of(code: int, era: Era) -> Field[Any] | None:
    """The field of a reply in an era; None for an empty reply."""
    found = [entry for first, entry in REPLIES.get(code, ()) if first <= era]  # type: ignore[call-overload]
    return found[-1] if found else None


def encode(code: int, view: Any, era: Era) -> bytes:
    """The body of a reply."""
    entry = field_of(code, era)
    return b"" if entry is None or view is None else entry.write(view)


def decode(code: int, body: bytes, era: Era) -> Any:
    """The view in a reply; None for an empty body. Raises IggyError."""
    entry = field_of(code, era)
    if entry is None or not body:
        return None
    reader = Reader(body)
    view = entry.read(reader)
    reader.finish()
    return view
