"""For programs that come from nats-py: its names work here, or say what to use instead.

Arguments of `connect` are translated, coroutine callbacks included. Attributes that are the same thing under another name
work (`connected_url`, `next_msg`, …). The rest raises AttributeError with the way it is done here; the tables below are
also what docs/migration-from-nats-py.md is checked against.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from headwater.client_connection.events import Closed, Disconnected, Discovered, Event, LameDuck, Reconnected

RENAMED_ARGUMENTS = {
    "user_credentials": "creds",
    "nkeys_seed": "nkey_seed",
    "nkeys_seed_str": "nkey_seed",
    "tls_handshake_first": "tls_first",
    "allow_reconnect": "reconnect",
    "reconnect_time_wait": "reconnect_wait",
    "max_outstanding_pings": "pings_out",
    "pending_size": "reconnect_buffer",
}
NEGATED_ARGUMENTS = {"no_echo": "echo", "dont_randomize": "randomise"}
IGNORED_ARGUMENTS = {
    "flush_timeout",
    "flusher_queue_size",
    "drain_timeout",
    "io_loop",
    "loop",
    "skip_subject_validation",
}
REFUSED_ARGUMENTS = {
    "signature_cb": "nkey_seed=, the text or the path of a file; or creds=",
    "user_jwt_cb": "creds=, a path that is read again at each reconnect",
    "ws_connection_headers": "token= or user= and password=: no server looks at headers of the WebSocket",
    "reconnect_to_server_handler": "randomise= and the order of the servers",
}
CALLBACKS: dict[str, type[Event]] = {
    "disconnected_cb": Disconnected,
    "reconnected_cb": Reconnected,
    "closed_cb": Closed,
    "discovered_server_cb": Discovered,
    "lame_duck_mode_cb": LameDuck,
}
CLIENT: dict[str, Callable[[Any], Any]] = {
    "connected_url": lambda client: client.server or None,
    "discovered_servers": lambda client: client.servers,
    "is_reconnecting": lambda client: not client.is_connected and not client.is_closed,
    "is_connecting": lambda client: False,
    "max_payload": lambda client: client.server_info.max_payload,
    "client_id": lambda client: client.server_info.client_id,
    "client_ip": lambda client: client.server_info.client_ip,
    "server_pool": lambda client: client.servers,
    "connected_server_version": lambda client: client.server_info.version,
}
SUBSCRIPTION: dict[str, Callable[[Any], Any]] = {
    "next_msg": lambda subscription: subscription.next,
    "messages": lambda subscription: subscription,
    "pending_msgs": lambda subscription: subscription.pending,
    "delivered": lambda subscription: subscription.received,
}
STREAM_MESSAGE: dict[str, Callable[[Any], Any]] = {
    "header": lambda message: message.headers,
    "ack_sync": lambda message: lambda timeout=1.0: message.ack(confirm=timeout),
}
STREAM_MESSAGE_ADVICE = {
    "is_acked": "the program knows what it has settled",
    "sid": "`subscription.sid`",
    "respond": "ack(), nak(), term() or in_progress(): its reply subject is the server's",
}
KEY_VALUE_ADVICE = {
    "watchall": "watch()",
    "purge_deletes": "purge_deleted()",
}
OBJECT_STORE: dict[str, Callable[[Any], Any]] = {
    "get_info": lambda store: store.info,
    "list": lambda store: store.objects,
}
OBJECT_STORE_ADVICE = {"update_meta": "update(name, description=..., metadata=...)"}
CLIENT_ADVICE = {
    "rtt": "time `await client.flush()`",
    "stats": "`subscription.received` and `subscription.dropped`; the server's /connz has the rest",
    "last_error": "`error_callback`, or `client.events()`",
    "pending_data_size": "`await client.publish(...)` waits while too much is buffered",
    "msg_class": "messages are `headwater.Message`",
    "ssl_context": "`connect(tls=context)`",
    "set_server_pool": "name all servers in `connect`; those of the cluster are found by themselves",
    "connect": "`await headwater.connect(...)`",
    "is_draining_pubs": "`await client.drain()` ends when everything is drained",
    "is_draining": "`await client.drain()` ends when everything is drained",
    "force_reconnect": "`await client.reconnect()`",
    "jsm": "`client.jetstream()`, which manages streams too",
    "old_request": "`client.request(...)`",
}
JETSTREAM_ADVICE = {
    "add_stream": "create_stream(StreamConfig(name=..., subjects=[...]))",
    "streams_info": "streams()",
    "add_consumer": "create_consumer(stream, ConsumerConfig(...))",
    "consumers_info": "consumers(stream)",
    "find_stream_name_by_subject": "find_stream(subject)",
    "get_msg": "get_message(stream, sequence)",
    "get_last_msg": "get_message(stream, last_on=subject)",
    "delete_msg": "delete_message(stream, sequence)",
    "pull_subscribe": "create_consumer(stream, ConsumerConfig(durable_name=...)), then pull_consumer(stream, name).fetch(n)",
    "pull_subscribe_bind": "pull_consumer(stream, name).fetch(n)",
    "subscribe": "ordered_consumer(stream), push_consumer(stream), or pull_consumer(stream, name).consume()",
    "subscribe_bind": "push_consumer(stream, config)",
    "publish_async_pending": "`publisher.outstanding`",
    "publish_async_completed": "`await publisher.wait_acknowledged()`",
    "streams_info_iterator": "streams()",
    "resume_consumer": 'pause_consumer(stream, name, "")',
    "reset_consumer": "delete the consumer and create it anew",
    "is_status_msg": "`message.status`",
    "publish_async": "`async with jetstream.publisher(window) as publisher: await publisher.publish(...)`",
}


def translate(arguments: dict[str, object]) -> dict[str, object]:
    """nats-py's arguments of `connect` as ours; all others as they are. Those without a use here are dropped."""
    made: dict[str, object] = {}
    callbacks: dict[str, Callable[..., object]] = {}
    for name, value in arguments.items():
        if name in RENAMED_ARGUMENTS:
            made[RENAMED_ARGUMENTS[name]] = value
        elif name in NEGATED_ARGUMENTS:
            made[NEGATED_ARGUMENTS[name]] = not value
        elif name == "max_reconnect_attempts":
            attempts = int(value) if isinstance(value, int) else -1
            made["reconnect_attempts"] = attempts if attempts > 0 else None
            if attempts == 0:
                made["reconnect"] = False
        elif name == "error_cb":
            if value is not None:
                made["error_callback"] = value
        elif name in CALLBACKS:
            if value is not None:
                callbacks[name] = _plain(value)
        elif name in REFUSED_ARGUMENTS:
            if value is not None:
                way = REFUSED_ARGUMENTS[name]
                raise TypeError(f"connect() takes no {name!r}; nats-py's {name!r} is here: {way}")
        elif name not in IGNORED_ARGUMENTS:
            made[name] = value
    if callbacks:
        made["event_callback"] = _dispatch(callbacks, made.get("event_callback"))
    return made


def _plain(callback: Any) -> Callable[..., object]:
    """A callback that may be a coroutine function, as one that is called and not awaited."""
    tasks: set[asyncio.Future[Any]] = set()

    def call(*arguments: object) -> None:
        result = callback(*arguments)
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(result)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    return call


def _dispatch(callbacks: dict[str, Callable[..., object]], other: object) -> Callable[[Event], None]:
    def happened(event: Event) -> None:
        for name, callback in callbacks.items():
            if isinstance(event, CALLBACKS[name]):
                callback()
        if callable(other):
            other(event)

    return happened


def install(kind: type, aliases: dict[str, Callable[[Any], Any]], advice: Mapping[str, str]) -> None:
    """Give `kind` nats-py's names as properties; those of `advice` raise AttributeError with it.

    Not by `__getattr__`: that would make every attribute of the class, `publish` above all, a slow one.
    """
    for name, find in aliases.items():
        setattr(kind, name, property(find))
    for name, way in advice.items():
        if not hasattr(kind, name):
            setattr(kind, name, property(_refusal(kind.__name__, name, way)))


def _refusal(kind: str, name: str, way: str) -> Callable[[Any], Any]:
    def refuse(owner: Any) -> Any:
        raise AttributeError(f"{kind!r} object has no attribute {name!r}; nats-py's {name!r} is here: {way}")

    return refuse
