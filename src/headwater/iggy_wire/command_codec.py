"""Requests in bytes: for each command and era its fields in order. A missing entry means that the era does not have the
command.

`LAYOUTS[code]` lists (first era, layout) pairs, oldest first; an era uses the last pair whose first era is not later.
Reading and writing use the same entry. SendMessages is split: its address is here, its messages are in `seed_codec`,
`classic_codec` and `batches`.
"""

from functools import cache
from typing import Any, Final

from headwater.errors import IggyError
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Code, Command, Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.eras import Era, of_protocol
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import (
    CONSUMER,
    IDENTIFIER,
    NUMBER_AS_IDENTIFIER,
    PARTITIONING,
    SEED_CONSUMER,
    STRATEGY,
    Identifier,
)
from headwater.iggy_wire.layout import (
    BOOL,
    NAME8,
    NAME_REST,
    REST,
    TEXT8,
    TEXT32,
    U8,
    U32,
    U64,
    Fixed,
    Inside,
    Many,
    Optional,
    Reader,
    Record,
)


class _Entries:
    """Permissions by id: a flag, then for each id, bools and inner entries, with a flag whether more follow."""

    def __init__(self, make: Any, inner: "_Entries | None" = None) -> None:
        self._make = make
        self._inner = inner
        self._flags = [name for name in make.__dataclass_fields__ if name != "topics"]

    def read(self, reader: Reader) -> dict[int, Any]:
        found: dict[int, Any] = {}
        more = BOOL.read(reader)
        while more:
            key = U32.read(reader)
            flags = {name: BOOL.read(reader) for name in self._flags}
            inner = {} if self._inner is None else {"topics": self._inner.read(reader)}
            found[key] = self._make(**flags, **inner)
            more = BOOL.read(reader)
        return found

    def write(self, value: dict[int, Any]) -> bytes:
        pieces = [BOOL.write(bool(value))]
        for place, (key, entry) in enumerate(value.items(), 1):
            pieces.append(U32.write(key))
            pieces += [BOOL.write(getattr(entry, name)) for name in self._flags]
            if self._inner is not None:
                pieces.append(self._inner.write(entry.topics))
            pieces.append(BOOL.write(place < len(value)))
        return b"".join(pieces)


_GLOBAL_FLAGS: Any = {name: BOOL for name in Permissions.__dataclass_fields__ if name != "streams"}
PERMISSIONS = Record(Permissions, **_GLOBAL_FLAGS, streams=_Entries(StreamPermissions, _Entries(TopicPermissions)))
MAYBE_PERMISSIONS = Optional(Inside(PERMISSIONS))

MAYBE_PARTITION = Optional(U32, padded=True)
STREAM: Any = {"stream": IDENTIFIER}
TOPIC: Any = {**STREAM, "topic": IDENTIFIER}
GROUP: Any = {**TOPIC, "group": IDENTIFIER}
SEED_GROUP: Any = {**TOPIC, "group": NUMBER_AS_IDENTIFIER}
_COMPRESSED: Any = {"compression": U8, "message_expiry": U32, "max_size": U64, "replication": U8}
_SETTINGS: Any = {**_COMPRESSED, "message_expiry": U64}
_SDK: Any = {"protocol": U32, "sdk": NAME8, "version": NAME8}
_OF_SDK: Any = {"version": TEXT32, "context": TEXT32}
_USER: Any = {"username": TEXT8, "password": TEXT8}


class _Target:
    """The target of an update: its scope, then the identifiers of the scope."""

    _COUNTS: Final = {1: 2, 2: 1, 3: 1}

    def read(self, reader: Reader) -> tuple[int, tuple[Identifier, ...]]:
        scope = U8.read(reader)
        if scope not in self._COUNTS:
            raise refusal("invalid_command", f"there is no scope {scope}", scope)
        return scope, tuple(Identifier.read(reader) for _ in range(self._COUNTS[scope]))

    def write(self, value: tuple[int, tuple[Identifier, ...]]) -> bytes:
        scope, parts = value
        return U8.write(scope) + b"".join(part.encode() for part in parts)


TARGET = _Target()
_SECRET: Any = {"secret": Fixed(32)}
_WAIT: Any = {"wait_us": U64, "timeout_us": U64}
_WAIT_TARGET = Record(c.WaitTarget, partition=U32, strategy=STRATEGY)
_FETCH_TARGET = Record(c.FetchTarget, partition=U32, strategy=STRATEGY, max_bytes=U32, incarnation=U64, owner=U64)
_FROM: Any = {"consumer": CONSUMER, **TOPIC}
_LIMITED: Any = {"min_count": U32, "count": U32, "max_bytes": U32, "auto_commit": BOOL}

Versions = tuple[tuple[Era, Record[Any]], ...]


def _since(first: Era, make: Any, /, **fields: Any) -> Versions:
    return ((first, Record(make, **fields)),)


def _reading(make: Any, **last: Any) -> Versions:
    """Commands about the offset of a consumer: by partition number at first, later by a number that may be absent."""
    plain: Any = {**TOPIC, "partition": U32}
    flagged: Any = {**TOPIC, "partition": MAYBE_PARTITION}
    ack: Any = {"ack": U8} if "ack" in make.__dataclass_fields__ else {}
    return (
        (Era.S, Record(make, consumer=SEED_CONSUMER, **plain, **last)),
        (Era.A, Record(make, consumer=CONSUMER, **plain, **last)),
        (Era.C2, Record(make, consumer=CONSUMER, **flagged, **last)),
        (Era.V, Record(make, consumer=CONSUMER, **flagged, **last, **ack)),
    )


LAYOUTS: Final[dict[Code, Versions]] = {
    Code.KILL: _since(Era.S, c.Kill),
    Code.PING: _since(Era.S, c.Ping),
    Code.GET_STATS: _since(Era.S, c.GetStats),
    Code.GET_SNAPSHOT: _since(Era.B, c.GetSnapshot, compression=U8, types=Many(U8, U8)),
    Code.GET_CLUSTER_METADATA: _since(Era.C2, c.GetClusterMetadata),
    Code.DESCRIBE_OPTIONS: _since(Era.V, c.DescribeOptions, scope=U8),
    Code.BIND_SESSION: _since(Era.V, c.BindSession, body=REST),  # sent before the login, so before the era is known
    Code.UPDATE_RESOURCE: _since(Era.W, c.UpdateResource, target=TARGET, reset=Many(NAME8, U8), options=REST),
    Code.GET_METADATA_CHANGES: _since(Era.W, c.GetMetadataChanges, body=REST),
    Code.GET_ME: _since(Era.S, c.GetMe),
    Code.GET_CLIENT: _since(Era.S, c.GetClient, client_id=U32),
    Code.GET_CLIENTS: _since(Era.S, c.GetClients),
    Code.GET_USER: _since(Era.A, c.GetUser, user=IDENTIFIER),
    Code.GET_USERS: _since(Era.A, c.GetUsers),
    Code.CREATE_USER: (
        (Era.A, Record(c.CreateUser, **_USER, status=U8, permissions=MAYBE_PERMISSIONS)),
        (Era.V, Record(c.CreateUser, **_USER, status=U8, permissions=MAYBE_PERMISSIONS, options=REST)),
    ),
    Code.DELETE_USER: _since(Era.A, c.DeleteUser, user=IDENTIFIER),
    Code.UPDATE_USER: (
        (Era.A, Record(c.UpdateUser, user=IDENTIFIER, username=Optional(TEXT8), status=Optional(U8))),
        (Era.V, Record(c.UpdateUser, user=IDENTIFIER, username=Optional(TEXT8), status=Optional(U8), options=REST)),
    ),
    Code.UPDATE_PERMISSIONS: _since(Era.A, c.UpdatePermissions, user=IDENTIFIER, permissions=MAYBE_PERMISSIONS),
    Code.CHANGE_PASSWORD: _since(Era.A, c.ChangePassword, user=IDENTIFIER, current=TEXT8, new=TEXT8),
    Code.LOGIN_USER: (
        (Era.A, Record(c.Login, **_USER)),
        (Era.B, Record(c.Login, **_USER, **_OF_SDK)),
    ),
    Code.LOGOUT_USER: _since(Era.A, c.Logout),
    Code.LOGIN_REGISTER: (
        (Era.V, Record(c.Login, **_SDK, **_USER, context=TEXT32)),
        (Era.W, Record(c.Login, **_SDK, **_SECRET, **_USER, context=TEXT32)),
    ),
    Code.LOGIN_REGISTER_WITH_TOKEN: (
        (Era.V, Record(c.LoginWithToken, **_SDK, token=TEXT8, context=TEXT32)),
        (Era.W, Record(c.LoginWithToken, **_SDK, **_SECRET, token=TEXT8, context=TEXT32)),
    ),
    Code.GET_TOKENS: _since(Era.A, c.GetTokens),
    Code.CREATE_TOKEN: _since(Era.A, c.CreateToken, name=TEXT8, expiry=U64),
    Code.DELETE_TOKEN: _since(Era.A, c.DeleteToken, name=TEXT8),
    Code.LOGIN_WITH_TOKEN: _since(Era.A, c.LoginWithToken, token=TEXT8),
    Code.GET_STREAM: _since(Era.S, c.GetStream, **STREAM),
    Code.GET_STREAMS: _since(Era.S, c.GetStreams),
    Code.CREATE_STREAM: (
        (Era.S, Record(c.CreateStream, id=U32, name=NAME_REST)),
        (Era.A, Record(c.CreateStream, id=U32, name=NAME8)),
        (Era.C2, Record(c.CreateStream, name=NAME8)),
        (Era.V, Record(c.CreateStream, name=NAME8, options=REST)),
    ),
    Code.DELETE_STREAM: _since(Era.S, c.DeleteStream, **STREAM),
    Code.UPDATE_STREAM: (
        (Era.A, Record(c.UpdateStream, **STREAM, name=NAME8)),
        (Era.V, Record(c.UpdateStream, **STREAM, name=NAME8, options=REST)),
    ),
    Code.PURGE_STREAM: _since(Era.A, c.PurgeStream, **STREAM),
    Code.GET_TOPIC: _since(Era.S, c.GetTopic, **TOPIC),
    Code.GET_TOPICS: _since(Era.S, c.GetTopics, **STREAM),
    Code.CREATE_TOPIC: (
        (Era.S, Record(c.CreateTopic, **STREAM, id=U32, partitions=U32, name=NAME_REST)),
        (Era.A, Record(c.CreateTopic, **STREAM, id=U32, partitions=U32, message_expiry=U32, name=NAME8)),
        (Era.A2, Record(c.CreateTopic, **STREAM, id=U32, partitions=U32, **_COMPRESSED, name=NAME8)),
        (Era.B, Record(c.CreateTopic, **STREAM, id=U32, partitions=U32, **_SETTINGS, name=NAME8)),
        (Era.C2, Record(c.CreateTopic, **STREAM, partitions=U32, **_SETTINGS, name=NAME8)),
        (Era.V, Record(c.CreateTopic, **STREAM, partitions=U32, name=NAME8, options=REST)),
    ),
    Code.DELETE_TOPIC: _since(Era.S, c.DeleteTopic, **TOPIC),
    Code.UPDATE_TOPIC: (
        (Era.A, Record(c.UpdateTopic, **TOPIC, message_expiry=U32, name=NAME8)),
        (Era.A2, Record(c.UpdateTopic, **TOPIC, **_COMPRESSED, name=NAME8)),
        (Era.B, Record(c.UpdateTopic, **TOPIC, **_SETTINGS, name=NAME8)),
        (Era.V, Record(c.UpdateTopic, **TOPIC, name=NAME8, options=REST)),
    ),
    Code.PURGE_TOPIC: _since(Era.A, c.PurgeTopic, **TOPIC),
    Code.CREATE_PARTITIONS: _since(Era.S, c.CreatePartitions, **TOPIC, count=U32),
    Code.DELETE_PARTITIONS: _since(Era.S, c.DeletePartitions, **TOPIC, count=U32),
    Code.DELETE_SEGMENTS: _since(Era.B, c.DeleteSegments, **TOPIC, partition=U32, count=U32),
    Code.GET_GROUP: ((Era.S, Record(c.GetGroup, **SEED_GROUP)), (Era.A, Record(c.GetGroup, **GROUP))),
    Code.GET_GROUPS: _since(Era.S, c.GetGroups, **TOPIC),
    Code.CREATE_GROUP: (
        (Era.S, Record(c.CreateGroup, **TOPIC, id=U32)),
        (Era.A, Record(c.CreateGroup, **TOPIC, id=U32, name=NAME8)),
        (Era.C2, Record(c.CreateGroup, **TOPIC, name=NAME8)),
    ),
    Code.DELETE_GROUP: ((Era.S, Record(c.DeleteGroup, **SEED_GROUP)), (Era.A, Record(c.DeleteGroup, **GROUP))),
    Code.JOIN_GROUP: ((Era.S, Record(c.JoinGroup, **SEED_GROUP)), (Era.A, Record(c.JoinGroup, **GROUP))),
    Code.LEAVE_GROUP: ((Era.S, Record(c.LeaveGroup, **SEED_GROUP)), (Era.A, Record(c.LeaveGroup, **GROUP))),
    Code.SYNC_GROUP: _since(Era.V, c.SyncGroup, **GROUP),
    Code.POLL_MESSAGES: _reading(c.PollMessages, strategy=STRATEGY, count=U32, auto_commit=BOOL),
    Code.GET_PARTITION_ROUTE: _since(Era.W, c.GetPartitionRoute, **TOPIC, partition=U32),
    Code.POLL_DEFERRED: _since(
        Era.W,
        c.PollDeferred,
        **_FROM,
        partition=MAYBE_PARTITION,
        strategy=STRATEGY,
        count=U32,
        auto_commit=BOOL,
        wait_us=U64,
        min_count=U32,
        max_bytes=U32,
        timeout_us=U64,
    ),
    Code.WAIT_FOR_MESSAGES: _since(Era.W, c.WaitForMessages, **_FROM, **_WAIT, targets=Many(_WAIT_TARGET)),
    Code.CANCEL_DEFERRED: _since(Era.W, c.CancelDeferred),
    Code.FETCH_MESSAGES: _since(Era.W, c.FetchMessages, **_FROM, **_WAIT, **_LIMITED, targets=Many(_FETCH_TARGET)),
    Code.GET_OFFSET: _reading(c.GetOffset),
    Code.STORE_OFFSET: _reading(c.StoreOffset, offset=U64),
    Code.DELETE_OFFSET: _reading(c.DeleteOffset)[1:],
    Code.FLUSH_UNSAVED_BUFFER: _since(Era.B, c.FlushUnsavedBuffer, **TOPIC, partition=U32, fsync=BOOL),
}

SEND_ADDRESS: Final = Record(c.SendMessages, **TOPIC, partitioning=PARTITIONING)
SEND_ADDRESS_COUNTED: Final = Record(c.SendMessages, **TOPIC, partitioning=PARTITIONING, count=U32)

_CODES: Final = {layout.make: code for code, versions in LAYOUTS.items() for _, layout in versions}


# V marks a command by an operation of its own, or by operation 2 and the code
REGISTER, NON_REPLICATED, LOGOUT, SEND, STORE_OFFSET = 1, 2, 3, 160, 161
OPERATIONS: Final = {
    LOGOUT: Code.LOGOUT_USER,
    128: Code.CREATE_STREAM,
    129: Code.UPDATE_STREAM,
    130: Code.DELETE_STREAM,
    131: Code.PURGE_STREAM,
    132: Code.CREATE_TOPIC,
    133: Code.UPDATE_TOPIC,
    134: Code.DELETE_TOPIC,
    135: Code.PURGE_TOPIC,
    136: Code.CREATE_PARTITIONS,
    137: Code.DELETE_PARTITIONS,
    138: Code.DELETE_SEGMENTS,
    139: Code.CREATE_GROUP,
    140: Code.DELETE_GROUP,
    141: Code.CREATE_USER,
    142: Code.UPDATE_USER,
    143: Code.DELETE_USER,
    144: Code.CHANGE_PASSWORD,
    145: Code.UPDATE_PERMISSIONS,
    146: Code.CREATE_TOKEN,
    147: Code.DELETE_TOKEN,
    148: Code.JOIN_GROUP,
    149: Code.LEAVE_GROUP,
    150: Code.UPDATE_RESOURCE,
    SEND: Code.SEND_MESSAGES,
    STORE_OFFSET: Code.STORE_OFFSET,
    162: Code.DELETE_OFFSET,
}
OPERATION_OF: Final = {code: operation for operation, code in OPERATIONS.items()} | {
    Code.LOGIN_REGISTER: REGISTER,
    Code.LOGIN_REGISTER_WITH_TOKEN: REGISTER,
}


@cache
def layout_of(code: int, era: Era) -> Record[Any]:
    """The layout of a command. Raises IggyError (invalid_command) if the era does not have it."""
    found = [layout for first, layout in LAYOUTS.get(code, ()) if first <= era]  # type: ignore[call-overload]
    if not found:
        raise refusal("invalid_command", f"command {code} is not one of era {era.name}", code)
    layout: Record[Any] = found[-1]
    return layout


def decode(code: int, body: bytes, era: Era) -> Command:
    """The command in a request. Bytes after it are ignored from C2 on, as in those servers, because Node's client sends
    some. Up to C1 they are refused, because the length distinguishes eras. Raises IggyError."""
    layout = layout_of(code, era)
    command: Command = layout.read(Reader(body)) if era >= Era.C2 else layout.decode(body)
    return command


def encode(command: Command, era: Era) -> tuple[Code, bytes]:
    """(code, body) of a command. Raises IggyError when the era cannot express it."""
    code = code_of(command, era)
    return code, layout_of(code, era).write(command)


def code_of(command: Command, era: Era = Era.V) -> Code:
    """The code; logins have one of their own from V on."""
    if isinstance(command, c.Login):
        return Code.LOGIN_REGISTER if era >= Era.V else Code.LOGIN_USER
    if isinstance(command, c.LoginWithToken):
        return Code.LOGIN_REGISTER_WITH_TOKEN if era >= Era.V else Code.LOGIN_WITH_TOKEN
    return _CODES[type(command)]


def decode_login(body: bytes) -> Command:
    """The login of V and later: the code is not sent, so the body decides. Raises IggyError."""
    era = of_protocol(U32.read(Reader(body)))  # read first: the format of the rest depends on it
    try:
        return _whole(Code.LOGIN_REGISTER, body, era)
    except IggyError:
        return _whole(Code.LOGIN_REGISTER_WITH_TOKEN, body, era)


def _whole(code: Code, body: bytes, era: Era) -> Command:
    command: Command = layout_of(code, era).decode(body)
    return command


def decode_classic_login(body: bytes) -> c.Login:
    """A login of any classic era: with the SDK's version from B on. Raises IggyError."""
    reader = Reader(body)
    login: c.Login = layout_of(Code.LOGIN_USER, Era.A).read(reader)
    if reader.left:
        login = layout_of(Code.LOGIN_USER, Era.B).decode(body)
    return login
