"""The pages of monitoring by their path; over HTTP (server.py), and as services of the system account."""

from collections.abc import Callable

from headwater.broker.monitoring.connz import connz
from headwater.broker.monitoring.interest import accountz, accstatz, gatewayz, leafz, subsz
from headwater.broker.monitoring.jsz import healthz, jsz
from headwater.broker.monitoring.parameters import Parameters
from headwater.broker.monitoring.routez import routez
from headwater.broker.monitoring.varz import varz
from headwater.broker.monitoring.view import View

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
    "/leafz": ("LeafNodes", lambda view, asked: (200, leafz(view))),
    "/gatewayz": ("Gateways", lambda view, asked: (200, gatewayz(view))),
    "/healthz": ("Health Probe", lambda view, asked: healthz(view, asked)),
}
"""By path: its name in the list ("": not there), and what makes it."""
