"""Writers of the ops on a route, v1 and v2; what they write, `route_ops` reads. The head of that module draws the forms.

Messages are written by the router, which copies them from the publisher's buffer behind one of the prefixes made here.
"""

import msgspec

from headwater.errors import RemoteProtocolError

PING = b"PING\r\n"
PONG = b"PONG\r\n"


class SubjectLists(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Subjects that a broker imports or exports: those allowed (none: all) less those denied."""

    allow: list[str] | None = []
    deny: list[str] | None = []


class RouteInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """INFO on a route: of the peer itself, or gossiped of another (then `ip` says where to dial it).

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
    connect_urls: list[str] = []
    ws_connect_urls: list[str] = []
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
    imports: SubjectLists | None = msgspec.field(default=None, name="import")
    exports: SubjectLists | None = msgspec.field(default=None, name="export")
    headwater: str = ""  # ours alone; brokers that know it settle at once which of two links stays


class RouteConnect(msgspec.Struct, kw_only=True, omit_defaults=True):
    """CONNECT on a route, sent by who dialled. `lang` is not in it: servers take whoever sends that for a client."""

    echo: bool | None = None
    verbose: bool | None = None
    pedantic: bool | None = None
    tls_required: bool | None = None
    headers: bool = False
    name: str = ""
    user: str = ""
    password: str = msgspec.field(default="", name="pass")
    cluster: str = ""
    lang: str = ""


_encoder = msgspec.json.Encoder()
_info_decoder = msgspec.json.Decoder(RouteInfo)
_connect_decoder = msgspec.json.Decoder(RouteConnect)


def encode_route_info(info: RouteInfo) -> bytes:
    """The whole op, with the blank before CRLF that servers since 1.2 write."""
    return b"INFO " + _encoder.encode(info) + b" \r\n"


def decode_route_info(json: bytes) -> RouteInfo:
    """Raises RemoteProtocolError when it is not the JSON object that it should be."""
    try:
        return _info_decoder.decode(json)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"route INFO cannot be read: {error}", value=json[:200]) from error


def encode_route_connect(connect: RouteConnect) -> bytes:
    return b"CONNECT " + _encoder.encode(connect) + b"\r\n"


def decode_route_connect(json: bytes) -> RouteConnect:
    """Raises RemoteProtocolError, which does not quote the document: it may hold a password."""
    try:
        return _connect_decoder.decode(json)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
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


def message_head_v1(subject: bytes, token: bytes) -> bytes:
    """All of a MSG before `[reply ]size␍␊`."""
    return b"MSG %b %b " % (subject, token)


def message_head_v2(
    verb: bytes, account: bytes, subject: bytes, reply: bytes = b"", queues: list[bytes] | None = None
) -> bytes:
    """All of an RMSG or HMSG before its sizes; `queues` None for a message without a queue list."""
    if queues:
        marked = b"+ %b " % reply if reply else b"| "
        return b"%b %b %b %b%b " % (verb, account, subject, marked, b" ".join(queues))
    return b"%b %b %b %b" % (verb, account, subject, reply + b" " if reply else b"")
