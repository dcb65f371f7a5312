"""/leafz: the leaf nodes and the hubs of this broker; and their block in /varz.

Hubs that could not be joined are in `remotes`, with the reason, which nats-server only logs.
"""

import time
from typing import TYPE_CHECKING

from headwater.model.timestamps import format_duration, format_time
from headwater.monitoring.ledger import Document
from headwater.monitoring.parameters import Parameters, switch
from headwater.monitoring.view import View

if TYPE_CHECKING:
    from headwater.leaf.connection import LeafConnection


def leafz(view: View, parameters: Parameters) -> Document:
    """The answer; `subs` lists the interest of each, `acc` selects one account. Raises ConfigError for invalid
    parameters."""
    listed, account = switch(parameters, "subs"), parameters.get("acc", "")
    nodes = view.broker.leafnodes
    leafs = [
        _leaf(leaf, listed)
        for leaf in (nodes.joined() if nodes is not None else ())
        if nodes is not None and leaf.account is not None and account in ("", leaf.account.name)
    ]
    document: Document = {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "leafnodes": len(leafs),
        "leafs": leafs,
    }
    if nodes is not None and nodes.dialler.remotes:
        document["remotes"] = [
            {
                "local_account": remote.options.account,
                "urls": list(remote.options.where),
                "joined": not remote.reason,
                **({"reason": remote.reason} if remote.reason else {"connected_to": remote.connected_to}),
            }
            for remote in nodes.dialler.remotes
        ]
    return document


def _leaf(leaf: "LeafConnection", listed: bool) -> Document:
    link, outlet, neighbour = leaf.link, leaf.outlet, leaf.neighbour
    wanted = [subject for subject, _ in neighbour.wants] if neighbour is not None else []
    document: Document = {
        "id": leaf.number,
        "name": leaf.far_end.name,
        "is_spoke": neighbour is not None and neighbour.is_hub,
        "account": leaf.account.name if leaf.account is not None else "",
        "ip": link.host if link is not None else "",
        "port": link.port if link is not None else 0,
        "rtt": format_duration(int(leaf.pulse.heartbeat.round_trip * 1e9) // 1000 * 1000),
        "in_msgs": leaf.traffic.messages,
        "out_msgs": outlet.out_messages if outlet is not None else 0,
        "in_bytes": leaf.traffic.bytes,
        "out_bytes": outlet.out_bytes if outlet is not None else 0,
        "subscriptions": len(wanted),
    }
    if neighbour is not None and neighbour.isolated:
        document["is_isolated"] = True
    if listed and wanted:
        document["subscriptions_list"] = [subject.decode("utf-8", "replace") for subject in wanted]
    mode = leaf.far_end.connect.compress_mode if leaf.far_end.connect is not None else "off"
    document["compression"] = mode or "not supported"
    if leaf.websocket:
        document["websocket"] = True
    return document


def leaf_block(view: View) -> Document:
    """`leaf` of /varz; empty without leaf nodes."""
    options, nodes = view.broker.options.leafnodes, view.broker.leafnodes
    if options is None or nodes is None:
        return {}
    document: Document = {}
    if options.port is not None:
        document = {
            "host": options.host,
            "port": nodes.port,
            "auth_timeout": options.auth_timeout,
            "tls_timeout": options.tls.timeout if options.tls is not None else 2,
        }
        if options.tls is not None:
            document["tls_required"] = True
            if options.tls.verify:
                document["tls_verify"] = True
    if options.remotes:
        document["remotes"] = [
            {"local_account": remote.account, "urls": [url.partition("://")[2] or url for url in remote.where]}
            for remote in options.remotes
        ]
    return document


def leaf_counts(view: View) -> tuple[int, int, int]:
    """The numbers of connections joined now, closed as slow consumers, and closed as stale."""
    nodes = view.broker.leafnodes
    return (len(nodes.joined()), nodes.watch.slow, nodes.watch.stale) if nodes is not None else (0, 0, 0)
