"""Leaf nodes as part of a broker, from `leafnodes` in the options or from `Broker(leaf=...)`."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from headwater.leaf.service import LeafNodes
from headwater.net.limits import LEAFNODES
from headwater.options.leaf import LeafOptions, RemoteOptions
from headwater.version import API_LEVEL, COMPATIBLE_VERSION, VERSION
from headwater.wire import error_texts
from headwater.wire.leaf_lines import PROTOCOL, LeafInfo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.authorization.gate import Gate
    from headwater.exchange.account import Account
    from headwater.exchange.accounts import Accounts
    from headwater.leaf.accepting import Ask
    from headwater.net.journal import Journal
    from headwater.net.link import Link, LinkOwner
    from headwater.options.broker import BrokerOptions


def spoke_of(urls: str | Sequence[str], credentials: "str | Path" = "") -> LeafOptions:
    """A leaf node of the hub at `urls`, for the global account. Raises ConfigError for URLs that cannot be read."""
    listed = (urls,) if isinstance(urls, str) else tuple(urls)
    return LeafOptions(remotes=(RemoteOptions(urls=listed, credentials=credentials),))


def users_changed(nodes: LeafNodes, gate: "Gate", before: "BrokerOptions", after: "BrokerOptions") -> None:
    """A reload has changed the users: spokes meet `gate`, and those whose user has changed end, as clients do. Users of the
    leaf node port itself come with a start."""
    nodes.accepting.gate = gate.for_leafnodes()
    if not nodes.options.users:
        from headwater.exchange.reauthorization import Reauthorization

        judge = Reauthorization(before, after)
        nodes.accepting.judge_again(lambda identity: judge.renewed(identity) or error_texts.AUTHORIZATION)


def make_leafnodes(
    leafs: LeafOptions,
    options: "BrokerOptions",
    accounts: "Accounts",
    gate: "Gate",
    *,
    server_id: str,
    journal: "Journal",
    stores: "Callable[[Account], bool]",
    ask: "Ask",
) -> LeafNodes:
    """The leaf nodes of a broker. Raises ConfigError for certificates that cannot be used, and for unknown accounts."""
    info = LeafInfo(
        server_id=server_id,
        server_name=options.server_name or server_id,
        version=COMPATIBLE_VERSION,
        proto=PROTOCOL,
        git_commit=f"headwater-{VERSION}",
        go="python",
        headers=not options.no_header_support,
        auth_required=True,  # always, as nats-server says it
        max_payload=options.max_payload,
        jetstream=options.jetstream,
        # As a nats-server that is part of no cluster.
        cluster=(options.server_name or server_id) if leafs.remotes and options.cluster is None else "",
        domain=options.jetstream_domain if options.jetstream else "",
        api_lvl=API_LEVEL,
        info_on_connect=True,
        leafnode_urls=(),
    )
    make_link: Callable[[LinkOwner], Link] | None = None
    if leafs.tls is not None and leafs.port is not None:
        from headwater.net.listeners import tls_settings
        from headwater.net.tls import secure_link

        make_link = partial(secure_link, tls_settings(leafs.tls))
    return LeafNodes(
        leafs,
        info,
        accounts,
        gate.for_leafnodes(),
        make_link=make_link,
        stores=stores,
        ask=ask,
        seconds_to_ask=options.seconds_to_authenticate,
        ping_interval=options.ping_interval,
        ping_max=options.ping_max,
        write_deadline=options.write_deadline,
        max_pending=options.max_pending,
        limits=options.connection_limits[LEAFNODES],
        journal=journal,
        wall_clock=time.time,
    )
