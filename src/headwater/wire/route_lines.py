"""Writers of the ops on a route, v1 and v2. `route_ops` reads them; the head of that module draws the forms.

Messages are written by the router, which copies them from the publisher's buffer.
"""

from headwater.model.record import Record
from headwater.wire.peer_documents import ConnectForm, InfoForm, SubjectLists

PING = b"PING\r\n"
PONG = b"PONG\r\n"


TRACING = 3  # `proto` of a server that continues message traces; nothing else depends on it


class RouteInfo(Record, frozen=False):
    """INFO on a route: about the peer itself, or gossip about another broker (then `ip` is the address to dial).

    `proto` is sent only on v2 routes: if it is set, gnatsd 1.4.1 sends its client INFO on the route. nats-server 2.x
    uses it for one thing: a peer below `TRACING` does not receive messages that are only traced.
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
    imports: SubjectLists | None = None  # `import` on the wire: subjects that the peer may import
    exports: SubjectLists | None = None  # `export` on the wire: subjects that it may export
    lnoc: bool = False  # it understands the `origin` of LS+ and LMSG
    lnocu: bool = False  # it understands the `origin` of LS-
    leafnode_urls: tuple[str, ...] = ()  # addresses for leaf nodes
    headwater: str = ""  # Headwater's own field; two brokers that both send it agree at once which of two links stays


class RouteConnect(Record, frozen=False, secret=("user", "password")):
    """CONNECT on a route, sent by the broker that dialled. `lang` stays empty: servers treat a peer that sends it as a
    client.
    """

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


_INFO = InfoForm(RouteInfo, "route")
# Written even when false, because a receiver may take an absent field for true.
_CONNECT = ConnectForm(RouteConnect, "route", ("echo", "verbose", "pedantic", "tls_required"))
encode_route_info, decode_route_info = _INFO.encode, _INFO.decode
encode_route_connect, decode_route_connect = _CONNECT.encode, _CONNECT.decode


def subscribe_v1(subject: bytes, queue: bytes, token: bytes) -> bytes:
    """SUB; without a queue group two spaces remain, as every gnatsd writes it."""
    return b"SUB %b %b %b\r\n" % (subject, queue, token)


def unsubscribe_v1(token: bytes) -> bytes:
    """UNSUB, without the maximum that gnatsd sent up to 1.1."""
    return b"UNSUB %b\r\n" % token


def interest_v2(account: bytes, subject: bytes, queue: bytes = b"", weight: int = 0) -> bytes:
    """RS+; with a queue group it is sent for every change of the weight."""
    return (
        b"RS+ %b %b %b %d\r\n" % (account, subject, queue, weight) if queue else b"RS+ %b %b\r\n" % (account, subject)
    )


def no_interest_v2(account: bytes, subject: bytes, queue: bytes = b"") -> bytes:
    return b"RS- %b %b %b\r\n" % (account, subject, queue) if queue else b"RS- %b %b\r\n" % (account, subject)


def leaf_interest_v2(origin: bytes, account: bytes, subject: bytes, queue: bytes, weight: int) -> bytes:
    """LS+ on a route, for leaf nodes of the cluster `origin`, or LS- for a `weight` of 0. With a queue group it is sent
    for every change of the weight.
    """
    verb, size = (b"LS+", b" %d" % weight if queue else b"") if weight else (b"LS-", b"")
    return b"%b %b %b %b%b%b\r\n" % (verb, origin, account, subject, b" " + queue if queue else b"", size)
