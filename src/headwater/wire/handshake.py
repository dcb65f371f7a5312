"""INFO and CONNECT, the JSON documents that open a connection (client protocol document, "INFO" and "CONNECT").

Unknown fields are ignored, as in nats-server, so newer peers can connect. Absent fields take the values that the
*receiver* assumes: a CONNECT without `verbose` and `pedantic` means both are true. Both documents are decoded as
leniently as Go decodes JSON (`json_fields`).
"""

from headwater.errors import RemoteProtocolError
from headwater.model.record import Record
from headwater.wire.json_fields import differing, encode_fields, kinds_of, read_fields, wire_names

PROTOCOL_DYNAMIC = 1  # CONNECT.protocol: the client understands asynchronous INFO


class ServerInfo(Record, frozen=False):
    """A server's INFO. Sizes in bytes, ports as numbers."""

    server_id: str = ""
    server_name: str = ""
    version: str = ""
    proto: int = 0
    git_commit: str = ""
    go: str = ""
    host: str = ""
    port: int = 0
    headers: bool = False
    auth_required: bool = False
    tls_required: bool = False
    tls_verify: bool = False
    tls_available: bool = False
    max_payload: int = 0
    jetstream: bool = False
    client_id: int = 0
    client_ip: str = ""
    nonce: str = ""
    cluster: str = ""
    cluster_dynamic: bool = False
    domain: str = ""
    connect_urls: tuple[str, ...] = ()
    ws_connect_urls: tuple[str, ...] = ()
    ldm: bool = False
    connect_info: bool = False
    remote_account: str = ""
    acc_is_sys: bool = False
    api_lvl: int = 0
    xkey: str = ""


class ConnectOptions(Record, frozen=False, secret=("user", "password", "auth_token", "jwt", "nkey", "sig")):
    """A client's CONNECT. Credentials are None if not given, and left out of `repr`, which may be logged."""

    verbose: bool = True
    pedantic: bool = True
    echo: bool = True
    headers: bool = False
    no_responders: bool = False
    tls_required: bool = False
    protocol: int = 0
    name: str = ""
    lang: str = ""
    version: str = ""
    user: str | None = None
    password: str | None = None  # `pass` on the wire
    auth_token: str | None = None
    jwt: str | None = None
    nkey: str | None = None
    sig: str | None = None
    account: str | None = None
    new_account: bool = False


_CONNECT_NAMES = wire_names(ConnectOptions._defaults, {"password": "pass"})
_CONNECT_KINDS = kinds_of(_CONNECT_NAMES, ConnectOptions._defaults)
_INFO_NAMES = wire_names(ServerInfo._defaults)
_INFO_KINDS = kinds_of(_INFO_NAMES, ServerInfo._defaults)


def encode_info(info: ServerInfo) -> bytes:
    """The whole op, `INFO {json} \\r\\n`; with the space before CRLF that nats-server writes."""
    return b"INFO " + encode_fields(differing(info, _INFO_NAMES, always=("headers",))) + b" \r\n"


def decode_info(json: bytes) -> ServerInfo:
    """The argument of INFO. Raises RemoteProtocolError if it is no JSON object or a field has the wrong type."""
    try:
        return ServerInfo(**read_fields(json, _INFO_KINDS))
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError(f"INFO with an argument that cannot be read: {error}", value=json[:200]) from error


def encode_connect(options: ConnectOptions) -> bytes:
    """The whole op, `CONNECT {json}\\r\\n`."""
    state = options.__dict__
    fields = {wire: state[name] for wire, name in _CONNECT_NAMES.items() if state[name] is not None}
    return b"CONNECT " + encode_fields(fields) + b"\r\n"


def decode_connect(json: bytes) -> ConnectOptions:
    """The argument of CONNECT; `null` counts as `{}`, as in nats-server. Raises RemoteProtocolError if it cannot be
    read.
    """
    if json.strip() == b"null":
        return ConnectOptions()
    try:
        return ConnectOptions(**read_fields(json, _CONNECT_KINDS))
    except (ValueError, RecursionError) as error:
        # The document may contain a password: neither this error nor its cause may quote it.
        raise RemoteProtocolError(f"CONNECT with an argument that cannot be read: {type(error).__name__}") from None
