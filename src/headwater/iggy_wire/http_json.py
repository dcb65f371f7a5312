"""Messages, headers and views in JSON, as the HTTP interface has them: of the seed, and of today.

    sent     {"partitioning": {"kind": "partition_id", "value": "AQAAAA=="}, "messages": [message, ...]}
    message  {"id": 0, "payload": "base64", "headers": {"key": {"kind": ..., "value": ...}}}               the seed
             {"id": 0, "payload": "base64", "user_headers": [{"key": {...}, "value": {...}}]}             today
    polled   [{"offset", "timestamp", "id", "headers", "payload"}, ...]                                    the seed
             {"partition_id", "current_offset", "count", "messages": [{"header", "payload", "user_headers"}]}  today

Both forms of headers are accepted; the listener determines the form of answers.
"""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headwater.errors import IggyError
from headwater.iggy_wire.batches import Part
from headwater.iggy_wire.commands import GetSnapshot, Message, Permissions
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import Identifier, Partitioning, PartitioningKind, PollingStrategy, StrategyKind
from headwater.iggy_wire.layout import U32
from headwater.iggy_wire.reply_codec import (
    NO_CONTEXT,
    OPTION_FLAGS,
    ClientView,
    ClusterView,
    Context,
    GroupView,
    OptionView,
    StatsView,
    StreamView,
    TokenView,
    TopicView,
    UserView,
)
from headwater.iggy_wire.seed_codec import PAYLOAD_LIMIT, string_keys
from headwater.model.typed_header import HeaderKind
from headwater.model.typed_headers import HeaderForm, TypedHeaders, check_total

_KINDS = {
    "none": PartitioningKind.BALANCED,
    "balanced": PartitioningKind.BALANCED,
    "partition_id": PartitioningKind.PARTITION_ID,
    "messages_key": PartitioningKind.MESSAGES_KEY,
    "entity_id": PartitioningKind.MESSAGES_KEY,
}
_STRATEGIES = {kind.name.lower(): kind for kind in StrategyKind}
_DECIMAL = re.compile(r"[0-9]{1,39}")
_UUID = re.compile(r"[0-9a-fA-F]{32}")


def document(body: bytes) -> dict[str, Any]:
    """The JSON object in a request. Raises IggyError."""
    try:
        found = json.loads(body or b"{}")
    except ValueError as error:
        raise refusal("invalid_format", f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise refusal("invalid_format", "the body is no JSON object")
    return found


def field(source: dict[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """A field of the wanted type. Raises IggyError when it is of another, or missing without a default."""
    value = source.get(name, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise refusal("invalid_format", f"{name} is not {kind.__name__}", value)
    return value


def identifier(text: str) -> Identifier:
    """A path segment: digits are an id, anything else a name."""
    return Identifier(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else Identifier(text)


def partitioning(source: Any) -> Partitioning:
    """Raises IggyError."""
    if not isinstance(source, dict):
        raise refusal("invalid_format", "partitioning is no object")
    kind = _KINDS.get(str(source.get("kind")))
    if kind is None:
        raise refusal("invalid_format", f"partitioning {source.get('kind')!r} is not known")
    raw = b"" if kind is PartitioningKind.BALANCED else of_base64(field(source, "value", str))
    if kind is PartitioningKind.PARTITION_ID and len(raw) != U32_SIZE:
        raise refusal("invalid_key_value_length", "a partition id has four bytes")
    return Partitioning.key(raw) if kind is PartitioningKind.MESSAGES_KEY else Partitioning(kind, raw)


U32_SIZE = len(U32.write(0))


def strategy(kind: str, value: int) -> PollingStrategy:
    """Raises IggyError."""
    found = _STRATEGIES.get(kind)
    if found is None:
        raise refusal("invalid_format", f"polling strategy {kind!r} is not known", kind)
    return PollingStrategy(found, value)


def parts(source: Any, now_us: int, seed: bool) -> list[Part]:
    """The messages of a request, for a batch. Raises IggyError, HeaderError."""
    if not isinstance(source, list) or not source:
        raise refusal("invalid_messages_count", "there is no message in the request")
    found, values, size = [], 0, 0
    for entry in source:
        if not isinstance(entry, dict):
            raise refusal("invalid_format", "a message is no object")
        message_id = _message_id(entry)
        payload = of_base64(field(entry, "payload", str))
        headers = TypedHeaders.from_json(entry.get("user_headers") or entry.get("headers"))
        values += headers.value_bytes
        size += len(payload)
        if not seed:
            check_total(len(headers.encode(HeaderForm.TYPED)), 100_000)
        found.append(Part(message_id.to_bytes(16, "little"), payload, headers.encode(HeaderForm.TYPED), now_us))
    if seed:
        check_total(values)
        if size > PAYLOAD_LIMIT:
            raise refusal("too_big_message_payload", f"{size} bytes are more than {PAYLOAD_LIMIT}", size)
    if not size:
        raise refusal("empty_message_payload", "there is no payload in the request")
    return found


def _message_id(entry: dict[str, Any]) -> int:
    """A number, or a text with one, or with a UUID: many parsers keep 53 or 64 bits of a number. Raises IggyError."""
    written = entry.get("id", 0)
    if isinstance(written, str) and _DECIMAL.fullmatch(written):
        entry = {"id": int(written)}
    elif isinstance(written, str) and _UUID.fullmatch(written.replace("-", "")):
        entry = {"id": int(written.replace("-", ""), 16)}
    message_id: int = field(entry, "id", int, 0)
    if not 0 <= message_id < 1 << 128:
        raise refusal("invalid_format", "a message id has 128 bits", message_id)
    return message_id


def of_base64(text: str) -> bytes:
    """Raises IggyError."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise refusal("invalid_format", f"no base64: {error}", text[:80]) from None


def seed_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The answer of the seed."""
    return [
        {
            "offset": message.offset,
            "timestamp": message.timestamp,
            "id": message.id,
            "headers": string_keys(message.headers).to_json() if message.headers else None,
            "payload": base64.b64encode(message.payload).decode(),
        }
        for message in messages
    ]


def polled(
    messages: Sequence[Message], partition: int, current_offset: int, context: Context = NO_CONTEXT
) -> dict[str, Any]:
    """The answer of today; 0.12 reads its context, too."""
    found = []
    for message in messages:
        block = message.headers.encode(HeaderForm.TYPED) if message.headers else b""
        header = {
            "checksum": 0,
            "id": message.id,
            "offset": message.offset,
            "timestamp": message.timestamp,
            "origin_timestamp": message.origin_timestamp,
            "user_headers_length": len(block),
            "payload_length": len(message.payload),
            "reserved": 0,
        }
        shown: dict[str, Any] = {"header": header, "payload": base64.b64encode(message.payload).decode()}
        shown["user_headers"] = message.headers.to_json(HeaderForm.TYPED) if message.headers else None
        found.append(shown)
    head = {"partition_id": partition, "current_offset": current_offset, "count": len(found)}
    return {**head, "messages": found, "context": _context(context)}


def _context(context: Context) -> dict[str, int]:
    incarnation, owner, metadata = context.incarnation, context.owner, context.metadata
    return {"incarnation": incarnation, "owner_generation": owner, "metadata_op": metadata}


def stream(view: StreamView) -> dict[str, Any]:
    return {
        "id": view.id,
        "created_at": view.created,
        "name": view.name,
        "size": view.size,
        "messages_count": view.messages,
        "topics_count": view.topics,
        "topics": [topic(entry) for entry in view.details],
        "options": _options(view.derived, explicit=False) | _options(view.options, explicit=True),
    }


def topic(view: TopicView) -> dict[str, Any]:
    return {
        "id": view.id,
        "created_at": view.created,
        "name": view.name,
        "size": view.size,
        "message_expiry": view.message_expiry,
        "compression_algorithm": {2: "gzip"}.get(view.compression, "none"),
        "max_topic_size": view.max_size,
        "replication_factor": view.replication,
        "messages_count": view.messages,
        "partitions_count": view.partitions,
        "partitions": [
            {
                "id": part.id,
                "created_at": part.created,
                "segments_count": part.segments,
                "current_offset": part.current_offset,
                "size": part.size,
                "messages_count": part.messages,
                "context": _context(part.context),
                "members": list(part.members),
                "in_sync_members": list(part.in_sync),
            }
            for part in view.parts
        ],
        "options": _options(view.derived, explicit=False) | _options(view.options, explicit=True),
        "derived_options": {},
    }


def _options(block: bytes, explicit: bool) -> dict[str, Any]:
    """The options in a block, each in the text form that a client can send, with its kind (for 0.12)."""
    options = TypedHeaders.decode(block, HeaderForm.TYPED) if block else TypedHeaders()
    shown = {}
    for key, value in options.items():
        text = value.python if value.kind is HeaderKind.STRING else str(value.python).lower()
        shown[str(key)] = {"value": text, "kind": value.kind.json_name, "explicit": explicit}
    return shown


def group(view: GroupView) -> dict[str, Any]:
    return {
        "id": view.id,
        "name": view.name,
        "partitions_count": view.partitions,
        "members_count": view.members,
        "members": [
            {"id": member.id, "partitions_count": len(member.partitions), "partitions": member.partitions}
            for member in view.details
        ],
    }


def option(view: OptionView) -> dict[str, Any]:
    kind = HeaderKind(view.kind).json_name
    shown = {"key": view.key, "kind": kind, "default_value": list(view.default), "description": view.description}
    return shown | {name: bool(view.flags & flag) for name, flag in OPTION_FLAGS.items()}


def user(view: UserView) -> dict[str, Any]:
    return {
        "id": view.id,
        "created_at": view.created,
        "status": "active" if view.status == 1 else "inactive",
        "username": view.username,
        "permissions": _permissions(view.permissions),
    }


def _permissions(granted: Permissions | None) -> dict[str, Any] | None:
    if granted is None:
        return None
    flags = asdict(granted)
    streams = flags.pop("streams")
    for entry in streams.values():
        entry["topics"] = entry["topics"] or None
    return {"global": flags, "streams": streams or None}


def client(view: ClientView) -> dict[str, Any]:
    groups = [{"stream_id": it.stream, "topic_id": it.topic, "group_id": it.group} for it in view.details]
    return {
        "client_id": view.id,
        "user_id": None if view.user == NO_USER else view.user,
        "address": view.address,
        "transport": TRANSPORTS.get(view.transport, "TCP"),
        "consumer_groups_count": view.groups,
        "consumer_groups": groups,
    }


NO_USER = 0xFFFFFFFF
TRANSPORTS = {1: "TCP", 2: "QUIC", 3: "HTTP", 4: "WebSocket"}


def token(view: TokenView) -> dict[str, Any]:
    """`expiry_at` in microseconds since 1970; none for a token without an end."""
    return {"name": view.name, "expiry_at": view.expiry or None}


def snapshot(source: dict[str, Any]) -> GetSnapshot:
    """The command in a request for a snapshot. Raises IggyError."""
    compression = COMPRESSIONS.get(_plain(field(source, "compression", str, "Stored")))
    types = [SNAPSHOT_TYPES.get(_plain(str(name))) for name in field(source, "snapshot_types", list, ["All"])]
    if compression is None or None in types:
        raise refusal("invalid_format", "the compression, or a part of the snapshot, is not known")
    return GetSnapshot(compression, [code for code in types if code is not None])


def _plain(name: str) -> str:
    """Apache's JSON has `ServerLogs`, its command line `server_logs`."""
    return name.replace("_", "").lower()


COMPRESSION_NAMES = {1: "Stored", 2: "Deflated", 3: "Bzip2", 4: "Zstd", 5: "Lzma", 6: "Xz"}
COMPRESSIONS = {_plain(name): code for code, name in COMPRESSION_NAMES.items()}
SNAPSHOT_PARTS = ("filesystem_overview", "process_list", "resource_usage", "test", "server_logs", "server_config")
SNAPSHOT_NAMES = {code: name.title().replace("_", "") for code, name in enumerate(SNAPSHOT_PARTS, 1)} | {100: "All"}
SNAPSHOT_TYPES = {_plain(name): code for code, name in SNAPSHOT_NAMES.items()}


def cluster(view: ClusterView) -> dict[str, Any]:
    """One node, the leader."""
    nodes = []
    for node in view.nodes:
        endpoints = {"tcp": node.tcp, "quic": node.quic, "http": node.http, "websocket": node.websocket}
        shown = {"name": node.name, "ip": node.ip, "endpoints": endpoints, "role": "leader", "status": "healthy"}
        nodes.append(shown)
    return {"name": view.name, "nodes": nodes}


def stats(view: StatsView) -> dict[str, Any]:
    """The numbers under the names that today's clients read."""
    shown = {STATS_NAMES.get(name, name): value for name, value in asdict(view).items()}
    return {**shown, "cache_metrics": {}}


STATS_NAMES = {
    "messages_size": "messages_size_bytes",
    "streams": "streams_count",
    "topics": "topics_count",
    "partitions": "partitions_count",
    "segments": "segments_count",
    "messages": "messages_count",
    "clients": "clients_count",
    "groups": "consumer_groups_count",
    "server_version": "iggy_server_version",
    "packed_version": "iggy_server_semver",
    "threads": "threads_count",
    "free_disk": "free_disk_space",
    "total_disk": "total_disk_space",
}


def error(refused: IggyError, number: int) -> dict[str, Any]:
    """The JSON body of a refusal."""
    return {"id": number, "code": refused.name, "reason": refused.message, "field": None}
