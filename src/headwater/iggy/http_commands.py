"""Requests of the HTTP interface as commands: each function takes a request and the JSON document of its body, and refuses
what a field, a query parameter or a part of the path cannot mean. Nothing is executed here.

An update has two forms. Up to protocol 0.11 it names what is to be set (`UpdateStream`, …); in that of 0.12 each option is a
field of its own, and `reset` lists those that become defaults (`UpdateResource`).
"""

from typing import TYPE_CHECKING, Any, Final

from headwater.iggy_wire import commands as c
from headwater.iggy_wire import http_json
from headwater.iggy_wire.commands import Command, Permissions, StreamPermissions, TopicPermissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.http_json import field, identifier
from headwater.iggy_wire.identifiers import Consumer, Identifier
from headwater.iggy_wire.options import SCOPES, STREAM, TOPIC, USER, of_json
from headwater.model.typed_headers import HeaderForm, TypedHeaders

if TYPE_CHECKING:
    from starlette.requests import Request

ACTIVE: Final = 1  # a user's status
INACTIVE: Final = 2


def whole_number(text: str) -> int:
    """A number in the path or the query; it is refused where it has more digits than a u64."""
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        raise refusal("invalid_number_value", f"{text!r} is no number", text)
    return int(text)


def _partition(request: "Request") -> int | None:
    given = request.query_params.get("partition_id")
    return None if given is None else whole_number(given)


def describe_options(request: "Request", body: dict[str, Any]) -> Command:
    scope = SCOPES.get(request.path_params["scope"])
    if scope is None:
        raise refusal("invalid_command", f"options are of {', '.join(SCOPES)}", request.path_params["scope"])
    return c.DescribeOptions(scope)


def identifier_of(request: "Request", name: str) -> Any:
    return identifier(request.path_params[name])


def topic_of(request: "Request") -> tuple[Any, Any]:
    return identifier_of(request, "stream"), identifier_of(request, "topic")


def create_stream(request: "Request", body: dict[str, Any]) -> Command:
    number = body.get("stream_id") or 0
    chosen = number if isinstance(number, int) else 0
    return c.CreateStream(field(body, "name", str), chosen, options=_options(body, STREAM))


def update_stream(request: "Request", body: dict[str, Any]) -> Command:
    if _is_patch(request, body):
        return _patch(body, STREAM, identifier_of(request, "stream"))
    return c.UpdateStream(identifier_of(request, "stream"), field(body, "name", str), _options(body, STREAM))


def _is_patch(request: "Request", body: dict[str, Any]) -> bool:
    """Whether an update is in the form of 0.12: each option a field of its own, `reset` a list of names."""
    if getattr(request.state, "era", Era.V) >= Era.W:
        return True
    return "reset" in body or not ("options" in body or body.keys() & {"name", "username", "status"})


def _patch(body: dict[str, Any], scope: int, *which: Identifier) -> Command:
    """The update of 0.12. What is null, and an expiry or a size of 0, is left as it is."""
    reset = field(body, "reset", list, [])
    given = {name: value for name, value in body.items() if name != "reset" and value is not None}
    given = {name: value for name, value in given.items() if value or name not in ("message_expiry", "max_topic_size")}
    texts = {name: field(given, name, str) for name in ("name", "username", "status") if name in given}
    rest = of_json({name: value for name, value in given.items() if name not in texts}, scope)
    block = TypedHeaders(texts).encode(HeaderForm.TYPED) if texts else b""
    return c.UpdateResource((scope, which), [str(name) for name in reset], block + rest)


def incarnation(body: dict[str, Any]) -> int:
    """Of the partition that a request of 0.12 means; 0 for any."""
    number: int = field(field(body, "context", dict, {}) if body.get("context") else {}, "incarnation", int, 0)
    return number


def polling(request: "Request") -> c.PollMessages:
    query = request.query_params
    return c.PollMessages(
        Consumer.single(identifier(query.get("consumer_id", "1")).value),
        *topic_of(request),
        _partition(request),
        http_json.strategy(query.get("kind", "offset"), whole_number(query.get("value", "0"))),
        whole_number(query.get("count", "10")),
        query.get("auto_commit", "false") == "true",
    )


def _options(body: dict[str, Any], scope: int) -> bytes:
    return of_json(field(body, "options", dict, {}), scope)


def _settings(body: dict[str, Any]) -> bytes:
    """A topic's settings as options: separate fields, where null means unset, and those under `options`."""
    names = "compression_algorithm", "message_expiry", "max_topic_size", "replication_factor"
    given = {name: value for name in names if (value := body.get(name)) is not None}
    return of_json(given | field(body, "options", dict, {}), TOPIC)


def create_topic(request: "Request", body: dict[str, Any]) -> Command:
    stream, name = identifier_of(request, "stream"), field(body, "name", str)
    partitions, number = field(body, "partitions_count", int, 1), body.get("topic_id") or 0
    return c.CreateTopic(stream, name, partitions, number, options=_settings(body))


def update_topic(request: "Request", body: dict[str, Any]) -> Command:
    if _is_patch(request, body):
        return _patch(body, TOPIC, *topic_of(request))
    return c.UpdateTopic(*topic_of(request), field(body, "name", str), options=_settings(body))


def create_partitions(request: "Request", body: dict[str, Any]) -> Command:
    return c.CreatePartitions(*topic_of(request), field(body, "partitions_count", int))


def delete_partitions(request: "Request", body: dict[str, Any]) -> Command:
    return c.DeletePartitions(*topic_of(request), whole_number(request.query_params.get("partitions_count", "0")))


def store_offset(request: "Request", body: dict[str, Any]) -> Command:
    consumer = body.get("consumer_id", 1)
    reader = Consumer.single(consumer if isinstance(consumer, int) else identifier(str(consumer)).value)
    partition, offset = body.get("partition_id"), field(body, "offset", int)
    return c.StoreOffset(reader, *topic_of(request), partition, offset, incarnation=incarnation(body))


def get_offset(request: "Request", body: dict[str, Any]) -> Command:
    reader = Consumer.single(identifier(request.query_params.get("consumer_id", "1")).value)
    return c.GetOffset(reader, *topic_of(request), _partition(request))


def delete_offset(request: "Request", body: dict[str, Any]) -> Command:
    reader = Consumer.single(identifier_of(request, "consumer").value)
    return c.DeleteOffset(reader, *topic_of(request), _partition(request))


def delete_segments(request: "Request", body: dict[str, Any]) -> Command:
    segments = whole_number(request.query_params.get("segments_count", "0"))
    return c.DeleteSegments(*topic_of(request), whole_number(request.path_params["partition"]), segments)


def create_group(request: "Request", body: dict[str, Any]) -> Command:
    return c.CreateGroup(*topic_of(request), body.get("name") or "", body.get("consumer_group_id") or 0)


def create_token(request: "Request", body: dict[str, Any]) -> Command:
    return c.CreateToken(field(body, "name", str), field(body, "expiry", int, 0))


def create_user(request: "Request", body: dict[str, Any]) -> Command:
    status = INACTIVE if body.get("status") in (INACTIVE, "inactive") else ACTIVE
    return c.CreateUser(
        field(body, "username", str), field(body, "password", str), status, _permissions(body), _options(body, USER)
    )


def update_user(request: "Request", body: dict[str, Any]) -> Command:
    if _is_patch(request, body):
        return _patch(body, USER, identifier_of(request, "user"))
    statuses = {"active": ACTIVE, "inactive": INACTIVE, ACTIVE: ACTIVE, INACTIVE: INACTIVE}
    status = statuses.get(body.get("status"))
    return c.UpdateUser(identifier_of(request, "user"), body.get("username"), status, _options(body, USER))


def update_permissions(request: "Request", body: dict[str, Any]) -> Command:
    return c.UpdatePermissions(identifier_of(request, "user"), _permissions(body))


def change_password(request: "Request", body: dict[str, Any]) -> Command:
    return c.ChangePassword(
        identifier_of(request, "user"), field(body, "current_password", str), field(body, "new_password", str)
    )


def _permissions(body: dict[str, Any]) -> Permissions | None:
    """Global flags, and streams and topics by id, whose keys are strings in JSON. Raises IggyError."""
    source = body.get("permissions")
    if source is None:
        return None
    try:
        streams = {
            int(key): StreamPermissions(
                **{name: bool(value) for name, value in entry.items() if name != "topics"},
                topics={int(k): TopicPermissions(**t) for k, t in (entry.get("topics") or {}).items()},
            )
            for key, entry in (source.get("streams") or {}).items()
        }
        flags = source.get("global", {name: value for name, value in source.items() if name != "streams"})
        return Permissions(**{name: bool(value) for name, value in flags.items()}, streams=streams)
    except (AttributeError, TypeError, ValueError) as error:
        raise refusal("invalid_format", f"these are no permissions: {error}") from None
