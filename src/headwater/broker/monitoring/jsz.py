"""/jsz: what is stored; /healthz: whether all is well. OMITTED says which fields are not here, and why."""

import time
from typing import TYPE_CHECKING

import msgspec

from headwater.broker.jetstream.timestamps import format_time
from headwater.broker.monitoring.ledger import Document
from headwater.broker.monitoring.parameters import Parameters, page, switch
from headwater.broker.monitoring.varz import jetstream_config, jetstream_stats
from headwater.broker.monitoring.view import View
from headwater.broker.options import GLOBAL_ACCOUNT
from headwater.errors import ConfigError

if TYPE_CHECKING:
    from headwater.broker.jetstream.service import JetStream
    from headwater.broker.jetstream.stream import Stream

PAGE = 1024  # accounts in an answer, unless `limit` says otherwise

OMITTED = {
    "meta_cluster": "streams live on one broker",
    "limits": "there are no server-wide limits",
    "stream_raft_group": "streams live on one broker",
    "consumer_raft_groups": "streams live on one broker",
    "direct_consumer_detail": "there are no internal consumers",
    "config.max_memory": "no limit unless it is configured",
    "config.max_storage": "no limit unless it is configured",
    "config.sync_interval": "sync says when a stream is made durable",
}


def jsz(view: View, parameters: Parameters) -> Document:
    """The answer. Raises ConfigError for parameters that mean nothing."""
    head: Document = {"server_id": view.broker.server_id, "now": format_time(time.time_ns())}
    services = view.broker.jetstreams
    if not services:
        return {"memory": 0, "storage": 0, "reserved_memory": 0, "reserved_storage": 0, "accounts": 0, "ha_assets": 0,
                "api": {"level": 0, "total": 0, "errors": 0}, **head, "disabled": True, "config": {}, "streams": 0,
                "consumers": 0, "messages": 0, "bytes": 0, "total": 0}  # fmt: skip
    streams = [stream for service in services.values() for stream in service.streams.values()]
    states = [stream.state() for stream in streams]
    document = {
        **jetstream_stats(view),
        **head,
        "config": jetstream_config(view),
        "streams": len(streams),
        "consumers": sum(len(stream.consumers) for stream in streams),
        "messages": sum(state.messages for state in states),
        "bytes": sum(state.bytes for state in states),
        "total": len(services),
    }
    offset, limit = page(parameters, PAGE)
    wanted = parameters.get("acc", "")
    switch(parameters, "config")  # alone it asks for nothing
    if wanted or any(switch(parameters, name) for name in ("accounts", "streams", "consumers")):
        names = [name for name in sorted(services) if not wanted or name == wanted]
        details = [_account(view, name, services[name], parameters) for name in names[offset : offset + limit]]
        if details:
            document["account_details"] = details
    return document


def account_jsz(view: View, name: str) -> Document:
    """What one account stores, without its streams."""
    service = view.broker.jetstreams.get(name)
    if service is None:
        raise ConfigError(f'account "{name}" not jetstream enabled')
    return _account(view, name, service, {})


def _account(view: View, name: str, service: "JetStream", parameters: Parameters) -> Document:
    streams = list(service.streams.values())
    stored = [(stream.config.storage, stream.state().bytes) for stream in streams]
    document: Document = {
        "name": name,
        "id": name,
        "memory": sum(size for storage, size in stored if storage == "memory"),
        "storage": sum(size for storage, size in stored if storage != "memory"),
        "reserved_memory": 0,
        "reserved_storage": 0,
        "accounts": 0,
        "ha_assets": 0,
        "api": {"level": 0, "total": service.requests, "errors": service.refusals},
    }
    with_consumers = switch(parameters, "consumers")
    if streams and (with_consumers or switch(parameters, "streams")):
        with_config = switch(parameters, "config")
        document["stream_detail"] = [_stream(view, stream, with_consumers, with_config) for stream in streams]
    return document


def _stream(view: View, stream: "Stream", with_consumers: bool, with_config: bool) -> Document:
    info = msgspec.to_builtins(stream.info())
    leader = view.broker.options.server_name or view.broker.server_id
    document: Document = {"name": stream.name, "created": info["created"], "cluster": {"leader": leader}}
    if with_config:
        document["config"] = info["config"]
    document["state"] = info["state"]
    if with_consumers and stream.consumers:
        details = [msgspec.to_builtins(consumer.info()) for consumer in stream.consumers.values()]
        for detail in details:
            if not with_config:
                detail.pop("config", None)
        document["consumer_detail"] = details
    return document


def healthz(view: View, parameters: Parameters) -> tuple[int, Document]:
    """The HTTP status and the answer. Raises ConfigError for parameters that mean nothing."""
    account, stream, consumer = (parameters.get(name, "") for name in ("account", "stream", "consumer"))
    enabled_only = switch(parameters, "js-enabled-only") or switch(parameters, "js-enabled")
    server_only = switch(parameters, "js-server-only")
    if stream and not account:
        return 400, {"status": "error", "error": '"account" must not be empty when checking stream health'}
    if consumer and not stream:
        return 400, {"status": "error", "error": '"stream" must not be empty when checking consumer health'}
    if view.broker.sessions is None:
        return 500, {"status": "error", "error": "server is not ready for connections"}
    if server_only or not view.broker.options.jetstream:
        return 200, {"status": "ok"}
    if not view.broker.jetstreams:
        return 503, _unavailable("JetStream not enabled")
    if enabled_only:
        return 200, {"status": "ok"}
    return _check_streams(view, account, stream, consumer)


def _check_streams(view: View, account: str, stream: str, consumer: str) -> tuple[int, Document]:
    services = view.broker.jetstreams
    if account and account not in services:
        return 404, _unavailable(f'JetStream account "{account}" not found')
    if stream:
        found = services[account].streams.get(stream)
        if found is None:
            return 404, _unavailable(f'JetStream stream "{stream}" not found on account "{account}"')
        if consumer and consumer not in found.consumers:
            where = f'for stream "{stream}" on account "{account}"'
            return 404, _unavailable(f'JetStream consumer "{consumer}" not found {where}')
    for name, service in services.items():
        for one in service.streams.values():
            if (account and name != account) or (stream and one.name != stream):
                continue
            if one.log.failure is not None:
                place = f"{name or GLOBAL_ACCOUNT} > {one.name}"
                return 503, _unavailable(f"JetStream stream '{place}' write error: {one.log.failure}")
            problems = one.problems()
            if problems:
                return 503, _unavailable(f"JetStream {problems[0]}")
    return 200, {"status": "ok"}


def _unavailable(error: str) -> Document:
    return {"status": "unavailable", "error": error}
