"""The gauges of clients, routes, leaf nodes and accounts, with the exporter's names, labels and units.

Times of a client are in ms since 1970, its `uptime` and `idle` in ms, its `rtt` in us; those of a route are in seconds: so
the exporter has them.
"""

from typing import Any

from headwater.model.timestamps import parse_time
from headwater.monitoring.gauges import Gauges
from headwater.monitoring.interest import account_detail, statistics_of
from headwater.monitoring.steps import Steps
from headwater.monitoring.view import View

_SUMS = ("pending_bytes", "subscriptions", "in_bytes", "out_bytes", "in_msgs", "out_msgs")
_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "y": 31536000.0,
}
_LIMITS = ("subs", "data", "payload", "imports", "exports", "wildcards", "leaf")
_STATISTICS = (
    ("current_connections", ("conns",)),
    ("total_connections", ("total_conns",)),
    ("subscriptions", ("num_subscriptions",)),
    ("leaf_nodes", ("leafnodes",)),
    ("sent_messages", ("sent", "msgs")),
    ("sent_bytes", ("sent", "bytes")),
    ("received_messages", ("received", "msgs")),
    ("received_bytes", ("received", "bytes")),
    ("slow_consumers", ("slow_consumers",)),
)


def client_gauges(
    gauges: Gauges, page: dict[str, Any], prefix: str, server: dict[str, str], *, detailed: bool
) -> Steps:
    """/connz: counts and sums; `detailed`: and every client, under the same names with more labels."""
    connections: list[dict[str, Any]] = page["connections"]
    for name in ("num_connections", "total", "offset", "limit"):
        gauges.set(f"{prefix}_{name}", server, float(page[name]))
    for name in _SUMS:
        gauges.set(f"{prefix}_{name}", server, sum(one[name] for one in connections))
        yield
    if not detailed:
        return
    for one in connections:
        labels = {**server, "cid": str(one["cid"]), "port": str(one["port"])}
        for name in ("kind", "type", "ip", "name", "lang", "version", "tls_version", "tls_cipher_suite"):
            labels[name] = str(one.get(name, ""))
        values = {"num_connections": 1.0, **{name: float(one[name]) for name in _SUMS}}
        values["start"] = parse_time(one["start"]) / 1e6
        values["last_activity"] = parse_time(one["last_activity"]) / 1e6
        values["rtt"] = seconds(one.get("rtt", "")) * 1e6
        values["uptime"] = seconds(one["uptime"]) * 1e3
        values["idle"] = seconds(one["idle"]) * 1e3
        for name, value in values.items():
            gauges.set(f"{prefix}_{name}", labels, value)
        yield


def route_gauges(gauges: Gauges, page: dict[str, Any], prefix: str, server: dict[str, str]) -> None:
    """/routez."""
    gauges.set(f"{prefix}_server_id", {**server, "value": page["server_id"]}, 1)
    gauges.set(f"{prefix}_server_name", {**server, "value": page["server_name"]}, 1)
    gauges.set(f"{prefix}_num_routes", server, page["num_routes"])
    for route in page["routes"]:
        labels = {**server, "rid": str(route["rid"])}
        about = {
            name: str(route.get(name, "")) for name in ("remote_id", "remote_name", "account", "ip", "compression")
        }
        gauges.set(f"{prefix}_route_info", {**labels, **about}, 1)
        if route.get("rtt"):
            gauges.set(f"{prefix}_route_rtt_seconds", labels, seconds(route["rtt"]))
        gauges.set(f"{prefix}_route_uptime_seconds", labels, seconds(route["uptime"]))
        for name in ("subscriptions", "in_msgs", "out_msgs", "in_bytes", "out_bytes"):
            gauges.set(f"{prefix}_route_{name}", labels, route[name])


def leaf_gauges(gauges: Gauges, page: dict[str, Any], prefix: str, server: dict[str, str]) -> None:
    """/leafz."""
    gauges.set(f"{prefix}_conn_nodes_total", server, page["leafnodes"])
    for leaf in page["leafs"]:
        labels = {**server, "account": leaf["account"], "account_id": leaf["account"], "ip": leaf["ip"]}
        labels |= {"port": str(leaf["port"]), "name": leaf["name"]}
        gauges.set(f"{prefix}_info", labels, 1)
        gauges.set(f"{prefix}_conn_rtt", labels, seconds(leaf["rtt"]))
        gauges.set(f"{prefix}_conn_subscriptions_total", labels, leaf["subscriptions"])
        for name in ("in_msgs", "out_msgs", "in_bytes", "out_bytes"):
            gauges.set(f"{prefix}_conn_{name}", labels, leaf[name])


def account_gauges(gauges: Gauges, view: View, prefix: str, server: dict[str, str]) -> Steps:
    """/accountz and /accstatz?unused=1, of every account. A limit that is not set is -1, as in a JWT."""
    for account in list(view.broker.accounts or ()):
        detail: dict[str, Any] = account_detail(view, account)
        labels = {**server, "account_id": account.name, "account_name": account.name}
        for name in ("client_connections", "leafnode_connections", "subscriptions"):
            gauges.set(f"{prefix}_accountz_{name}", labels, detail[name])
        for name in ("is_system", "expired", "complete", "jetstream_enabled"):
            gauges.set(f"{prefix}_accountz_{name}", labels, int(bool(detail.get(name))))
        for name in _LIMITS:
            gauges.set(f"{prefix}_accountz_limit_{name}", labels, 1 if name == "wildcards" else -1)
        most = account.options.max_connections if account.options is not None else -1
        gauges.set(f"{prefix}_accountz_limit_conn", labels, most)
        statistics = statistics_of(view, account)
        labels = {**server, "account": account.name, "account_id": account.name, "account_name": account.name}
        for name, path in _STATISTICS:
            value: Any = statistics
            for step in path:
                value = value[step]
            gauges.set(f"{prefix}_accstatz_{name}", labels, value)
        yield


def seconds(span: str) -> float:
    """Of a span as nats-server writes it: `1d2h3m4s`, `1.5ms`; 0 for none."""
    total, number, unit = 0.0, "", ""
    for character in f"{span}0":
        if character.isdigit() or character == ".":
            if unit:
                total += float(number) * _UNITS[unit]
                number, unit = "", ""
            number += character
        else:
            unit += character
    return total
