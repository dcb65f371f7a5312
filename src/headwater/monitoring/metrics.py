"""/metrics: the numbers under the names that prometheus-nats-exporter gives them, so that its dashboards work here.

    gnatsd_varz_…       every number in /varz, the path of its names joined by _
    gnatsd_connz_…      counts of /connz and sums over its clients
    gnatsd_healthz_…    0 when all is well
    jetstream_…         /jsz: server, accounts, streams, consumers

and those that only we have: what was lost, or had to go another way.

    headwater_leaf_…    connections, remotes_not_joined; headers_dropped, kept_back, refused (may not cross), groups_missed
    headwater_route_…   headers_dropped (a v1 peer cannot have them), groups_missed, passed_on (members that had left)
    headwater_stream_requests_dropped      pulls whose requester was gone

The text format is prometheus-client's. Every value is a gauge, as the exporter has them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headwater.model.timestamps import ZERO, parse_time
from headwater.monitoring.connz import connz
from headwater.monitoring.jsz import healthz, jsz
from headwater.monitoring.ledger import Document
from headwater.monitoring.steps import Steps
from headwater.monitoring.varz import varz
from headwater.monitoring.view import View

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SLICE = 200  # values that are written in one step, some 10 us each

_LABELLED = {"server_id", "server_name", "version", "domain", "leader", "name"}
_TIMES = {"start", "config_load_time"}
_CLIENT_SUMS = ("pending_bytes", "subscriptions", "in_bytes", "out_bytes", "in_msgs", "out_msgs")

_SERVER = ("server_id", "server_name", "cluster", "domain", "meta_leader", "is_meta_leader")
_ACCOUNT = (*_SERVER, "account", "account_name", "account_id")
_STREAM = (*_ACCOUNT, "stream_name", "stream_leader", "is_stream_leader", "stream_raft_group")
_CONSUMER = (*_STREAM, "consumer_name", "consumer_leader", "is_consumer_leader", "consumer_desc")


class Gauges:
    """Gauges by name, each made when it first has a value."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily] = {}

    def set(self, name: str, labels: dict[str, str], value: float) -> None:
        """One value."""
        from prometheus_client.core import GaugeMetricFamily

        family = self._families.get(name)
        if family is None:
            family = self._families[name] = GaugeMetricFamily(name, name, labels=list(labels))
        family.add_metric(list(labels.values()), value)

    def parts(self) -> "Iterator[Gauges]":
        """All of them, a family or some small ones at a time."""
        some = Gauges()
        size = 0
        for name, family in self._families.items():
            some._families[name] = family
            size += len(family.samples)
            if size >= SLICE:
                yield some
                some, size = Gauges(), 0
        yield some

    def collect(self) -> "Iterator[GaugeMetricFamily]":
        """For a registry of prometheus-client."""
        yield from self._families.values()


def gather(view: View) -> Steps:
    """All gauges, now; in steps."""
    gauges = Gauges()
    server = {"server_id": view.broker.server_id}
    _flatten(gauges, "gnatsd_varz", varz(view), server)
    yield
    clients = yield from connz(view, {"limit": str(1 << 31)})
    for name in ("num_connections", "total", "offset", "limit"):
        gauges.set(f"gnatsd_connz_{name}", server, float(clients[name]))
    connections: list[dict[str, Any]] = clients["connections"]
    for name in _CLIENT_SUMS:
        gauges.set(f"gnatsd_connz_{name}", server, sum(one[name] for one in connections))
        yield
    health = healthz(view, {})[1]["status"]
    gauges.set("gnatsd_healthz_status", server, 0 if health == "ok" else 1)
    gauges.set("gnatsd_healthz_status_value", {**server, "value": str(health)}, int(health == "ok"))
    yield from _jetstream(gauges, view)
    _routes(gauges, view, server)
    _leafs(gauges, view, server)
    return gauges


def render(gauges: Gauges) -> Steps:
    """The text that Prometheus reads; a step writes SLICE values."""
    from prometheus_client import CollectorRegistry, generate_latest

    pieces = []
    for some in gauges.parts():
        registry = CollectorRegistry()
        registry.register(some)
        pieces.append(generate_latest(registry))
        yield
    return b"".join(pieces)


def _flatten(gauges: Gauges, prefix: str, document: Document, server: dict[str, str]) -> None:
    """Numbers by their path; a few strings as labels of a gauge that is 1; times in seconds."""
    for key, value in document.items():
        name = "_".join(filter(None, f"{prefix}_{key}".replace("/", "_").split("_")))
        if isinstance(value, dict):
            _flatten(gauges, name, value, server)
        elif isinstance(value, bool):
            continue
        elif isinstance(value, int | float):
            gauges.set(name, server, value)
        elif key in _TIMES:
            gauges.set(name, server, parse_time(str(value)) / 1e9)
        elif key in _LABELLED:
            gauges.set(name, {**server, "value": str(value)}, 1)


def _routes(gauges: Gauges, view: View, server: dict[str, str]) -> None:
    cluster = view.broker.cluster
    if cluster is None:
        return
    for account, space in cluster.spaces():
        labels = {**server, "account": account}
        gauges.set("headwater_route_headers_dropped", labels, space.forwarding.headers_dropped)
        gauges.set("headwater_route_groups_missed", labels, space.arrivals.groups_missed)
        gauges.set("headwater_route_passed_on", labels, space.arrivals.passed_on)


def _leafs(gauges: Gauges, view: View, server: dict[str, str]) -> None:
    nodes = view.broker.leafnodes
    if nodes is None:
        return
    gauges.set("headwater_leaf_remotes_not_joined", server, sum(1 for remote in nodes.remotes if remote.reason))
    for account, space in nodes.spaces():
        labels = {**server, "account": account}
        leafs = [leaf for leaf in nodes.joined() if leaf.account is space.account]
        gauges.set("headwater_leaf_connections", labels, len(leafs))
        gauges.set("headwater_leaf_headers_dropped", labels, space.forwarding.headers_dropped)
        gauges.set("headwater_leaf_kept_back", labels, space.kept_back())
        gauges.set("headwater_leaf_refused", labels, space.refused + sum(leaf.refused for leaf in leafs))
        gauges.set("headwater_leaf_groups_missed", labels, space.missed + sum(leaf.groups_missed for leaf in leafs))


def _jetstream(gauges: Gauges, view: View) -> Steps:
    document: dict[str, Any] = yield from jsz(view, {"accounts": "1", "streams": "1", "consumers": "1", "config": "1"})
    options = view.broker.options
    name = options.server_name or view.broker.server_id
    domain = options.jetstream_domain
    server = dict(zip(_SERVER, (view.broker.server_id, name, "", domain, "", "true"), strict=True))
    values = {
        "server_jetstream_disabled": int(bool(document.get("disabled"))),
        "server_total_streams": document["streams"],
        "server_total_consumers": document["consumers"],
        "server_total_messages": document["messages"],
        "server_total_message_bytes": document["bytes"],
        "server_max_memory": document["config"].get("max_memory", -1),
        "server_max_storage": document["config"].get("max_storage", -1),
    }
    findings = [finding for service in view.broker.jetstreams.values() for finding in service.findings()]
    values["server_unavailable_streams"] = sum(finding.severity == "unavailable" for finding in findings)
    values["server_lost_messages"] = sum(finding.lost for finding in findings)
    for key, value in values.items():
        gauges.set(f"jetstream_{key}", server, value)
    for account_name, service in view.broker.jetstreams.items():
        for held in service.streams.values():
            labels = {"server_id": view.broker.server_id, "account": account_name, "stream_name": held.name}
            gauges.set("headwater_stream_requests_dropped", labels, held.requests_dropped)
    for account in document.get("account_details", ()):
        labels = {**server, "account": account["name"], "account_name": account["name"], "account_id": account["id"]}
        gauges.set("jetstream_account_storage_used", labels, account["storage"])
        gauges.set("jetstream_account_memory_used", labels, account["memory"])
        for stream in account.get("stream_detail", ()):
            yield
            _stream(gauges, stream, {**labels, "stream_name": stream["name"], "stream_leader": name}, name)


def _stream(gauges: Gauges, stream: dict[str, Any], begun: dict[str, str], leader: str) -> None:
    labels = {**begun, "is_stream_leader": "true", "stream_raft_group": ""}
    state, config = stream["state"], stream["config"]
    values = {
        "total_messages": state["messages"],
        "total_bytes": state["bytes"],
        "first_seq": state["first_seq"],
        "last_seq": state["last_seq"],
        "consumer_count": state["consumer_count"],
        "subject_count": state.get("num_subjects", 0),
        "refused_writes": stream["writes"]["refused"],
        "waiting_messages": stream["writes"]["waiting_messages"],
        "waiting_bytes": stream["writes"]["waiting_bytes"],
        "limit_messages": config.get("max_msgs", -1),
        "limit_bytes": config.get("max_bytes", -1),
    }
    for key, value in values.items():
        gauges.set(f"jetstream_stream_{key}", labels, value)
    for consumer in stream.get("consumer_detail", ()):
        about = {
            "consumer_name": consumer["name"],
            "consumer_leader": leader,
            "is_consumer_leader": "true",
            "consumer_desc": consumer["config"].get("description", ""),
        }
        _consumer(gauges, consumer, {**labels, **about})


def _consumer(gauges: Gauges, consumer: dict[str, Any], labels: dict[str, str]) -> None:
    delivered, floor = consumer["delivered"], consumer["ack_floor"]
    values = {
        "delivered_consumer_seq": delivered["consumer_seq"],
        "delivered_stream_seq": delivered["stream_seq"],
        "num_ack_pending": consumer["num_ack_pending"],
        "num_redelivered": consumer["num_redelivered"],
        "num_waiting": consumer["num_waiting"],
        "num_pending": consumer["num_pending"],
        "ack_floor_stream_seq": floor["stream_seq"],
        "ack_floor_consumer_seq": floor["consumer_seq"],
        "last_delivery_seconds": _seconds_since(consumer, delivered),
        "last_ack_seconds": _seconds_since(consumer, floor),
    }
    for key, value in values.items():
        gauges.set(f"jetstream_consumer_{key}", labels, value)


def _seconds_since(consumer: dict[str, Any], activity: dict[str, Any]) -> float:
    """Since the last delivery or ack; -1 when there was none."""
    then, now = activity.get("last_active", ZERO), consumer.get("ts", ZERO)
    return -1.0 if ZERO in (then, now) else (parse_time(now) - parse_time(then)) / 1e9
