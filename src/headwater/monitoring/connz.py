"""/connz: connected and recently closed clients, with the fields of nats-server's ConnInfo; OMITTED lists the others."""

import time
from collections.abc import Callable, Generator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.model.timestamps import format_duration, format_time
from headwater.monitoring.ledger import Document, Entry
from headwater.monitoring.parameters import Parameters, identifier, page, switch
from headwater.monitoring.steps import Steps
from headwater.monitoring.view import View, uptime
from headwater.options.access import GLOBAL_ACCOUNT
from headwater.wire import error_texts

if TYPE_CHECKING:
    from headwater.exchange.session import Session
    from headwater.exchange.sublist import Subscription

SLICE = 25  # clients; one takes some 100 us
SUBSCRIPTIONS = 1000  # one takes some 3 us
LOOKED_AT = 1000  # clients; recording the activity of one takes a microsecond

PAGE = 1024  # clients in an answer, unless `limit` says otherwise

OMITTED = {
    "stalls": "who is held back is not counted by client",
    "tls_peer_certs": "certificates are checked, not kept",
    "tls_first": "it is not kept which side began",
    "jwt": "it may be a secret",
    "issuer_key": "it is in the JWT",
    "tags": "they are in the JWT",
    "mqtt_client": "there is no MQTT",
    "proxy": "there is no proxy protocol",
}

REASONS = {
    error_texts.UNKNOWN_OPERATION: "Protocol Violation",
    error_texts.CONTROL_LINE_TOO_LONG: "Maximum Control Line Exceeded",
    error_texts.MAXIMUM_PAYLOAD: "Maximum Message Payload Exceeded",
    error_texts.AUTHORIZATION: "Authentication Failure",
    error_texts.AUTHENTICATION_TIMEOUT: "Authentication Timeout",
    error_texts.INVALID_CLIENT_PROTOCOL: "Bad Client Protocol Version",
    error_texts.NO_RESPONDERS_NEEDS_HEADERS: "No Responders Requires Headers",
    error_texts.MAXIMUM_CONNECTIONS: "Maximum Connections Exceeded",
    error_texts.MAXIMUM_ACCOUNT_CONNECTIONS: "Maximum Account Connections Exceeded",
    error_texts.USER_EXPIRED: "Authentication Expired",
    error_texts.ACCOUNT_EXPIRED: "Authentication Expired",
    error_texts.STALE_CONNECTION: "Stale Connection",
    "": "Client Closed",
}
"""The reason of a disconnect, by the text of the last -ERR."""

Key = Callable[[Document], Any]

SORTS: dict[str, tuple[Key, bool]] = {
    "cid": (lambda one: one["cid"], False),
    "start": (lambda one: one["cid"], False),
    "subs": (lambda one: one["subscriptions"], True),
    "pending": (lambda one: one["pending_bytes"], True),
    "msgs_to": (lambda one: one["out_msgs"], True),
    "msgs_from": (lambda one: one["in_msgs"], True),
    "bytes_to": (lambda one: one["out_bytes"], True),
    "bytes_from": (lambda one: one["in_bytes"], True),
    "last": (lambda one: one["last_activity"], True),
    "idle": (lambda one: one["last_activity"], False),
    "uptime": (lambda one: one["start"], False),
    "stop": (lambda one: one["stop"], True),
    "reason": (lambda one: one["reason"], False),
    "rtt": (lambda one: one.get("_rtt", 0.0), True),
}
"""Sort options by name: the key, and whether the largest comes first. RFC 3339 in UTC sorts as text."""

OPEN_SORTS: "dict[str, Callable[[Session, Entry], Any]]" = {
    "cid": lambda one, entry: one.client_id,
    "start": lambda one, entry: one.client_id,
    "subs": lambda one, entry: len(one.outlet.subscriptions),
    "pending": lambda one, entry: one.link.pending if one.link is not None else 0,
    "msgs_to": lambda one, entry: one.outlet.out_messages,
    "msgs_from": lambda one, entry: one.traffic.messages,
    "bytes_to": lambda one, entry: one.outlet.out_bytes,
    "bytes_from": lambda one, entry: one.traffic.bytes,
    "last": lambda one, entry: entry.last_activity,
    "idle": lambda one, entry: entry.last_activity,
    "uptime": lambda one, entry: entry.started,
    "rtt": lambda one, entry: one.heartbeat.round_trip,
}
"""The same of a client that is connected, without its document."""

STATES = ("open", "closed", "all")


def connz(view: View, parameters: Parameters) -> Steps:
    """The answer, in steps of SLICE clients; clients that leave meanwhile are not in it. The first step raises ConfigError
    for invalid parameters."""
    sort = parameters.get("sort") or "cid"
    state = (parameters.get("state") or "open").lower()
    state = {"any": "all"}.get(state, state)
    offset, limit = page(parameters, PAGE)
    if state not in STATES:
        raise ConfigError(f"Error decoding state for {parameters['state']}")
    if sort not in SORTS:
        raise ConfigError(f"invalid sorting option: {sort}")
    if sort in ("stop", "reason") and state != "closed":
        raise ConfigError(f"sort by {sort} only valid on closed connections")
    cid = identifier(parameters, "cid")
    if state == "open" and not any(parameters.get(name) for name in ("acc", "user")):
        return (yield from _of_open(view, parameters, sort, cid, offset, limit))
    found = yield from _select(view, state)
    total = len(found)
    if cid > 0:
        found = [one for one in found if one["cid"] == cid]
        limit = 1
    elif any(parameters.get(name) for name in ("acc", "user")):
        found = [one for one in found if _wanted(one, parameters)]
        total = len(found) if parameters.get("acc") else total
    key, largest_first = SORTS[sort]
    found.sort(key=key, reverse=largest_first)
    shown = found[offset : offset + limit]
    found.clear()
    connections = []
    for at, one in enumerate(shown):
        connections.append((yield from _show(one, parameters)))
        shown[at] = {}  # freed one by one: freeing 10,000 at once takes too long for a step
        if at % SLICE == 0:
            yield
    return _answer(view, connections, total, offset, limit)


def _answer(view: View, connections: list[Document], total: int, offset: int, limit: int) -> Document:
    return {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "num_connections": len(connections),
        "total": total,
        "offset": offset,
        "limit": limit,
        "connections": connections,
    }


def _of_open(view: View, parameters: Parameters, sort: str, cid: int, offset: int, limit: int) -> Steps:
    """The answer about all that are connected. Only those that are shown are described: the live page asks for 200 of 10,000
    every ten seconds."""
    now = time.time_ns()
    sessions = [one for one in (yield from _looked_at(view)) if not one.outlet.closed]
    total = len(sessions)
    if cid > 0:
        sessions, limit = [one for one in sessions if one.client_id == cid], 1
    key = OPEN_SORTS[sort]
    ranks: list[tuple[Any, Session]] = []
    for start in range(0, len(sessions), LOOKED_AT):
        ranks += [(key(one, view.ledger.entry(one)), one) for one in sessions[start : start + LOOKED_AT]]
        yield
    ranks.sort(key=itemgetter(0), reverse=SORTS[sort][1])
    connections = []
    for at, (_, session) in enumerate(ranks[offset : offset + limit]):
        if not session.outlet.closed:
            one = describe(session, view.ledger.entry(session), now)
            connections.append((yield from _show(one, parameters)))
        if at % SLICE == 0:
            yield
    return _answer(view, connections, total, offset, limit)


def describe_departed(session: "Session", entry: Entry, now: int) -> Document:
    """The document of a client that has just left."""
    reason = REASONS.get(session.end_reason, session.end_reason)
    held = [_subscription(session, one) for one in session.outlet.subscriptions.values()]
    ending: Document = {"pending_bytes": 0, "stop": format_time(now), "reason": reason}
    return {**describe(session, entry, now), **ending, "_subscriptions": held}


def describe(session: "Session", entry: Entry, now: int) -> Document:
    """A client's document with every field that a query may select; fields that start with _ are not shown directly."""
    link = session.link
    document: Document = {
        "cid": session.client_id,
        "kind": "Client",
        "type": "websocket" if session.login.connection_type == "WEBSOCKET" else "nats",
        "ip": link.host if link is not None else "",
        "port": link.port if link is not None else 0,
        "start": format_time(entry.started),
        "last_activity": format_time(entry.last_activity),
        "uptime": uptime(now - entry.started),
        "idle": uptime(now - entry.last_activity),
        "pending_bytes": link.pending if link is not None else 0,
        "in_msgs": session.traffic.messages,
        "out_msgs": session.outlet.out_messages,
        "in_bytes": session.traffic.bytes,
        "out_bytes": session.outlet.out_bytes,
        "subscriptions": len(session.outlet.subscriptions),
        "_rtt": session.heartbeat.round_trip,
        "_user": session.membership.identity.user,
        "_account": session.membership.identity.account,
        "_subscriptions": session,
    }
    if session.heartbeat.round_trip:
        document["rtt"] = format_duration(int(session.heartbeat.round_trip * 1e9) // 1000 * 1000)
    terms = session.terms
    for name, value in (("name", terms.name), ("lang", terms.lang), ("version", terms.version)):
        if value:
            document[name] = value
    return document | _encryption(session)


def _encryption(session: "Session") -> Document:
    """TLS version and cipher, where there is TLS."""
    from headwater.net.tls import tls_of

    layer = tls_of(session.link.layer) if session.link is not None else None
    if layer is None:
        return {}
    suite = layer.cipher
    if not suite:
        return {}
    return {"tls_version": "1.3" if suite.startswith("TLS_") else "1.2", "tls_cipher_suite": suite}


def _subscription(session: "Session", subscription: "Subscription") -> Document:
    detail: Document = {"subject": _text(subscription.subject), "sid": _text(subscription.sid)}
    if subscription.queue:
        detail["qgroup"] = _text(subscription.queue)
    detail["msgs"] = session.membership.router.sublist.delivered(subscription)
    if subscription.maximum:
        detail["max"] = subscription.maximum
    detail["cid"] = session.client_id
    return detail


def _looked_at(view: View) -> Generator[None, None, "list[Session]"]:
    """The clients of now, and who of them was active since the last look."""
    sessions = view.sessions()
    for start in range(0, len(sessions), LOOKED_AT):
        if start:
            yield
        view.ledger.look(sessions[start : start + LOOKED_AT])
    return sessions


def _select(view: View, state: str) -> Steps:
    """The documents of the clients in this state."""
    now = time.time_ns()
    sessions = yield from _looked_at(view)
    found: list[Document] = []
    if state != "closed":
        for count, one in enumerate(sessions, 1):
            if not one.outlet.closed:
                found.append(describe(one, view.ledger.entry(one), now))
            if count % SLICE == 0:
                yield
    if state != "open":
        found += [dict(one) for one in view.ledger.closed]
    return found


def _wanted(document: Document, parameters: Parameters) -> bool:
    account, user = parameters.get("acc"), parameters.get("user")
    return (not account or document["_account"] == account) and (not user or document["_user"] == user)


def _list(held: Any) -> Steps:
    """The subscriptions of a client, in steps: there may be 100,000 of them."""
    if isinstance(held, list):
        return held
    found = []
    for count, one in enumerate(list(held.outlet.subscriptions.values()), 1):
        found.append(_subscription(held, one))
        if count % SUBSCRIPTIONS == 0:
            yield
    return found


def _show(document: Document, parameters: Parameters) -> Steps:
    """The part of a client's document that the query selects."""
    shown = {name: value for name, value in document.items() if not name.startswith("_")}
    in_detail = parameters.get("subs", "").lower() == "detail"
    if in_detail or switch(parameters, "subs"):
        subscriptions = yield from _list(document["_subscriptions"])
        if subscriptions and in_detail:
            shown["subscriptions_list_detail"] = subscriptions
        elif subscriptions:
            shown["subscriptions_list"] = [one["subject"] for one in subscriptions]
    if switch(parameters, "auth"):
        if document["_user"]:
            shown["authorized_user"] = document["_user"]
        if document["_account"] != GLOBAL_ACCOUNT:
            shown["account"] = document["_account"]
        shown["name_tag"] = document["_account"]
    return shown


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
