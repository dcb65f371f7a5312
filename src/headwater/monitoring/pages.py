"""The pages of monitoring by their path; over HTTP (server.py), and as services of the system account."""

from collections.abc import Callable

from headwater.monitoring.connz import connz
from headwater.monitoring.eventz import eventz
from headwater.monitoring.iggyz import iggyz
from headwater.monitoring.interest import accountz, accstatz, gatewayz, subsz
from headwater.monitoring.jsz import healthz, jsz
from headwater.monitoring.leafz import leafz
from headwater.monitoring.parameters import Parameters, switch
from headwater.monitoring.routez import routez
from headwater.monitoring.varz import varz
from headwater.monitoring.view import View
from headwater.monitoring.workers import workersz


def ipqueuesz(view: View, query: Parameters) -> dict[str, object]:
    """The broker's queues under nats-server's names: requests to JetStream, and messages that wait for the disk.

    Empty ones only with `all`; `queues` filters by a part of the name. nats-server's other queues do not exist here.
    """
    all_of_them = switch(query, "all")
    found: dict[str, tuple[int, int]] = {}
    if view.broker.jetstreams:
        loads = [service.load for service in view.broker.jetstreams.values()]
        found["JetStream API queue"] = sum(load[0] for load in loads), sum(load[1] for load in loads)
    for account, service in view.broker.jetstreams.items():
        for name, stream in service.streams.items():
            found[f"[ACC:{account}] stream '{name}' messages"] = stream.waiting[0], 0
    return {
        name: {"pending": pending, **({"in_progress": in_progress} if in_progress else {})}
        for name, (pending, in_progress) in sorted(found.items())
        if (all_of_them or pending or in_progress) and query.get("queues", "") in name
    }


Page = Callable[[View, Parameters], tuple[int, object]]

PAGES: dict[str, tuple[str, Page]] = {
    "/varz": ("General", lambda view, query: (200, varz(view))),
    "/jsz": ("JetStream", lambda view, query: (200, jsz(view, query))),
    "/connz": ("Connections", lambda view, query: (200, connz(view, query))),
    "/accountz": ("Accounts", lambda view, query: (200, accountz(view, query))),
    "/accstatz": ("Account Stats", lambda view, query: (200, accstatz(view, query))),
    "/subsz": ("Subscriptions", lambda view, query: (200, subsz(view, query))),
    "/subscriptionsz": ("", lambda view, query: (200, subsz(view, query))),
    "/routez": ("Routes", lambda view, query: (200, routez(view, query))),
    "/leafz": ("LeafNodes", lambda view, query: (200, leafz(view, query))),
    "/gatewayz": ("Gateways", lambda view, query: (200, gatewayz(view))),
    "/eventz": ("Events", lambda view, query: (200, eventz(view, query))),
    "/iggyz": ("Iggy", lambda view, query: (200, iggyz(view, query))),
    "/workersz": ("Workers", lambda view, query: (200, workersz(view))),
    "/ipqueuesz": ("", lambda view, query: (200, ipqueuesz(view, query))),
    "/healthz": ("Health Probe", lambda view, query: healthz(view, query)),
}
"""By path: its name in the list ("": not there), and what makes it."""
