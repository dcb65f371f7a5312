"""Writers of the ops on a route, v1 and v2; what they write, `route_ops` reads. The head of that module draws the forms.

Messages are written by the router, which copies them from the publisher's buffer behind one of the prefixes made here.
"""

from headwater.errors import RemoteProtocolError
from headwater.model.record import Record
from headwater.wire.json_fields import differing, encode_fields, kinds_of, read_fields, typed, wire_names

PING = b"PING\r\n"
PONG = b"PONG\r\n"


class SubjectLists(Record):
    """Subjects that a broker imports or exports: those allowed (none: all) less those denied."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def document(self) -> dict[str, list[str]]:
        """As it stands in JSON: an empty list is left out."""
        return {name: list(subjects) for name, subjects in self.items() if subjects}


class RouteInfo(Record, frozen=False):
    """INFO on a route: of the peer itself, or gossiped of another broker (then `ip` is the address to dial).

    No `proto` is sent: with one, gnatsd 1.4.1 sends its client INFO on the route; nats-server 2.x does not need it.
    """

    server_id: str = ""
    server_name: str = ""
    version: str = ""
    proto: int = 0
    go: str = ""
    host: str = ""
    port: int = 0
    headers: bool = False
    auth_required: bool = False
    tls_required: bool = False
    tls_verify: bool = False
    max_payload: int = 0
    jetstream: bool = False
    connect_urls: tuple[str, ...] = ()
    ws_connect_urls: tuple[str, ...] = ()
    ldm: bool = False
    ip: str = ""
    cluster: str = ""
    cluster_dynamic: bool = False
    route_pool_size: int = 0
    route_pool_idx: int = 0
    route_account: str = ""
    gossip_mode: int = 0
    nonce: str = ""
    compression: str = ""
    client_id: int = 0
    imports: SubjectLists | None = None  # `import` on the wire
    exports: SubjectLists | None = None  # and `export`
    headwater: str = ""  # ours alone; two brokers that both send it agree at once which of two links stays


class RouteConnect(Record, frozen=False, secret=("user", "password")):
    """CONNECT on a route, sent by the broker that dialled. `lang` stays empty: servers take a sender of it for a client."""

    echo: bool = False
    verbose: bool = False
    pedantic: bool = False
    tls_required: bool = False
    headers: bool = False
    name: str = ""
    user: str = ""
    password: str = ""  # `pass` on the wire
    cluster: str = ""
    lang: str = ""


_INFO_NAMES = wire_names(RouteInfo._defaults, {"imports": "import", "exports": "export"})
_INFO_KINDS = kinds_of(_INFO_NAMES, {**RouteInfo._defaults, "imports": {}, "exports": {}})
_LISTS_KINDS = kinds_of(wire_names(SubjectLists._defaults), SubjectLists._defaults)
_CONNECT_NAMES = wire_names(RouteConnect._defaults, {"password": "pass"})
_CONNECT_KINDS = kinds_of(_CONNECT_NAMES, RouteConnect._defaults)
_ALWAYS = ("echo", "verbose", "pedantic", "tls_required")  # in CONNECT even when false: absent ones may count as true


def encode_route_info(info: RouteInfo) -> bytes:
    """The whole op, with the blank before CRLF that servers since 1.2 write. What is as by default is left out."""
    told = differing(info, _INFO_NAMES)
    lists = {wire: value.document() for wire, value in told.items() if isinstance(value, SubjectLists)}
    return b"INFO " + encode_fields({**told, **lists}) + b" \r\n"


def decode_route_info(json: bytes) -> RouteInfo:
    """Raises RemoteProtocolError when it is not the JSON object that it should be."""
    try:
        found = read_fields(json, _INFO_KINDS)
        for name in ("imports", "exports"):
            if name in found:
                found[name] = SubjectLists(**typed(found[name], _LISTS_KINDS))
        return RouteInfo(**found)
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError(f"route INFO cannot be read: {error}", value=json[:200]) from error


def encode_route_connect(connect: RouteConnect) -> bytes:
    """The whole op. What is as by default is left out."""
    return b"CONNECT " + encode_fields(differing(connect, _CONNECT_NAMES, _ALWAYS)) + b"\r\n"


def decode_route_connect(json: bytes) -> RouteConnect:
    """Raises RemoteProtocolError, which does not quote the document: it may hold a password."""
    try:
        return RouteConnect(**read_fields(json, _CONNECT_KINDS))
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError(f"route CONNECT cannot be read: {type(error).__name__}") from None


def subscribe_v1(subject: bytes, queue: bytes, token: bytes) -> bytes:
    """Two blanks stand where the queue is not, as every gnatsd writes it."""
    return b"SUB %b %b %b\r\n" % (subject, queue, token)


def unsubscribe_v1(token: bytes, maximum: int = 0) -> bytes:
    return b"UNSUB %b %d\r\n" % (token, maximum) if maximum else b"UNSUB %b\r\n" % token


def interest_v2(account: bytes, subject: bytes, queue: bytes = b"", weight: int = 0) -> bytes:
    """RS+; with a queue also for every change of its weight."""
    return (
        b"RS+ %b %b %b %d\r\n" % (account, subject, queue, weight) if queue else b"RS+ %b %b\r\n" % (account, subject)
    )


def no_interest_v2(account: bytes, subject: bytes, queue: bytes = b"") -> bytes:
    return b"RS- %b %b %b\r\n" % (account, subject, queue) if queue else b"RS- %b %b\r\n" % (account, subject)
