"""The description of a client in nats-server's events and the header Nats-Request-Info, without credentials."""

import json
from typing import TYPE_CHECKING, Protocol

from headwater.exchange.account import Account
from headwater.exchange.client_state import Heartbeat, Login, Membership, Terms
from headwater.model.timestamps import format_time

if TYPE_CHECKING:
    from headwater.exchange.sublist import Outlet

Document = dict[str, object]


class Peer(Protocol):
    """The other end of a connection."""

    @property
    def host(self) -> str: ...


class Client(Protocol):
    """The attributes of a client that are shown; a session has them. `since`: ns since 1970."""

    client_id: int

    @property
    def link(self) -> Peer | None: ...

    since: int
    login: Login
    membership: Membership
    terms: Terms
    heartbeat: Heartbeat


def client_info(session: Client, *, account: str = "", server: str = "", cluster: str = "") -> Document:
    """The description of a client. `account`: the account to show, by default the client's. Empty fields are left out."""
    host = session.link.host if session.link is not None else ""
    document: Document = {
        "start": format_time(session.since),
        "host": host,
        "id": session.client_id,
        "acc": account or session.membership.identity.account,
        "user": session.login.refused_user or session.membership.identity.user,
        "name": session.terms.name,
        "lang": session.terms.lang,
        "ver": session.terms.version,
        "rtt": round_trip_ns(session),
        "server": server,
        "cluster": cluster,
    }
    found = {name: value for name, value in document.items() if value}
    return {
        **found,
        "kind": "Client",
        "client_type": "nats" if session.login.connection_type == "STANDARD" else "websocket",
    }


def round_trip_ns(session: Client) -> int:
    """The last PING's round trip in ns; 0 before the first."""
    return int(session.heartbeat.round_trip * 1e9)


def request_info(account: Account, publisher: "Outlet | None", share: bool, reply: bytes = b"") -> bytes:
    """The JSON of Nats-Request-Info: the client of `account` that sent a request to a service of another account.

    `share`: the whole description, with server and cluster; otherwise only account and round trip. `reply`: the reply
    subject that the request came with, where it says something itself.
    """
    server, cluster = (account.server_name, account.cluster_name()) if share else ("", "")
    session = publisher.link.owner if publisher is not None else None  # type: ignore[attr-defined]
    if session is None or not hasattr(session, "heartbeat"):  # the broker itself, or a peer
        known = {"server": server, "cluster": cluster} if cluster else {}  # nats-server places streams by the cluster
        document: Document = {"acc": account.name, **known}
    elif server:
        document = client_info(session, account=account.name, server=server, cluster=cluster)
    else:
        document = {"acc": account.name, **({"rtt": rtt} if (rtt := round_trip_ns(session)) else {})}
    if reply:
        document = {**document, "reply": reply.decode("utf-8", "replace")}
    return json.dumps(document, separators=(",", ":")).encode()
