"""/routez: the other brokers of the cluster; and the cluster's block in /varz. OMITTED lists the missing fields, with
reasons."""

import time
from typing import TYPE_CHECKING

from headwater.model.timestamps import format_duration, format_time
from headwater.monitoring.ledger import Document
from headwater.monitoring.parameters import Parameters, switch
from headwater.monitoring.view import View, uptime

if TYPE_CHECKING:
    from headwater.cluster.mesh import Peer
    from headwater.cluster.route import Route
    from headwater.cluster.service import Cluster
    from headwater.wire.route_lines import RouteInfo

OMITTED = {
    "routes.account": "one route carries all accounts",
    "routes.compression": "routes are not compressed",
}

_NS = 1_000_000_000


def routez(view: View, parameters: Parameters) -> Document:
    """The answer; `subs` lists the interest of each peer. Raises ConfigError for invalid parameters."""
    listed = switch(parameters, "subs")
    cluster = view.broker.cluster
    routes = [_route(cluster, peer, route, listed) for peer, route in cluster.routes()] if cluster is not None else []
    document: Document = {
        "server_id": view.broker.server_id,
        "server_name": view.broker.options.server_name or view.broker.server_id,
        "now": format_time(time.time_ns()),
        "num_routes": len(routes),
        "routes": routes,
    }
    if cluster is not None and cluster.mesh is not None:
        document |= _permissions(cluster.mesh.info)
    return document


def _permissions(holder: "RouteInfo | Peer") -> Document:
    """`import` and `export` of a broker, if it has such rules."""
    rules = {"import": holder.imports, "export": holder.exports}
    return {name: lists.document() for name, lists in rules.items() if lists is not None}


def _route(cluster: "Cluster", peer: "Peer", route: "Route", listed: bool) -> Document:
    link, outlet = route.link, route.outlet
    wanted = cluster.wants_of(route)
    now, now_ns = cluster.clock(), time.time_ns()
    document: Document = {
        "rid": route.number,
        "remote_id": peer.server_id,
        "remote_name": peer.name,
        "did_solicit": bool(route.dialled),
        "is_configured": bool(peer.configured),
        "ip": link.host if link is not None else "",
        "port": link.port if link is not None else 0,
        "start": format_time(now_ns - int((now - route.opened) * _NS)),
        "last_activity": format_time(now_ns - int((now - route.last_read) * _NS)),
        "uptime": uptime(int((now - route.opened) * _NS)),
        "idle": uptime(int((now - route.last_read) * _NS)),
        "pending_size": link.pending if link is not None else 0,
        "in_msgs": route.traffic.messages,
        "in_bytes": route.traffic.bytes,
        "out_msgs": outlet.out_messages if outlet is not None else 0,
        "out_bytes": outlet.out_bytes if outlet is not None else 0,
        "subscriptions": len(wanted),
    }
    document |= _permissions(peer)
    if listed and wanted:
        document["subscriptions_list"] = [subject.decode("utf-8", "replace") for subject in wanted]
    if route.pulse.heartbeat.round_trip:
        document["rtt"] = format_duration(int(route.pulse.heartbeat.round_trip * 1e9) // 1000 * 1000)
    return document


def cluster_block(view: View) -> Document:
    """`cluster` of /varz; empty without one."""
    options, cluster = view.broker.options.cluster, view.broker.cluster
    if options is None or cluster is None:
        return {}
    document: Document = {
        "name": options.name or view.broker.server_id,
        "addr": options.host,
        "cluster_port": cluster.port,
        "auth_timeout": options.auth_timeout or 2,
        "tls_timeout": options.tls.timeout if options.tls is not None else 2,
        "pool_size": -1,  # nats-server's value for one connection per peer
    }
    if options.write_deadline:
        document["write_deadline"] = int(options.write_deadline * _NS)
    urls = [url.rpartition("@")[2].rpartition("/")[2] for url in options.routes]  # without user and password
    if urls:
        document["urls"] = urls
    if options.tls is not None:
        document |= {"tls_required": True, "tls_verify": True}
    return document


def route_counts(view: View) -> Document:
    """`routes` and `remotes` of /varz."""
    cluster = view.broker.cluster
    if cluster is None:
        return {"routes": 0, "remotes": 0}
    return {"routes": len(cluster.routes()), "remotes": len(cluster.peers)}
