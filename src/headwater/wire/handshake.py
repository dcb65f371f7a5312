"""INFO and CONNECT: the two JSON documents that open a connection (client protocol document, "INFO" and "CONNECT").

Unknown fields are ignored, as nats-server does, so that newer peers can talk to us. Absent fields take the values that
the *receiver* assumes: a CONNECT without `verbose` and `pedantic` means both are true.
"""

import json as json_documents
import re

import msgspec

from headwater.errors import RemoteProtocolError

PROTOCOL_DYNAMIC = 1  # CONNECT.protocol: the client understands asynchronous INFO


class ServerInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a server says of itself. Sizes in bytes, ports as numbers."""

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
    connect_urls: list[str] = []
    ws_connect_urls: list[str] = []
    ldm: bool = False
    connect_info: bool = False
    remote_account: str = ""
    acc_is_sys: bool = False
    api_lvl: int = 0
    xkey: str = ""


class ConnectOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a client says of itself and wants. Unknown fields send the decoder on to its lenient way, which drops them."""

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
    user: str | msgspec.UnsetType = msgspec.UNSET
    password: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="pass")
    auth_token: str | msgspec.UnsetType = msgspec.UNSET
    jwt: str | msgspec.UnsetType = msgspec.UNSET
    nkey: str | msgspec.UnsetType = msgspec.UNSET
    sig: str | msgspec.UnsetType = msgspec.UNSET
    account: str | msgspec.UnsetType = msgspec.UNSET
    new_account: bool = False

    def __repr__(self) -> str:
        """Without the credentials: a `repr` ends up in logs."""
        return f"<ConnectOptions name={self.name!r} lang={self.lang!r} version={self.version!r}>"


_encoder = msgspec.json.Encoder()
_info_decoder = msgspec.json.Decoder(ServerInfo)
_connect_decoder = msgspec.json.Decoder(ConnectOptions)


def encode_info(info: ServerInfo) -> bytes:
    """The whole op, `INFO {json} \\r\\n`; nats-server writes the space before CRLF, and so do we."""
    return b"INFO " + _encoder.encode(info) + b" \r\n"


def decode_info(json: bytes) -> ServerInfo:
    """Raises RemoteProtocolError when the argument of INFO is not the JSON object that it should be."""
    try:
        return _info_decoder.decode(json)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"INFO with an argument that cannot be read: {error}", value=json[:200]) from error


def encode_connect(options: ConnectOptions) -> bytes:
    """The whole op, `CONNECT {json}\\r\\n`."""
    return b"CONNECT " + _encoder.encode(options) + b"\r\n"


def decode_connect(json: bytes) -> ConnectOptions:
    """Raises RemoteProtocolError when the argument of CONNECT cannot be read; `null` counts as `{}`, as in nats-server."""
    if json.strip() == b"null":
        return ConnectOptions()
    try:
        return _connect_decoder.decode(json)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return msgspec.convert(_read_as_go_does(json), ConnectOptions)
    except (ValueError, RecursionError) as error:  # MsgspecError is a ValueError
        # The document may hold a password: neither this error nor its cause may quote it.
        raise RemoteProtocolError(f"CONNECT with an argument that cannot be read: {type(error).__name__}") from None


def _read_as_go_does(json: bytes) -> dict[str, object]:
    """What Go's decoder is lenient about: the case of keys, null for "not given", bytes that are no UTF-8, any depth."""
    text = json.decode("utf-8", "replace")
    try:
        found = json_documents.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        found = json_documents.loads(_without_depth(text), parse_constant=_refuse_constant)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    known = {field.encode_name for field in msgspec.structs.fields(ConnectOptions)}
    return {
        key.lower(): _printable(value) for key, value in found.items() if value is not None and key.lower() in known
    }


def _printable(value: object) -> object:
    """JSON can spell half of a surrogate pair, which no other text can hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _without_depth(text: str) -> str:
    """The document with each array and object in it replaced by an empty array: no field of ours holds one.

    Raises ValueError for brackets that do not match. What was between them is not looked at otherwise.
    """
    kept: list[str] = []
    closers: list[str] = []
    for piece in _BRACKETS.findall(text):
        if len(closers) <= 1 and not (closers and piece in "[{"):
            kept.append(piece)
        if piece in "[{":
            closers.append("]" if piece == "[" else "}")
        elif piece in "]}":
            if not closers or closers.pop() != piece:
                raise ValueError("a bracket without its counterpart")
            if len(closers) == 1:
                kept.append("[]")
    return "".join(kept)


_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]|[^][{}"]+|"')


def _refuse_constant(name: str) -> object:
    raise ValueError(name)  # NaN and Infinity are Python's, not JSON's
