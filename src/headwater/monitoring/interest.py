"""/subsz, /accountz and /accstatz: subscriptions and statistics by account; and the pages that are always empty.

OMITTED lists the fields of nats-server that are missing, with reasons.
"""

import time
from typing import TYPE_CHECKING

from headwater.errors import ConfigError
from headwater.model.subject import is_literal, is_valid_subject
from headwater.model.subject_match import matches
from headwater.model.timestamps import format_time
from headwater.monitoring.ledger import Document
from headwater.monitoring.parameters import Parameters, page, switch
from headwater.monitoring.steps import Steps
from headwater.monitoring.view import View

if TYPE_CHECKING:
    from headwater.exchange.account import Account

SLICE = 500  # subscriptions; one takes some 5 us
PAGE = 1024  # subscriptions in an answer, unless `limit` says otherwise

OMITTED = {
    "num_cache": "the size of the cache is not a number of its own",
    "num_inserts": "insertions are not counted",
    "num_removes": "removals are not counted",
    "num_matches": "look-ups are not counted: it would cost each message",
    "cache_hit_rate": "nor how many the cache answered",
    "max_fanout": "nor how many each found",
    "avg_fanout": "nor how many each found",
    "account_detail.sublist_stats": "as above",
    "account_detail.imports": "they are in the configuration",
    "account_detail.exports": "they are in the configuration",
    "account_detail.responses": "reply subjects of services are not listed",
}


def subsz(view: View, parameters: Parameters) -> Steps:
    """/subsz and /subscriptionsz, in steps. Raises ConfigError from the first, for parameters that mean nothing."""
    offset, limit = page(parameters, PAGE)
    document: Document = {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "num_subscriptions": view.subscriptions(),
        "total": 0,
        "offset": offset,
        "limit": limit,
    }
    wanted = parameters.get("test", "").encode()
    if wanted and not (is_valid_subject(wanted) and is_literal(wanted)):
        raise ConfigError(f"invalid test subject, must be valid publish subject: {parameters['test']}")
    if switch(parameters, "subs"):
        found = yield from _subscriptions(view, parameters.get("acc", ""), wanted)
        document["total"] = len(found)
        if found:
            document["subscriptions_list"] = found[offset : offset + limit]
    return document


def _subscriptions(view: View, account: str, wanted: bytes) -> Steps:
    """The subscriptions of clients; those of the broker itself have no client."""
    found: list[Document] = []
    looked = 0
    for session in view.sessions():
        name = session.membership.identity.account
        if account and name != account:
            continue
        for one in list(session.outlet.subscriptions.values()):
            looked += 1
            if looked % SLICE == 0:
                yield
            if wanted and not matches(one.subject, wanted):
                continue
            detail: Document = {"account": name, "account_tag": name, "subject": _text(one.subject)}
            if one.queue:
                detail["qgroup"] = _text(one.queue)
            delivered = session.membership.router.sublist.delivered(one)
            detail |= {"sid": _text(one.sid), "msgs": delivered, "cid": session.client_id}
            if one.maximum:
                detail["max"] = one.maximum
            found.append(detail)
    return found


def accountz(view: View, parameters: Parameters) -> Document:
    """/accountz: the names of all accounts, or the details of one (`acc`)."""
    accounts = list(view.broker.accounts or ())
    document: Document = {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "system_account": view.broker.system_account,
    }
    name = parameters.get("acc", "")
    if not name:
        document["accounts"] = [account.name for account in accounts]
        return document
    account = next((one for one in accounts if one.name == name), None)
    if account is None:
        raise ConfigError(f"Account {name} does not exist")
    document["account_detail"] = account_detail(view, account)
    return document


def account_detail(view: View, account: "Account") -> Document:
    """One account."""
    return {
        "account_name": account.name,
        "update_time": format_time(view.started),
        **({"is_system": True} if account.is_system else {}),
        "expired": False,
        "complete": True,
        "jetstream_enabled": account.name in view.broker.jetstreams,
        "leafnode_connections": account.leafnodes,
        "client_connections": account.connections,
        "subscriptions": account.router.sublist.count,
        "name_tag": account.name,
    }


def accstatz(view: View, parameters: Parameters) -> Document:
    """/accstatz: the statistics of each account's clients; accounts without clients only with `unused`."""
    unused = switch(parameters, "unused")
    statistics = [
        statistics_of(view, account) for account in view.broker.accounts or () if unused or account.connections
    ]
    return {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "account_statz": statistics,
    }


def statistics_of(view: View, account: "Account") -> Document:
    """The statistics of an account's clients, including disconnected ones."""
    totals = view.ledger.totals(view.sessions(), account.name)
    nothing = {"msgs": 0, "bytes": 0}
    others = {"gateways": nothing, "routes": nothing}
    leafs = view.broker.leafnodes.joined() if view.broker.leafnodes is not None else []
    outlets = [(leaf, leaf.outlet) for leaf in leafs if leaf.account is account and leaf.outlet is not None]
    sent = {
        "msgs": sum(outlet.out_messages for _, outlet in outlets),
        "bytes": sum(outlet.out_bytes for _, outlet in outlets),
    }
    received = {
        "msgs": sum(leaf.traffic.messages for leaf, _ in outlets),
        "bytes": sum(leaf.traffic.bytes for leaf, _ in outlets),
    }
    return {
        "acc": account.name,
        "name": account.name,
        "conns": account.connections,
        "leafnodes": account.leafnodes,
        "total_conns": account.connections + account.leafnodes,
        "num_subscriptions": account.router.sublist.count,
        "sent": {"msgs": totals.out_messages, "bytes": totals.out_bytes, **others, "leafs": sent},
        "received": {"msgs": totals.in_messages, "bytes": totals.in_bytes, **others, "leafs": received},
        "slow_consumers": account.router.flusher.slow_consumers,
    }


def gatewayz(view: View) -> Document:
    """/gatewayz: there are no gateways."""
    return {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "outbound_gateways": {},
        "inbound_gateways": {},
    }


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
