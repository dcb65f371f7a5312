"""/jsz: streams and consumers; /healthz: the server's health. OMITTED lists the missing fields, with reasons.

/healthz has two checks. *Ready* (no parameter): 200 while every stream can be read and written, 503 when one could not
be recovered or its disk fails. *Alive* (`js-enabled-only=true`, or `js-server-only=true`): 200 while the broker runs,
whatever the state of its streams. Past losses are `warnings` of a 200: a restart would not restore the data.
"""

import time
from typing import TYPE_CHECKING

import msgspec

from headwater.errors import ConfigError
from headwater.model.timestamps import format_time
from headwater.monitoring.ledger import Document
from headwater.monitoring.parameters import Parameters, page, switch
from headwater.monitoring.steps import Steps, at_once
from headwater.monitoring.varz import jetstream_config, jetstream_limits, jetstream_stats
from headwater.monitoring.view import View
from headwater.options.access import GLOBAL_ACCOUNT

if TYPE_CHECKING:
    from headwater.jetstream.service import JetStream
    from headwater.jetstream.stream import Stream

MOST_WARNINGS = 100  # in an answer of /healthz
MOST_FINDINGS = 1000  # in one of /jsz
SLICE = 50  # streams or consumers; one takes some 50 us
PAGE = 1024  # accounts in an answer, unless `limit` says otherwise

OMITTED = {
    "meta_cluster": "streams live on one broker",
    "stream_raft_group": "streams live on one broker",
    "consumer_raft_groups": "streams live on one broker",
    "direct_consumer_detail": "there are no internal consumers",
}


def jsz(view: View, parameters: Parameters) -> Steps:
    """The answer, in steps of SLICE streams and consumers. Raises ConfigError for invalid parameters."""
    head: Document = {"server_id": view.broker.server_id, "now": format_time(time.time_ns())}
    services = view.broker.jetstreams
    if not services:
        return {"memory": 0, "storage": 0, "reserved_memory": 0, "reserved_storage": 0, "accounts": 0, "ha_assets": 0,
                "api": {"level": 0, "total": 0, "errors": 0}, **head, "disabled": True, "config": {}, "streams": 0,
                "consumers": 0, "messages": 0, "bytes": 0, "total": 0, "limits": {}}  # fmt: skip
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
        "limits": jetstream_limits(view),
    }
    findings = [finding.as_document() for service in services.values() for finding in service.findings()]
    findings += [finding.as_document() for finding in view.broker.findings()]
    if findings:
        document["findings"] = findings[:MOST_FINDINGS]
    offset, limit = page(parameters, PAGE)
    wanted = parameters.get("acc", "")
    switch(parameters, "config")  # alone it selects nothing
    if wanted or any(switch(parameters, name) for name in ("accounts", "streams", "consumers")):
        names = [name for name in sorted(services) if not wanted or name == wanted]
        details = []
        for name in names[offset : offset + limit]:
            detail = yield from _account(view, name, services[name], parameters)
            details.append(detail)
        if details:
            document["account_details"] = details
    return document


def account_jsz(view: View, name: str) -> Document:
    """The storage of one account, without its streams."""
    service = view.broker.jetstreams.get(name)
    if service is None:
        raise ConfigError(f'account "{name}" not jetstream enabled')
    document: Document = at_once(_account(view, name, service, {}))
    return document


def _account(view: View, name: str, service: "JetStream", parameters: Parameters) -> Steps:
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
        details = []
        for count, stream in enumerate(streams, 1):
            detail = yield from _stream(view, stream, with_consumers, with_config)
            details.append(detail)
            if count % SLICE == 0:
                yield
        document["stream_detail"] = details
    return document


def _stream(view: View, stream: "Stream", with_consumers: bool, with_config: bool) -> Steps:
    info = msgspec.to_builtins(stream.info())
    leader = view.broker.options.server_name or view.broker.server_id
    document: Document = {"name": stream.name, "created": info["created"], "cluster": {"leader": leader}}
    if with_config:
        document["config"] = info["config"]
    document["state"] = info["state"]
    document |= {kind: info[kind] for kind in ("mirror", "sources") if info.get(kind)}
    messages, size = stream.waiting
    document["writes"] = {"refused": stream.refused, "waiting_messages": messages, "waiting_bytes": size}
    if with_consumers and stream.consumers:
        details = []
        for count, consumer in enumerate(list(stream.consumers.values()), 1):
            detail = msgspec.to_builtins(consumer.info())
            if not with_config:
                detail.pop("config", None)
            details.append(detail)
            if count % SLICE == 0:
                yield
        document["consumer_detail"] = details
    return document


def healthz(view: View, parameters: Parameters) -> tuple[int, Document]:
    """The HTTP status and the answer. Raises ConfigError for invalid parameters."""
    account, stream, consumer = (parameters.get(name, "") for name in ("account", "stream", "consumer"))
    enabled_only = switch(parameters, "js-enabled-only") or switch(parameters, "js-enabled")
    server_only = switch(parameters, "js-server-only")
    if stream and not account:
        return 400, {"status": "error", "error": '"account" must not be empty when checking stream health'}
    if consumer and not stream:
        return 400, {"status": "error", "error": '"stream" must not be empty when checking consumer health'}
    if view.broker.sessions is None:
        return 500, {"status": "error", "error": "server is not ready for connections"}
    if server_only:
        return 200, {"status": "ok"}
    if not (stream or account or enabled_only):
        refused = _iggy_refusal(view)
        if refused:
            return 503, _unavailable(refused)
    if not view.broker.options.jetstream:
        return 200, _ok(_iggy_warnings(view))
    if not view.broker.jetstreams:
        return 503, _unavailable("JetStream not enabled")
    if enabled_only:
        return 200, {"status": "ok"}
    return _check_streams(view, account, stream, consumer)


def _check_streams(view: View, account: str, stream: str, consumer: str) -> tuple[int, Document]:
    services = view.broker.jetstreams
    if account and account not in services:
        return 404, _unavailable(f'JetStream account "{account}" not found')
    if stream and not services[account].is_put_aside(stream):
        found = services[account].streams.get(stream)
        if found is None:
            return 404, _unavailable(f'JetStream stream "{stream}" not found on account "{account}"')
        if consumer and consumer not in found.consumers:
            where = f'for stream "{stream}" on account "{account}"'
            return 404, _unavailable(f'JetStream consumer "{consumer}" not found {where}')
    warnings = []
    for name, service in services.items():
        if account and name != account:
            continue
        for finding in service.findings():
            place = f"JetStream stream '{name or GLOBAL_ACCOUNT} > {finding.stream}'"
            if stream and finding.stream != stream:
                continue
            if finding.severity == "unavailable":
                return 503, _unavailable(f"{place} {finding.what}")
            if finding.severity == "loss":
                warnings.append(f"{place}: {finding}")
        if service.room is not None and service.room.is_low:
            warnings.append(f"JetStream store of account '{name or GLOBAL_ACCOUNT}': {service.room}")
        for one in service.streams.values():
            if one.failure is not None and (not stream or one.name == stream):
                place = f"{name or GLOBAL_ACCOUNT} > {one.name}"
                return 503, _unavailable(f"JetStream stream '{place}' write error: {one.failure}")
    return 200, _ok(warnings if stream or account else warnings + _iggy_warnings(view))


def _iggy_refusal(view: View) -> str:
    """Which topic of Iggy cannot be read or written, and why; "" for none."""
    for finding in view.broker.findings():
        if finding.severity == "unavailable":
            return f"Iggy topic '{finding.stream}' {finding.what}"
    service = view.broker.iggy_service
    for topic in service.topics.values() if service is not None else ():
        for partition in topic.partitions:
            if partition.log.failure is not None:
                return f"Iggy topic '{topic.entry.name}' write error: {partition.log.failure}"
    return ""


def _iggy_warnings(view: View) -> list[str]:
    return [
        f"Iggy topic '{finding.stream}': {finding}" for finding in view.broker.findings() if finding.severity == "loss"
    ]


def _ok(warnings: list[str]) -> Document:
    return {"status": "ok", **({"warnings": warnings[:MOST_WARNINGS]} if warnings else {})}


def _unavailable(error: str) -> Document:
    return {"status": "unavailable", "error": error}
