"""Who a client is, as nats-server's events and the header Nats-Request-Info say it: never its credentials."""

import json
from typing import TYPE_CHECKING

from headwater.broker.jetstream.timestamps import format_time

if TYPE_CHECKING:
    from headwater.broker.session import Session
    from headwater.broker.sublist import Outlet

Document = dict[str, object]


def client_info(session: "Session", *, account: str = "", server: str = "") -> Document:
    """A client. `account`: the one to show, its own when empty. Fields without a value are left out."""
    host = session.link.host if session.link is not None else ""
    document: Document = {
        "start": format_time(session.since),
        "host": host,
        "id": session.client_id,
        "acc": account or session.identity.account,
        "user": session.asked_user or session.identity.user,
        "name": session.name,
        "lang": session.lang,
        "ver": session.version,
        "rtt": round_trip_ns(session),
        "server": server,
    }
    found = {name: value for name, value in document.items() if value}
    return {**found, "kind": "Client", "client_type": "nats" if session.connection_type == "STANDARD" else "websocket"}


def round_trip_ns(session: "Session") -> int:
    """How long the last PING took, in ns; 0 before the first."""
    return int(session.round_trip * 1e9)


def request_info(account: str, publisher: "Outlet | None", server: str) -> bytes:
    """The JSON of Nats-Request-Info. `server`: with it, all of the client is shown; without, its account and round trip."""
    session = publisher.link.owner if publisher is not None else None  # type: ignore[attr-defined]
    if session is None or not hasattr(session, "round_trip"):  # the broker itself, or a peer
        document: Document = {"acc": account}
    elif server:
        document = client_info(session, account=account, server=server)
    else:
        document = {"acc": account, **({"rtt": rtt} if (rtt := round_trip_ns(session)) else {})}
    return json.dumps(document, separators=(",", ":")).encode()
