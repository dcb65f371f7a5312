"""Arguments by nats-py's names and in its order: translated, or refused with what to use instead.

`take` wraps the methods that differ, once, when their class is made. Calls in our own names pass through with one look
at the names of the arguments. docs/migration-from-nats-py.md has the tables below as one, and a test walks nats-py's
signatures: each argument of theirs is the same here, or stands below.

Refused: arguments without a counterpart (TypeError, with the way it is done here) unless they have a value that asks
for nothing, such as None. `update` of a bucket needs `last` here: without it nats-py overwrites unseen revisions.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

CO_VARARGS, CO_COROUTINE = 0x04, 0x80  # as in `inspect`
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
NOTHING: Mapping[str, str] = MappingProxyType({})
_TIMEOUT = "client.jetstream(timeout=...)"
_CHECKED = "every key is checked; there is no way round"


class Theirs(NamedTuple):
    """A method's arguments in nats-py: their `order`, ours by their names, and those that we refuse. `build` sees all of
    them first; `asks_nothing`: values that change nothing here."""

    order: str
    renamed: Mapping[str, str] = NOTHING
    refused: Mapping[str, str] = NOTHING
    build: Callable[[tuple[Any, ...], dict[str, Any]], Arguments] | None = None
    asks_nothing: tuple[object, ...] = (None,)


def _config_of(module: str, kind: str, without_effect: tuple[str, ...] = ()) -> Callable[..., Arguments]:
    """For methods that take a configuration here, and its fields one by one there."""

    def build(args: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
        from importlib import import_module

        if args and isinstance(args[0], str):
            args, named = args[1:], {"bucket": args[0], **named}
        if args or "config" in named or not named:
            return args, named
        fields = {name: value for name, value in named.items() if name not in without_effect and value is not None}
        return (getattr(import_module(module), kind)(**fields),), {}

    return build


def _patterns(name: str) -> Callable[..., Arguments]:
    """For methods that take patterns one by one here, and as the argument `name` there, a list of them perhaps."""

    def build(args: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
        given = named.pop(name, None)
        found = [*args, *([] if given is None else [given])]
        flat = [each for part in found for each in ([part] if isinstance(part, str) else part)]
        return tuple(flat), named

    return build


def _last(args: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
    if len(args) < 3 and named.get("last") is None:
        raise TypeError("update() needs last=, the revision that is replaced; put() overwrites whatever there is")
    return args, named


_STREAMS = "headwater.client.configurations"
CLIENT: dict[str, Theirs] = {
    "subscribe": Theirs(
        "subject queue cb future max_msgs pending_msgs_limit pending_bytes_limit",
        {"pending_msgs_limit": "max_pending", "pending_bytes_limit": "max_pending_bytes"},
        {"future": "await subscription.next()"},
    ),
    "jetstream": Theirs("", NOTHING, {"publish_async_max_pending": "jetstream.publisher(window)"}),
}
JETSTREAM: dict[str, Theirs] = {
    "publish": Theirs(
        "subject payload timeout stream headers msg_ttl",
        {"payload": "data", "stream": "expect_stream", "msg_ttl": "ttl"},
        {"timeout": _TIMEOUT},
    ),
    "consumer_info": Theirs("stream consumer timeout", {"consumer": "name"}, {"timeout": _TIMEOUT}),
    "delete_consumer": Theirs("stream consumer", {"consumer": "name"}),
    "pause_consumer": Theirs(
        "stream consumer pause_until timeout", {"consumer": "name", "pause_until": "until"}, {"timeout": _TIMEOUT}
    ),
    "purge_stream": Theirs("name seq subject keep", {"seq": "sequence"}),
    "stream_info": Theirs("name subjects_filter", {"subjects_filter": "subjects"}),
    "update_stream": Theirs("config", {"params": "config"}, build=_config_of(_STREAMS, "StreamConfig")),
    "create_key_value": Theirs(
        "config",
        {"params": "config"},
        build=_config_of("headwater.client.key_value", "BucketConfig", ("direct",)),
    ),
    "create_object_store": Theirs(
        "bucket config",
        {"bucket": "config", "params": "config"},
        build=_config_of("headwater.client.object_store", "StoreConfig"),
    ),
}
SUBSCRIPTION: dict[str, Theirs] = {"unsubscribe": Theirs("limit", {"limit": "maximum"})}
_KEYS = {"validate_keys": _CHECKED}
KEY_VALUE: dict[str, Theirs] = {
    "get": Theirs("key revision validate_keys", NOTHING, _KEYS, asks_nothing=(None, True)),
    "put": Theirs("key value validate_keys", NOTHING, _KEYS, asks_nothing=(None, True)),
    "create": Theirs("key value validate_keys msg_ttl", {"msg_ttl": "ttl"}, _KEYS, asks_nothing=(None, True)),
    "update": Theirs("key value last validate_keys", NOTHING, _KEYS, _last, (None, True)),
    "delete": Theirs(
        "key last validate_keys msg_ttl",
        NOTHING,
        {**_KEYS, "msg_ttl": "purge(key, ttl=...)"},
        asks_nothing=(None, True),
    ),
    "purge": Theirs("key", {"msg_ttl": "ttl"}),
    "keys": Theirs("", {"filters": "*patterns", "kwargs": "nothing"}, build=_patterns("filters")),
    "watch": Theirs(
        "",
        {"keys": "*patterns", "include_history": "history", "meta_only": "headers_only"},
        {
            "ignore_deletes": "skip entries whose `operation` is not PUT",
            "inactive_threshold": "a watch ends with its iteration",
        },
        _patterns("keys"),
        (None, False),
    ),
}
_LISTED = {
    "ignore_deletes": "skip objects that are `deleted`",
    "include_history": "an object store keeps the newest only",
    "meta_only": "what is watched are descriptions already",
}
OBJECT_STORE: dict[str, Theirs] = {
    "get": Theirs(
        "name writeinto show_deleted",
        NOTHING,
        {"writeinto": "async for chunk in store.chunks(name)", "show_deleted": "info(name, deleted=True)"},
        asks_nothing=(None, False),
    ),
    "info": Theirs("name show_deleted", {"show_deleted": "deleted"}),
    "objects": Theirs("", NOTHING, {"ignore_deletes": "deleted ones are left out, unless objects(deleted=True)"}),
    "put": Theirs("name data meta", NOTHING, {"meta": "description=, metadata= and headers="}),
    "watch": Theirs("", NOTHING, _LISTED, asks_nothing=(None, False)),
}


def take(kind: type, table: dict[str, Theirs]) -> None:
    """Make the methods of `kind` named in `table` accept nats-py's arguments too."""
    for name, theirs in table.items():
        setattr(kind, name, _taking(name, getattr(kind, name), theirs))


def _taking(name: str, method: Callable[..., Any], theirs: Theirs) -> Callable[..., Any]:
    code = method.__code__  # `inspect` says it too; but the command line defers it, and it is 3 ms of `headwater pub`
    positional = 1 << 30 if code.co_flags & CO_VARARGS else code.co_argcount - code.co_posonlyargcount
    order = ["self", *theirs.order.split()]
    foreign = {*theirs.renamed, *theirs.refused}

    def translated(args: tuple[Any, ...], named: dict[str, Any]) -> Arguments:
        if theirs.build is not None:
            rest, named = theirs.build(args[1:], dict(named))
            args = (args[0], *rest)
        if len(args) > positional:  # given by position there, by name here
            named = {**dict(zip(order[positional:], args[positional:], strict=False)), **named}
            args = (*args[:positional], *args[max(positional, len(order)) :])
        made = {}
        for argument, value in named.items():
            if argument in theirs.refused:
                if value not in theirs.asks_nothing:
                    way = theirs.refused[argument]
                    raise TypeError(f"{name}() takes no {argument!r}; nats-py's {argument!r} is here: {way}")
            elif argument in theirs.renamed:
                if value is not None:
                    made[theirs.renamed[argument]] = value
            else:
                made[argument] = value
        return args, made

    def is_ours(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        return theirs.build is None and len(args) <= positional and foreign.isdisjoint(named)

    if code.co_flags & CO_COROUTINE:

        @functools.wraps(method)
        async def call(*args: Any, **named: Any) -> Any:
            if not is_ours(args, named):
                args, named = translated(args, named)
            return await method(*args, **named)

        return call

    @functools.wraps(method)
    def call_plainly(*args: Any, **named: Any) -> Any:
        if not is_ours(args, named):
            args, named = translated(args, named)
        return method(*args, **named)

    return call_plainly
