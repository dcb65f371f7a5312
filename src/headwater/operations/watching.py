"""Live advisories and events of servers and streams, one line each, and rates of traffic.

An event is a JSON document with a `type` such as "io.nats.server.advisory.v1.client_connect"; the end of a server has
its subject alone. Events of unknown types are shown by their subject and the fields that most events have.
"""

from typing import Any, NamedTuple

import msgspec

ADVISORIES = ("$JS.EVENT.ADVISORY.>", "$JS.EVENT.METRIC.>")
OF_SYSTEM = (
    "$SYS.ACCOUNT.*.CONNECT",
    "$SYS.ACCOUNT.*.DISCONNECT",
    "$SYS.SERVER.*.CLIENT.AUTH.ERR",
    "$SYS.SERVER.*.LAMEDUCK",
    "$SYS.SERVER.*.SHUTDOWN",
)
"""Only users of the system account get these."""
_NAMED = ("stream", "consumer", "action", "stream_seq", "deliveries", "reason", "error")
_BEHIND_ADVISORY = 3  # tokens of $JS.EVENT.ADVISORY


class Event(NamedTuple):
    """One event: `kind` in one word, `text` for people, `document` as it came (empty for what is no JSON)."""

    kind: str
    text: str
    document: dict[str, Any]


def read_event(subject: str, payload: bytes) -> Event:
    """Parse a message on one of the subjects."""
    try:
        document = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        document = None
    if not isinstance(document, dict):
        return Event(_last(subject), subject, {})
    kind = str(document.get("type", "")).rpartition(".")[2] or _last(subject)
    client, server = document.get("client"), document.get("server")
    if isinstance(client, dict):
        text = _client(client)
        text += f": {document['reason']}" if document.get("reason") else ""
    elif subject.startswith("$JS.EVENT"):
        place = ".".join(subject.split(".")[_BEHIND_ADVISORY:])
        facts = [f"{name} {document[name]}" for name in _NAMED if document.get(name) not in (None, "")]
        text = ", ".join(facts) or place
    else:
        name = document.get("name") or (server.get("name") if isinstance(server, dict) else "")
        text = f"server {name}" if name else subject
    return Event(kind, text, document)


def _client(client: dict[str, Any]) -> str:
    title = client.get("name") or client.get("user") or "a client"
    facts = [f"id {client.get('id', '?')}", f"account {client.get('acc', '?')}", f"from {client.get('host', '?')}"]
    return f"{title} ({', '.join(facts)})"


def _last(subject: str) -> str:
    return subject.rpartition(".")[2].lower()


class Rates(NamedTuple):
    """Of one server, each per second."""

    server: str
    connections: int
    messages_in: float
    messages_out: float
    bytes_in: float
    bytes_out: float


def rates(before: list[dict[str, Any]], after: list[dict[str, Any]], seconds: float) -> list[Rates]:
    """The rates between two answers of all servers to a request for their counters (STATSZ). A server that was not there
    before, or has started anew, has none yet."""
    old = {(one["server"]["id"], one["statsz"]["start"]): one["statsz"] for one in before}
    found = []
    for one in after:
        now = one["statsz"]
        then = old.get((one["server"]["id"], now["start"]))
        if then is None:
            continue
        counted = [
            (now[way][what] - then[way][what]) / seconds for what in ("msgs", "bytes") for way in ("received", "sent")
        ]
        found.append(Rates(str(one["server"].get("name", "")), int(now["connections"]), *counted))
    return found
