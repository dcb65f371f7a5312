"""/varz: the server as a whole. The fields are nats-server's Varz; OMITTED says which are not here, and why."""

import time

from headwater import __version__
from headwater.broker.broker import API_LEVEL, COMPATIBLE_VERSION
from headwater.broker.jetstream.timestamps import format_time
from headwater.broker.monitoring.ledger import Document
from headwater.broker.monitoring.routez import cluster_block, route_counts
from headwater.broker.monitoring.view import View, processors, resident_bytes, uptime
from headwater.broker.options import BrokerOptions

OMITTED = {
    "gomaxprocs": "there is no Go; cores says what the machine has",
    "feature_flags": "there are none",
    "disk_io_wait_stats": "writes wait in threads and are not counted",
    "jetstream.config.max_memory": "no limit unless it is configured",
    "jetstream.config.max_storage": "no limit unless it is configured",
    "jetstream.config.sync_interval": "sync says when a stream is made durable",
    "jetstream.limits": "there are no server-wide limits",
}

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
        "cpu": view.cpu_percent(),
        **counters(view),
        "http_req_stats": dict(sorted(view.requests.items())),
        "config_load_time": format_time(view.started),
        "config_digest": view.digest,
    }


def _identity(view: View, options: BrokerOptions) -> Document:
    monitoring = view.options
    path = "" if monitoring.base_path == "/" else monitoring.base_path
    document: Document = {
        "server_id": view.broker.server_id,
        "server_name": options.server_name or view.broker.server_id,
        "version": COMPATIBLE_VERSION,
        "proto": 1,
        "git_commit": f"headwater-{__version__}",
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
    """The blocks of the listeners; empty for those that are not there."""
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
        "leaf": {},
        "mqtt": {},
        "websocket": block,
        "jetstream": _jetstream(view),
    }


def _jetstream(view: View) -> Document:
    if not view.broker.jetstreams:
        return {}
    return {"config": jetstream_config(view), "stats": jetstream_stats(view)}


def jetstream_config(view: View) -> Document:
    """How streams are stored."""
    options = view.broker.options
    limits = options.jetstream_limits
    document: Document = {"store_dir": str(options.store_dir), "sync": options.sync, "strict": True}
    if limits.max_memory >= 0:
        document["max_memory"] = limits.max_memory
    if limits.max_file >= 0:
        document["max_storage"] = limits.max_file
    if options.sync == "always":
        document["sync_always"] = True
    if options.jetstream_domain:
        document["domain"] = options.jetstream_domain
    return document


def jetstream_stats(view: View) -> Document:
    """What is stored, by all accounts."""
    services = view.broker.jetstreams.values()
    states = [(stream.config.storage, stream.state()) for service in services for stream in service.streams.values()]
    return {
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


def counters(view: View) -> Document:
    """Everything that is counted."""
    broker, sessions = view.broker, view.sessions()
    totals = view.ledger.totals(sessions)
    register = broker.sessions
    slow = (broker.accounts.slow_consumers if broker.accounts else 0) + (register.slow_consumers if register else 0)
    stale = register.stale if register else 0
    slow_routes = broker.cluster.slow if broker.cluster else 0
    stale_routes = broker.cluster.stale if broker.cluster else 0
    return {
        "connections": len(sessions),
        "total_connections": register.total if register else 0,
        **route_counts(view),
        "leafnodes": 0,
        "in_msgs": totals.in_messages,
        "in_bytes": totals.in_bytes,
        "in_client_msgs": totals.in_messages,
        "in_client_bytes": totals.in_bytes,
        "out_msgs": totals.out_messages,
        "out_bytes": totals.out_bytes,
        "out_client_msgs": totals.out_messages,
        "out_client_bytes": totals.out_bytes,
        "slow_consumers": slow + slow_routes,
        "stale_connections": stale + stale_routes,
        "stalled_clients": 0,
        "subscriptions": view.subscriptions(),
        "slow_consumer_stats": {"clients": slow, "routes": slow_routes, "gateways": 0, "leafs": 0},
        "stale_connection_stats": {"clients": stale, "routes": stale_routes, "gateways": 0, "leafs": 0},
    }
