"""The JSON answers of an HTTP interface, read into the views that binary replies give: the inverse of `http_json`.

Missing fields keep the view's default. Times must be numbers, and sizes, too, or as Apache's server writes them: `309 B`,
`81884 KiB`. Anything else is refused (invalid_format).
"""

import re
from collections.abc import Callable
from typing import Any

from headwater.iggy_wire.commands import Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.http_json import NO_USER, STATS_NAMES, TRANSPORTS, of_base64
from headwater.iggy_wire.message_codec import ReceivedMessage, received
from headwater.iggy_wire.reply_codec import (
    OPTION_FLAGS,
    ClientView,
    ClusterView,
    GroupView,
    Membership,
    MemberView,
    NodeView,
    OffsetView,
    OptionView,
    PartitionView,
    SentView,
    StatsView,
    StreamView,
    TokenView,
    TopicView,
    UserView,
)
from headwater.model.typed_header import HeaderKind
from headwater.model.typed_headers import HeaderForm, TypedHeaders

Source = dict[str, Any]
UNKNOWN_OFFSET = -1
_COMPRESSION = {"none": 1, "gzip": 2}
_SIZE = re.compile(r"(\d+) (?:([KMGTPE])(i?))?B")
_TRANSPORTS = {name.lower(): number for number, name in TRANSPORTS.items()}


def get(source: Any, name: str, kind: type = int, default: Any = None) -> Any:
    """A field. Raises IggyError when it is of another kind, or missing where there is no default."""
    value = source.get(name) if isinstance(source, dict) else None
    if value is None and default is not None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise refusal("invalid_format", f"the server's answer has no {name} that is {kind.__name__}", value)
    return value


def _size(source: Any, name: str, default: int | None = 0) -> int:
    """As `get`, for a number of bytes."""
    written = _bytes(get(source, name, object, default))
    size: int = get({name: written}, name)
    return size


def _bytes(value: Any) -> Any:
    """The number that a size with a unit says; other values as they are."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    return int(found[1]) * (1024 if found[3] else 1000) ** (" KMGTPE".index(found[2] or " "))


def each(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """The same for every entry of a list."""

    def of_list(source: Any) -> list[Any]:
        if not isinstance(source, list):
            raise refusal("invalid_format", "the server's answer is no list")
        return [read(entry) for entry in source]

    return of_list


def stream(source: Source) -> StreamView:
    return StreamView(
        get(source, "id"),
        get(source, "created_at"),
        get(source, "topics_count", default=0),
        get(source, "name", str),
        _size(source, "size"),
        get(source, "messages_count", default=0),
        _options(source),
        details=each(topic)(get(source, "topics", list, [])),
    )


def topic(source: Source) -> TopicView:
    return TopicView(
        get(source, "id"),
        get(source, "created_at"),
        get(source, "partitions_count"),
        get(source, "name", str),
        get(source, "message_expiry", default=0),
        _COMPRESSION.get(get(source, "compression_algorithm", str, "none"), 1),
        get(source, "max_topic_size", default=0),
        get(source, "replication_factor", default=1),
        _size(source, "size"),
        get(source, "messages_count", default=0),
        _options(source),
        _options(source, explicit=False),
        parts=each(_partition)(get(source, "partitions", list, [])),
    )


def _options(source: Source, explicit: bool = True) -> bytes:
    """The chosen options, or the others, as texts, in wire form."""
    entries = get(source, "options", dict, {}).items()
    found = {
        name: get(entry, "value", str) for name, entry in entries if get(entry, "explicit", bool, True) is explicit
    }
    return TypedHeaders(found).encode(HeaderForm.TYPED)


def _partition(source: Source) -> PartitionView:
    number, created, segments, offset = (
        get(source, name) for name in ("id", "created_at", "segments_count", "current_offset")
    )
    return PartitionView(number, created, segments, offset, _size(source, "size", None), get(source, "messages_count"))


def group(source: Source) -> GroupView:
    members = get(source, "members", list, [])
    return GroupView(
        get(source, "id"),
        get(source, "partitions_count"),
        get(source, "members_count"),
        get(source, "name", str),
        [MemberView(get(member, "id"), list(get(member, "partitions", list))) for member in members],
    )


def offset(source: Source) -> OffsetView:
    return OffsetView(get(source, "partition_id"), get(source, "current_offset"), get(source, "stored_offset"))


def user(source: Source) -> UserView:
    status = {"active": 1, "inactive": 2}.get(get(source, "status", str), 0)
    granted = source.get("permissions")
    permissions = None if granted is None else _permissions(granted)
    return UserView(
        get(source, "id"), get(source, "created_at"), status, get(source, "username", str), b"", permissions
    )


def _permissions(source: Any) -> Permissions:
    try:
        streams = {
            int(number): StreamPermissions(
                **{name: bool(value) for name, value in entry.items() if name != "topics"},
                topics={int(one): TopicPermissions(**flags) for one, flags in (entry.get("topics") or {}).items()},
            )
            for number, entry in (source.get("streams") or {}).items()
        }
        return Permissions(**source["global"], streams=streams)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise refusal("invalid_format", f"the server's answer has no permissions: {error!r}") from None


def token(source: Source) -> TokenView:
    return TokenView(get(source, "name", str), get(source, "expiry_at", default=0))


def client(source: Source) -> ClientView:
    transport = _TRANSPORTS.get(get(source, "transport", str).lower(), 0)
    groups = [
        Membership(*(get(entry, name) for name in ("stream_id", "topic_id", "group_id")))
        for entry in get(source, "consumer_groups", list, [])
    ]
    user_id, address = get(source, "user_id", default=NO_USER), get(source, "address", str)
    return ClientView(
        get(source, "client_id"), user_id, transport, address, get(source, "consumer_groups_count", default=0), groups
    )


def option(source: Source) -> OptionView:
    kind = HeaderKind.of_json_name(get(source, "kind", str))
    default = get(source, "default_value", list)
    flags = sum(flag for name, flag in OPTION_FLAGS.items() if get(source, name, bool, False))
    return OptionView(get(source, "key", str), int(kind), bytes(default), get(source, "description", str, ""), flags)


def cluster(source: Source) -> ClusterView:
    nodes = []
    for node in get(source, "nodes", list):
        numbers = [get(get(node, "endpoints", dict), name, default=0) for name in ("tcp", "quic", "http", "websocket")]
        numbers += [
            int(get(node, "role", str, "leader") != "leader"),
            int(get(node, "status", str, "healthy") != "healthy"),
        ]
        nodes.append(NodeView(get(node, "name", str), get(node, "ip", str), *numbers))
    return ClusterView(get(source, "name", str), nodes)


def stats(source: Source) -> StatsView:
    known = StatsView()
    found: dict[str, Any] = {}
    for name in StatsView.__dataclass_fields__:
        value = get(source, STATS_NAMES.get(name, name), object, getattr(known, name))
        if not isinstance(getattr(known, name), str):
            value = _bytes(value)
        if not isinstance(value, str if isinstance(getattr(known, name), str) else (int, float)):
            raise refusal("invalid_format", f"the server's {name} is no number", value)
        found[name] = value
    return StatsView(**found)


def sent(source: Source, partition: int) -> SentView:
    """The answer to a send; `base_offset` is UNKNOWN_OFFSET if the server does not report it."""
    confirmations = get(source, "confirmations", list, [])
    if not confirmations:
        return SentView(0, 0, partition, UNKNOWN_OFFSET)
    return SentView(*(get(confirmations[0], name) for name in ("stream_id", "topic_id", "partition_id", "base_offset")))


def polled(source: Source) -> tuple[int, int, list[ReceivedMessage]]:
    """(partition, its last offset, messages)."""
    partition = get(source, "partition_id")
    found = [_message(entry, partition) for entry in get(source, "messages", list)]
    return partition, get(source, "current_offset"), found


def _message(source: Source, partition: int) -> ReceivedMessage:
    header = get(source, "header", dict)
    headers = TypedHeaders.from_json(source.get("user_headers"))
    return received(
        of_base64(get(source, "payload", str)),
        headers.encode(HeaderForm.TYPED) if headers else b"",
        get(header, "offset"),
        (get(header, "timestamp"), get(header, "origin_timestamp", default=0)),
        get(header, "checksum", default=0),
        partition,
        get(header, "id"),
    )
