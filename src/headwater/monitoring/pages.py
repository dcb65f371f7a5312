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


def ipqueuesz(view: View, asked: Parameters) -> dict[str, object]:
    """The broker's queues under nats-server's names: requests to JetStream, and messages that wait for the disk.

    Empty ones only with `all`; `queues` filters by a part of the name. nats-server's other queues do not exist here.
    """
    all_of_them = switch(asked, "all")
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
        if (all_of_them or pending or in_progress) and asked.get("queues", "") in name
    }


Page = Callable[[View, Parameters], tuple[int, object]]

PAGES: dict[str, tuple[str, Page]] = {
    "/varz": ("General", lambda view, asked: (200, varz(view))),
    "/jsz": ("JetStream", lambda view, asked: (200, jsz(view, asked))),
    "/connz": ("Connections", lambda view, asked: (200, connz(view, asked))),
    "/accountz": ("Accounts", lambda view, asked: (200, accountz(view, asked))),
    "/accstatz": ("Account Stats", lambda view, asked: (200, accstatz(view, asked))),
    "/subsz": ("Subscriptions", lambda view, asked: (200, subsz(view, asked))),
    "/subscriptionsz": ("", lambda view, asked: (200, subsz(view, asked))),
    "/routez": ("Routes", lambda view, asked: (200, routez(view, asked))),
    "/leafz": ("LeafNodes", lambda view, asked: (200, leafz(view, asked))),
    "/gatewayz": ("Gateways", lambda view, asked: (200, gatewayz(view))),
    "/eventz": ("Events", lambda view, asked: (200, eventz(view, asked))),
    "/iggyz": ("Iggy", lambda view, asked: (200, iggyz(view, asked))),
    "/workersz": ("Workers", lambda view, asked: (200, workersz(view))),
    "/ipqueuesz": ("", lambda view, asked: (200, ipqueuesz(view, asked))),
    "/healthz": ("Health Probe", lambda view, asked: healthz(view, asked)),
}
"""By path: its name in the list ("": not there), and what makes it."""
