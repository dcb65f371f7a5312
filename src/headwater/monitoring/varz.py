"""/varz: the server as a whole. The fields are those of nats-server's Varz; OMITTED lists the missing ones, with
reasons."""

import asyncio
import time
from collections.abc import Callable

from headwater.model.timestamps import format_time
from headwater.monitoring.leafz import leaf_block, leaf_counts
from headwater.monitoring.ledger import Document
from headwater.monitoring.routez import cluster_block, route_counts
from headwater.monitoring.view import View, processors, resident_bytes, uptime, usable_processors
from headwater.options.broker import BrokerOptions
from headwater.version import API_LEVEL, COMPATIBLE_VERSION, VERSION

OMITTED: dict[str, str] = {}
SYNC_INTERVALS = {"always": 120_000_000_000, "interval": 1_000_000_000}
"""Ns; that of `always` has no effect, but without one the `nats` tool does not say that all is synced."""

FEATURE_FLAGS = dict.fromkeys(("js_ack_fc_v2", "js_api_reply_v2", "js_raft_delete_range", "js_snapshot_sources"), False)
"""The feature flags of nats-server 2.15; only the first has an effect here."""

_NS = 1_000_000_000


def varz(view: View) -> Document:
    """The answer."""
    now = time.time_ns()
    return {
        **_identity(view, view.broker.options),
        **_limits(view.broker.options),
        **_parts(view),
        "start": format_time(view.started),
        "now": format_time(now),
        "uptime": uptime(now - view.started),
        "mem": resident_bytes(),
        "cores": processors(),
        "gomaxprocs": usable_processors(),
        "feature_flags": {**FEATURE_FLAGS, "js_ack_fc_v2": view.broker.options.scoped_acks},
        "disk_io_wait_stats": _disk_waits(view),
        "cpu": view.cpu_percent(),
        **counters(view),
        "read_pauses": _read_pauses(),
        "http_req_stats": dict(sorted(view.requests.items())),
        "events": dict(view.broker.journal.counts),
        "config_load_time": format_time(view.started),
        "config_digest": view.digest,
    }


def _read_pauses() -> int:
    """How often the loop has waited 0.1 ms so that a read finds more (net/moderation.py); 0 in a loop that never does."""
    made: Callable[[], int] | None = getattr(asyncio.get_running_loop(), "pauses_made", None)
    return made() if made is not None else 0


def _identity(view: View, options: BrokerOptions) -> Document:
    monitoring = view.options
    path = "" if monitoring.base_path == "/" else monitoring.base_path
    document: Document = {
        "server_id": view.broker.server_id,
        "server_name": options.server_name or view.broker.server_id,
        "version": COMPATIBLE_VERSION,
        "proto": 1,
        "git_commit": f"headwater-{VERSION}",
        "go": "python",
        "host": options.host,
        "port": view.broker.port,
        "http_host": monitoring.host,
        "http_port": 0 if monitoring.tls else view.port,
        "http_base_path": path,
        "https_port": view.port if monitoring.tls else 0,
        "system_account": view.broker.system_account,
    }
    sessions = view.broker.sessions
    if sessions is not None and view.broker.cluster is not None and view.broker.cluster.peers:  # else there is none
        info = sessions.greetings.info
        named = {"connect_urls": info.connect_urls, "ws_connect_urls": info.ws_connect_urls}
        document |= {name: list(urls) for name, urls in named.items() if urls}
    if sessions is not None and (options.operator or options.authorization.required or options.accounts):
        document["auth_required"] = True
    if options.tls is not None:
        document["tls_required"] = True
        document["tls_verify"] = options.tls.verify
    return document


def _limits(options: BrokerOptions) -> Document:
    return {
        "max_connections": options.max_connections,
        "max_control_line": options.max_control_line,
        "max_payload": options.max_payload,
        "max_pending": options.max_pending,
        "ping_interval": int(options.ping_interval * _NS),
        "ping_max": options.ping_max,
        "write_deadline": int(options.write_deadline * _NS),
        "auth_timeout": options.seconds_to_authenticate,
        "tls_timeout": options.tls.timeout if options.tls is not None else 2,
        **({"max_subscriptions": options.max_subscriptions} if options.max_subscriptions else {}),
    }


def _parts(view: View) -> Document:
    """The blocks of the listeners; empty for missing ones."""
    websocket = view.broker.options.websocket
    block: Document = {}
    if websocket is not None:
        block = {
            "host": websocket.host or view.broker.host,
            "port": view.broker.websocket_port,
            "handshake_timeout": int(websocket.handshake_timeout * _NS),
            "compression": websocket.compression,
            **({"no_tls": True} if websocket.no_tls else {}),
        }
    return {
        "cluster": cluster_block(view),
        "gateway": {},
        "leaf": leaf_block(view),
        "mqtt": {},
        "websocket": block,
        "jetstream": _jetstream(view),
    }


def _jetstream(view: View) -> Document:
    if not view.broker.jetstreams:
        return {}
    return {"config": jetstream_config(view), "stats": jetstream_stats(view), "limits": jetstream_limits(view)}


def jetstream_limits(view: View) -> Document:
    """The default limits of accounts and streams."""
    return {"default_max_consumers": view.broker.options.default_max_consumers}


def _disk_waits(view: View) -> Document:
    """Writes that waited for one of the threads which write. Times in ns."""
    services = view.broker.jetstreams.values()
    writers = [service.writers for service in services if service.writers is not None]
    return {
        "waiters": sum(one.waiting for one in writers),
        "waits": sum(one.waits for one in writers),
        "wait_time": sum(one.waited_ns for one in writers),
        "max_wait_time": max((one.longest_wait_ns for one in writers), default=0),
    }


def jetstream_config(view: View) -> Document:
    """The storage settings of streams."""
    options = view.broker.options
    document: Document = {"store_dir": str(options.store_dir), "sync": options.sync, "strict": True}
    caps = next((service.caps for service in view.broker.jetstreams.values()), None)
    if caps is not None:
        document["max_memory"], document["max_storage"] = caps.caps
    if options.sync in SYNC_INTERVALS:
        document["sync_interval"] = SYNC_INTERVALS[options.sync]
    if options.sync == "always":
        document["sync_always"] = True
    if options.jetstream_domain:
        document["domain"] = options.jetstream_domain
    return document


def jetstream_stats(view: View) -> Document:
    """The storage of all accounts."""
    services = view.broker.jetstreams.values()
    states = [(stream.config.storage, stream.state()) for service in services for stream in service.streams.values()]
    return {
        "writes": write_stats(view),
        **_disk(view),
        "memory": sum(state.bytes for storage, state in states if storage == "memory"),
        "storage": sum(state.bytes for storage, state in states if storage != "memory"),
        "reserved_memory": 0,
        "reserved_storage": 0,
        "accounts": len(view.broker.jetstreams),
        "ha_assets": 0,
        "api": {
            "level": API_LEVEL,
            "total": sum(service.requests for service in services),
            "errors": sum(service.refusals for service in services),
        },
    }


def write_stats(view: View) -> Document:
    """How long the disk takes to make a batch durable and publishers wait for their acks (of the last one to two minutes, in
    ns), what was refused, and what waits. Streams on disk, of all accounts."""
    from headwater.group_commit.write_stats import quantile

    services = view.broker.jetstreams.values()
    stats, now = [service.stats for service in services], time.perf_counter()
    writes, acks = [one.writes for one in stats], [one.acks for one in stats]
    waiting = [stream.waiting for service in services for stream in service.streams.values()]
    return {
        "batches": sum(one.count for one in writes),
        "sync_p50": int(quantile(writes, 0.5, now) * _NS),
        "sync_p99": int(quantile(writes, 0.99, now) * _NS),
        "ack_p50": int(quantile(acks, 0.5, now) * _NS),
        "ack_p99": int(quantile(acks, 0.99, now) * _NS),
        "refused": sum(one.refused for one in stats),
        "waiting_messages": sum(messages for messages, _ in waiting),
        "waiting_bytes": sum(size for _, size in waiting),
    }


def _disk(view: View) -> Document:
    room = next((service.room for service in view.broker.jetstreams.values()), None)
    return {} if room is None else {"disk": {"free": room.free, "size": room.size}}


def counters(view: View) -> Document:
    """All counters."""
    broker, sessions = view.broker, view.sessions()
    totals = view.ledger.totals(sessions)
    register = broker.sessions
    slow = (broker.accounts.slow_consumers if broker.accounts else 0) + (
        register.watch.slow_consumers if register else 0
    )
    stale = register.watch.stale if register else 0
    slow_routes = broker.cluster.watch.slow if broker.cluster else 0
    stale_routes = broker.cluster.watch.stale if broker.cluster else 0
    leafs, slow_leafs, stale_leafs = leaf_counts(view)
    return {
        "connections": len(sessions),
        "total_connections": register.total if register else 0,
        **route_counts(view),
        "leafnodes": leafs,
        "in_msgs": totals.in_messages,
        "in_bytes": totals.in_bytes,
        "in_client_msgs": totals.in_messages,
        "in_client_bytes": totals.in_bytes,
        "out_msgs": totals.out_messages,
        "out_bytes": totals.out_bytes,
        "out_client_msgs": totals.out_messages,
        "out_client_bytes": totals.out_bytes,
        "slow_consumers": slow + slow_routes + slow_leafs,
        "stale_connections": stale + stale_routes + stale_leafs,
        "stalled_clients": 0,
        "subscriptions": view.subscriptions(),
        "slow_consumer_stats": {"clients": slow, "routes": slow_routes, "gateways": 0, "leafs": slow_leafs},
        "stale_connection_stats": {"clients": stale, "routes": stale_routes, "gateways": 0, "leafs": stale_leafs},
    }
