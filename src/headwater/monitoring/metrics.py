"""/metrics: the numbers under the names that prometheus-nats-exporter gives them, so that its dashboards work here.

    gnatsd_varz_…       every number in /varz, the path of its names joined by _
    gnatsd_connz_…      counts of /connz and sums over its clients; with `connz_detailed` in the URL, each client's too
    gnatsd_subsz_…      every number in /subsz
    gnatsd_routez_…     routes to other brokers (peer_metrics.py, as the next three)
    gnatsd_leafz_…      connections of leaf nodes
    gnatsd_accountz_…   accounts: what they are
    gnatsd_accstatz_…   accounts: what their clients have done
    gnatsd_healthz_…    0 when all is well
    jetstream_…         /jsz: server, accounts, streams, consumers

`prefix` replaces `gnatsd` and, as the exporter has it, also `jetstream`: configured as `metrics_prefix`, or in the URL.

and those that only we have: what was lost, or had to go another way.

    headwater_leaf_…    connections, remotes_not_joined; headers_dropped, kept_back, refused (may not cross), groups_missed
    headwater_route_…   headers_dropped (a v1 peer cannot have them), groups_missed, passed_on (members that had left)
    headwater_stream_requests_dropped      pulls whose requester was gone
    headwater_disk_…    free_bytes, size_bytes, seconds_until_full (-1: not at the present pace)
    headwater_write_…   sync_p50_seconds, sync_p99_seconds, ack_p50_seconds, ack_p99_seconds; refused, waiting_messages
    headwater_events    by kind, as /eventz counts them
    headwater_iggy_…    clients, refused_sends, streams, topics, topics_unavailable, messages, bytes, groups, messages_behind
    headwater_worker_…  by worker of `serve --workers`: alive, connections, subscriptions, messages, CPU, memory (workers.py)
    headwater_cluster_peers_lost           routes that are configured or were there, and are not (peers.py)

The text format is prometheus-client's. Every value is a gauge, as in the exporter.
"""

from typing import Any

from headwater.model.timestamps import ZERO, parse_time
from headwater.monitoring.board import GAUGES as WORKER_GAUGES
from headwater.monitoring.connz import connz
from headwater.monitoring.gauges import Gauges, flatten
from headwater.monitoring.iggyz import iggy_counts
from headwater.monitoring.interest import subsz
from headwater.monitoring.jsz import healthz, jsz
from headwater.monitoring.leafz import leafz
from headwater.monitoring.peer_metrics import account_gauges, client_gauges, leaf_gauges, route_gauges
from headwater.monitoring.routez import routez
from headwater.monitoring.steps import Steps
from headwater.monitoring.varz import varz
from headwater.monitoring.view import View

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SERVER = ("server_id", "server_name", "cluster", "domain", "meta_leader", "is_meta_leader")
_ACCOUNT = (*_SERVER, "account", "account_name", "account_id")
_STREAM = (*_ACCOUNT, "stream_name", "stream_leader", "is_stream_leader", "stream_raft_group")
_CONSUMER = (*_STREAM, "consumer_name", "consumer_leader", "is_consumer_leader", "consumer_desc")


def gather(view: View, prefix: str = "", *, detailed: bool = False) -> Steps:
    """All gauges with their present values, in steps. `prefix` replaces those of the exporter. `detailed`: also each
    client's."""
    core, streams = prefix or "gnatsd", prefix or "jetstream"
    gauges = Gauges()
    server = {"server_id": view.broker.server_id}
    general = varz(view)
    flatten(gauges, f"{core}_varz", general, server)
    yield
    clients = yield from connz(view, {"limit": str(1 << 31)})
    yield from client_gauges(gauges, clients, f"{core}_connz", server, detailed=detailed)
    subscriptions = yield from subsz(view, {})
    flatten(gauges, f"{core}_subsz", subscriptions, server)
    health = healthz(view, {})[1]["status"]
    gauges.set(f"{core}_healthz_status", server, 0 if health == "ok" else 1)
    gauges.set(f"{core}_healthz_status_value", {**server, "value": str(health)}, int(health == "ok"))
    route_gauges(gauges, routez(view, {}), f"{core}_routez", server)
    leaf_gauges(gauges, leafz(view, {}), f"{core}_leafz", server)
    yield from account_gauges(gauges, view, core, server)
    yield from _jetstream(gauges, view, streams)
    _own(gauges, view, general, server)
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


def _own(gauges: Gauges, view: View, general: dict[str, Any], server: dict[str, str]) -> None:
    """The gauges that the exporter does not have."""
    for kind, count in view.broker.journal.counts.items():
        gauges.set("headwater_events", {**server, "kind": kind}, count)
    for name, value in iggy_counts(view).items():
        gauges.set(f"headwater_iggy_{name}", server, value)
    for worker in view.workers.read() if view.workers is not None else ():
        labels = {**server, "worker": str(worker["worker"])}
        for name in WORKER_GAUGES:
            gauges.set(f"headwater_worker_{name}", labels, worker[name])
    if view.history is not None and view.broker.cluster is not None:
        gauges.set("headwater_cluster_peers_lost", server, view.history.peers.lost())
    if not general["jetstream"]:
        return
    stats = general["jetstream"]["stats"]
    for name in ("sync_p50", "sync_p99", "ack_p50", "ack_p99"):
        gauges.set(f"headwater_write_{name}_seconds", server, stats["writes"][name] / 1e9)
    for name in ("batches", "refused", "waiting_messages", "waiting_bytes"):
        gauges.set(f"headwater_write_{name}", server, stats["writes"][name])
    if "disk" in stats:
        gauges.set("headwater_disk_free_bytes", server, stats["disk"]["free"])
        gauges.set("headwater_disk_size_bytes", server, stats["disk"]["size"])
        left = view.history.seconds_until_full() if view.history is not None else None
        gauges.set("headwater_disk_seconds_until_full", server, -1 if left is None else left)


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
    gauges.set("headwater_leaf_remotes_not_joined", server, sum(1 for remote in nodes.dialler.remotes if remote.reason))
    for account, space in nodes.spaces.items():
        labels = {**server, "account": account}
        leafs = [leaf for leaf in nodes.joined() if leaf.account is space.account]
        gauges.set("headwater_leaf_connections", labels, len(leafs))
        gauges.set("headwater_leaf_headers_dropped", labels, space.forwarding.headers_dropped)
        gauges.set("headwater_leaf_kept_back", labels, space.kept_back())
        gauges.set("headwater_leaf_refused", labels, space.refused + sum(leaf.arrivals.refused for leaf in leafs))
        gauges.set(
            "headwater_leaf_groups_missed", labels, space.missed + sum(leaf.arrivals.groups_missed for leaf in leafs)
        )


def _jetstream(gauges: Gauges, view: View, prefix: str) -> Steps:
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
        gauges.set(f"{prefix}_{key}", server, value)
    for account_name, service in view.broker.jetstreams.items():
        for held in service.streams.values():
            labels = {"server_id": view.broker.server_id, "account": account_name, "stream_name": held.name}
            gauges.set("headwater_stream_requests_dropped", labels, held.requests_dropped)
    for account in document.get("account_details", ()):
        labels = {**server, "account": account["name"], "account_name": account["name"], "account_id": account["id"]}
        limits = view.broker.jetstreams[account["name"]].limits
        gauges.set(f"{prefix}_account_storage_used", labels, account["storage"])
        gauges.set(f"{prefix}_account_memory_used", labels, account["memory"])
        gauges.set(f"{prefix}_account_max_storage", labels, limits.max_storage)
        gauges.set(f"{prefix}_account_max_memory", labels, limits.max_memory)
        for stream in account.get("stream_detail", ()):
            yield
            _stream(gauges, prefix, stream, {**labels, "stream_name": stream["name"], "stream_leader": name}, name)


def _stream(gauges: Gauges, prefix: str, stream: dict[str, Any], begun: dict[str, str], leader: str) -> None:
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
        gauges.set(f"{prefix}_stream_{key}", labels, value)
    _copies(gauges, prefix, stream, labels)
    for consumer in stream.get("consumer_detail", ()):
        about = {
            "consumer_name": consumer["name"],
            "consumer_leader": leader,
            "is_consumer_leader": "true",
            "consumer_desc": consumer["config"].get("description", ""),
        }
        _consumer(gauges, prefix, consumer, {**labels, **about})


def _copies(gauges: Gauges, prefix: str, stream: dict[str, Any], labels: dict[str, str]) -> None:
    """The lag of a stream behind its origins."""
    origins = [("source", one) for one in stream.get("sources") or ()]
    origins += [("mirror", stream["mirror"])] if stream.get("mirror") else []
    for kind, origin in origins:
        about = {**labels, f"{kind}_name": origin["name"]}
        gauges.set(f"{prefix}_stream_{kind}_lag", about, origin["lag"])
        gauges.set(f"{prefix}_stream_{kind}_active_duration_ns", about, origin["active"])


def _consumer(gauges: Gauges, prefix: str, consumer: dict[str, Any], labels: dict[str, str]) -> None:
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
        gauges.set(f"{prefix}_consumer_{key}", labels, value)


def _seconds_since(consumer: dict[str, Any], activity: dict[str, Any]) -> float:
    """Seconds since the last delivery or ack; -1 when there was none."""
    then, now = activity.get("last_active", ZERO), consumer.get("ts", ZERO)
    return -1.0 if ZERO in (then, now) else (parse_time(now) - parse_time(then)) / 1e9
