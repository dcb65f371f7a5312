"""The HTTP form of each command: method, path, query, JSON, and the parsing of its answer. No I/O.

Commands without a path in Apache's interface are refused with feature_unavailable, as by its own client: membership in
groups, the client's own entry, and raw commands.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from headwater.iggy_wire import commands as c
from headwater.iggy_wire import http_views
from headwater.iggy_wire.commands import Command, Message, Permissions
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.http_json import COMPRESSION_NAMES, SNAPSHOT_NAMES
from headwater.iggy_wire.http_views import each
from headwater.iggy_wire.identifiers import Consumer, ConsumerKind, Identifier, PartitioningKind, PollingStrategy
from headwater.iggy_wire.layout import U32
from headwater.iggy_wire.options import SCOPES
from headwater.iggy_wire.reply_codec import RawToken
from headwater.model.typed_headers import HeaderForm, TypedHeaders

Read = Callable[[Any], Any]
_OPTIONS_OF_THEIR_OWN: Final = {"compression_algorithm": "none", "message_expiry": 0, "max_topic_size": 0}
_TOKENS: Final = "/personal-access-tokens"
_SCOPE_NAMES: Final = {number: name for name, number in SCOPES.items()}


class HttpRequest(NamedTuple):
    """`read` None: there is nothing to read. `may_miss`: 404 is the answer None."""

    method: str
    target: str
    body: dict[str, Any] | None = None
    read: Read | None = None
    may_miss: bool = False


def _get(target: str, read: Read, may_miss: bool = False) -> HttpRequest:
    return HttpRequest("GET", target, read=read, may_miss=may_miss)


def request_of(command: Command) -> HttpRequest:
    """The request that carries out a command. Raises IggyError for one that there is no request for."""
    make = _MAKERS.get(type(command))
    if make is None:
        raise refusal("feature_unavailable", f"{type(command).__name__} is not there over HTTP")
    return make(command)


def send_request(stream: Identifier, topic: Identifier, partition: int, messages: Sequence[Message]) -> HttpRequest:
    """A batch to one partition."""
    partitioning = {"kind": PartitioningKind.PARTITION_ID.name.lower(), "value": _base64(U32.write(partition))}
    body = {"partitioning": partitioning, "messages": [_message(message) for message in messages]}
    return HttpRequest(
        "POST", f"{_topic(stream, topic)}/messages", body, lambda answer: http_views.sent(answer, partition)
    )


def poll_request(command: c.PollMessages) -> HttpRequest:
    """Raises IggyError for the member of a group."""
    query = {
        "consumer_id": _single(command.consumer),
        "partition_id": command.partition or 0,
        **_strategy(command.strategy),
        "count": command.count,
        "auto_commit": str(command.auto_commit).lower(),
    }
    target = f"{_topic(command.stream, command.topic)}/messages?{urlencode(query)}"
    return HttpRequest("GET", target, read=http_views.polled)


def snapshot_request(compression: int, types: Sequence[int]) -> HttpRequest:
    """The answer is the archive itself."""
    if compression not in COMPRESSION_NAMES or not SNAPSHOT_NAMES.keys() >= set(types):
        raise refusal("invalid_format", "the compression, or a part of the snapshot, is not known")
    wanted = {"compression": COMPRESSION_NAMES[compression], "snapshot_types": [SNAPSHOT_NAMES[code] for code in types]}
    return HttpRequest("POST", "/snapshot", wanted)


def login_request(login: c.Login | c.LoginWithToken) -> HttpRequest:
    """The answer has the access token."""
    if isinstance(login, c.LoginWithToken):
        return HttpRequest("POST", f"{_TOKENS}/login", {"token": login.token}, _access)
    body = {"username": login.username, "password": login.password, "version": login.version, "context": login.context}
    return HttpRequest("POST", "/users/login", body, _access)


def _access(answer: Any) -> tuple[int, str]:
    """(user id, access token)."""
    granted = http_views.get(answer, "access_token", dict)
    return http_views.get(answer, "user_id"), http_views.get(granted, "token", str)


def _part(value: object) -> str:
    return quote(str(value), safe="")


def _stream(stream: Identifier) -> str:
    return f"/streams/{_part(stream)}"


def _topic(stream: Identifier, topic: Identifier) -> str:
    return f"{_stream(stream)}/topics/{_part(topic)}"


def _groups(command: Any) -> str:
    return f"{_topic(command.stream, command.topic)}/consumer-groups"


def _offsets(command: Any) -> str:
    return f"{_topic(command.stream, command.topic)}/consumer-offsets"


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _single(consumer: Consumer) -> str:
    if consumer.kind is ConsumerKind.GROUP:
        raise refusal("feature_unavailable", "there are no members of groups over HTTP")
    return str(consumer.id)


def _strategy(strategy: PollingStrategy) -> dict[str, Any]:
    return {"kind": strategy.kind.name.lower(), "value": strategy.value}


def _message(message: Message) -> dict[str, Any]:
    headers = message.headers.to_json(HeaderForm.TYPED) if message.headers else None
    number = message.id if message.id < 1 << 64 else str(message.id)  # Apache's server reads numbers of up to 64 bits
    return {"id": number, "payload": _base64(message.payload), "user_headers": headers}


def _options(block: bytes) -> dict[str, str]:
    """The options of a binary block, as the texts that HTTP has."""
    chosen = TypedHeaders.decode(block, HeaderForm.TYPED)
    return {
        str(key): str(value.python).lower() if not isinstance(value.python, str) else value.python
        for key, value in chosen.items()
    }


def _settings(command: c.CreateTopic | c.UpdateTopic, defaults: dict[str, Any]) -> dict[str, Any]:
    """Three settings have fields of their own."""
    options = _options(command.options)
    own = {
        name: options.pop(name, default) for name, default in defaults.items() if name in options or default is not None
    }
    return {name: int(value) if str(value).isdigit() else value for name, value in own.items()} | {"options": options}


def _permissions(granted: Permissions | None) -> dict[str, Any] | None:
    if granted is None:
        return None
    flags = asdict(granted)
    return {"global": flags, "streams": flags.pop("streams") or None}


def _status(status: int | None) -> str | None:
    return None if status is None else "active" if status == 1 else "inactive"


def _create_user(command: c.CreateUser) -> HttpRequest:
    body = {"username": command.username, "password": command.password, "status": _status(command.status)}
    return HttpRequest("POST", "/users", body | {"permissions": _permissions(command.permissions)}, http_views.user)


def _update_user(command: c.UpdateUser) -> HttpRequest:
    body = {"username": command.username, "status": _status(command.status), "options": _options(command.options)}
    return HttpRequest("PUT", f"/users/{_part(command.user)}", body)


def _create_topic(command: c.CreateTopic) -> HttpRequest:
    body = {"name": command.name, "partitions_count": command.partitions}
    body |= _settings(command, _OPTIONS_OF_THEIR_OWN)
    return HttpRequest("POST", f"{_stream(command.stream)}/topics", body, http_views.topic)


def _update_topic(command: c.UpdateTopic) -> HttpRequest:
    body = {"name": command.name} | _settings(command, dict.fromkeys(_OPTIONS_OF_THEIR_OWN))
    return HttpRequest("PUT", _topic(command.stream, command.topic), body)


def _update_stream(command: c.UpdateStream) -> HttpRequest:
    return HttpRequest("PUT", _stream(command.stream), {"name": command.name, "options": _options(command.options)})


def _change_password(command: c.ChangePassword) -> HttpRequest:
    body = {"current_password": command.current, "new_password": command.new}
    return HttpRequest("PUT", f"/users/{_part(command.user)}/password", body)


def _store_offset(command: c.StoreOffset) -> HttpRequest:
    body = {"consumer_id": _single(command.consumer), "partition_id": command.partition, "offset": command.offset}
    return HttpRequest("PUT", _offsets(command), body)


def _get_offset(command: c.GetOffset) -> HttpRequest:
    query = {"consumer_id": _single(command.consumer), "partition_id": command.partition or 0}
    return _get(f"{_offsets(command)}?{urlencode(query)}", http_views.offset, True)


def _delete_offset(command: c.DeleteOffset) -> HttpRequest:
    query = urlencode({"partition_id": command.partition or 0})
    return HttpRequest("DELETE", f"{_offsets(command)}/{_part(_single(command.consumer))}?{query}")


def _delete_segments(command: c.DeleteSegments) -> HttpRequest:
    where = f"{_topic(command.stream, command.topic)}/partitions/{command.partition}"
    return HttpRequest("DELETE", f"{where}?segments_count={command.count}")


def _partitions(method: str) -> Callable[[Any], HttpRequest]:
    def make(command: c.CreatePartitions | c.DeletePartitions) -> HttpRequest:
        where = f"{_topic(command.stream, command.topic)}/partitions"
        if method == "DELETE":
            return HttpRequest(method, f"{where}?partitions_count={command.count}")
        return HttpRequest(method, where, {"partitions_count": command.count})

    return make


_MAKERS: Final[dict[type, Callable[[Any], HttpRequest]]] = {
    c.Ping: lambda _: HttpRequest("GET", "/ping"),
    c.Logout: lambda _: HttpRequest("DELETE", "/users/logout"),
    c.GetStats: lambda _: _get("/stats", http_views.stats),
    c.GetClusterMetadata: lambda _: _get("/cluster/metadata", http_views.cluster),
    c.DescribeOptions: lambda it: _get(f"/options/{_SCOPE_NAMES[it.scope]}", each(http_views.option)),
    c.GetClients: lambda _: _get("/clients", each(http_views.client)),
    c.GetClient: lambda it: _get(f"/clients/{it.client_id}", http_views.client, True),
    c.GetUsers: lambda _: _get("/users", each(http_views.user)),
    c.GetUser: lambda it: _get(f"/users/{_part(it.user)}", http_views.user, True),
    c.CreateUser: _create_user,
    c.UpdateUser: _update_user,
    c.DeleteUser: lambda it: HttpRequest("DELETE", f"/users/{_part(it.user)}"),
    c.UpdatePermissions: lambda it: HttpRequest(
        "PUT", f"/users/{_part(it.user)}/permissions", {"permissions": _permissions(it.permissions)}
    ),
    c.ChangePassword: _change_password,
    c.GetTokens: lambda _: _get(_TOKENS, each(http_views.token)),
    c.CreateToken: lambda it: HttpRequest(
        "POST",
        _TOKENS,
        {"name": it.name, "expiry": it.expiry},
        lambda answer: RawToken(http_views.get(answer, "token", str)),
    ),
    c.DeleteToken: lambda it: HttpRequest("DELETE", f"{_TOKENS}/{_part(it.name)}"),
    c.GetStreams: lambda _: _get("/streams", each(http_views.stream)),
    c.GetStream: lambda it: _get(_stream(it.stream), http_views.stream, True),
    c.CreateStream: lambda it: HttpRequest("POST", "/streams", {"name": it.name}, http_views.stream),
    c.UpdateStream: _update_stream,
    c.DeleteStream: lambda it: HttpRequest("DELETE", _stream(it.stream)),
    c.PurgeStream: lambda it: HttpRequest("DELETE", f"{_stream(it.stream)}/purge"),
    c.GetTopics: lambda it: _get(f"{_stream(it.stream)}/topics", each(http_views.topic)),
    c.GetTopic: lambda it: _get(_topic(it.stream, it.topic), http_views.topic, True),
    c.CreateTopic: _create_topic,
    c.UpdateTopic: _update_topic,
    c.DeleteTopic: lambda it: HttpRequest("DELETE", _topic(it.stream, it.topic)),
    c.PurgeTopic: lambda it: HttpRequest("DELETE", f"{_topic(it.stream, it.topic)}/purge"),
    c.CreatePartitions: _partitions("POST"),
    c.DeletePartitions: _partitions("DELETE"),
    c.DeleteSegments: _delete_segments,
    c.GetGroups: lambda it: _get(_groups(it), each(http_views.group)),
    c.GetGroup: lambda it: _get(f"{_groups(it)}/{_part(it.group)}", http_views.group, True),
    c.CreateGroup: lambda it: HttpRequest("POST", _groups(it), {"name": it.name}, http_views.group),
    c.DeleteGroup: lambda it: HttpRequest("DELETE", f"{_groups(it)}/{_part(it.group)}"),
    c.StoreOffset: _store_offset,
    c.GetOffset: _get_offset,
    c.DeleteOffset: _delete_offset,
}
